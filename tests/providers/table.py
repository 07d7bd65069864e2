"""The README's table of providers, made of what they declare.

python -m tests.providers.table          prints it
"""

from collections.abc import Iterable

from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Provider, SignedTime

HEAD = (
    "| provider | sender | signature covers the body | window "
    "| answers: ok / refused / unreadable / busy | tries for | an event's identity |"
)
RULE = "| --- | --- | --- | --- | --- | --- | --- |"


def rows() -> list[str]:
    """Head, rule and one row for each provider, in the order of the table of providers."""
    return [HEAD, RULE, *(_row(name, provider) for name, provider in PROVIDERS.items())]


def _row(name: str, provider: Provider) -> str:
    answers = provider.answers
    statuses = (answers.ok, answers.refused, answers.unreadable, answers.busy)
    cells = [
        f"`{name}`",
        provider.title,
        "yes" if provider.signs_body else "**no**",
        _window(provider),
        " / ".join(str(status) for status in statuses) + _exceptions(provider),
        _span(provider.retry_horizon_s) if provider.retry_horizon_s else "unknown",
        provider.key_kind.value,
    ]
    return "| " + " | ".join(cells) + " |"


def _window(provider: Provider) -> str:
    if provider.signed_time is SignedTime.NONE or provider.tolerance_s is None:
        return "no signed time"
    return _span(provider.tolerance_s)


def _exceptions(provider: Provider) -> str:
    """Reasons that are answered otherwise than the other refusals."""
    by_status: dict[int, list[str]] = {}
    for reason, status in provider.answers.refused_by.items():
        by_status.setdefault(status, []).append(reason.value)
    told = [f"{status}: {_listed(reasons)}" for status, reasons in sorted(by_status.items())]
    return f" ({'; '.join(told)})" if told else ""


def _listed(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(reason.replace("_", " ") for reason in reasons))


def _span(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7_200:
        return f"{round(seconds / 60)} min"
    hours = seconds / 3_600
    return f"{hours:.1f} h".replace(".0 h", " h") if hours < 72 else f"{hours / 24:.1f} days"


if __name__ == "__main__":
    print("\n".join(rows()))
