"""Assembly: settings become live sources.

`hookbox check`, `hookbox serve` and a reload all come through here, so that what `check` lets pass
is what runs.
"""

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hookbox import onward
from hookbox.errors import ConfigError
from hookbox.flows.polling import Polling
from hookbox.flows.retain import Ages
from hookbox.flows.sources import Source
from hookbox.model import Slot
from hookbox.polled import fed, polled
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Answers, Key, Provider, Trust
from hookbox.rules.suppression import Budget
from hookbox.settings import Reference, Settings, SourceSettings, line_of, placed
from hookbox.store import jobs, secrets, sources
from hookbox.store.connections import Transaction
from hookbox.store.secrets import Seal

# Opened secrets of the sealed store: source name -> slot -> text.
Sealed = Mapping[str, Mapping[Slot, str]]


def live_sources(settings: Settings, ids: Mapping[str, int], sealed: Sealed) -> dict[str, Source]:
    """Every configured source, ready to prove deliveries. `ids`: the store's id of each name.

    Raises ConfigError with the line, the reason and the mend.
    """
    return {
        each.name: _live(settings, each, ids.get(each.name, 0), sealed) for each in settings.sources
    }


def reading_sources(
    settings: Settings, ids: Mapping[str, int], polling: str | None = None
) -> dict[str, Source]:
    """The configured sources that the store knows, to read what is stored with. They prove nothing,
    so no secret is looked at, but for the key of the one that is to be polled.
    """
    return {
        each.name: Source(
            name=each.name,
            id=ids[each.name],
            provider=configured(each, settings.server.public_url),
            trust=Trust(keys=()),
            body_max=0,
            scope=each.scope,
            suppress_ambiguous=each.suppress_ambiguous,
            polling=polling_of(settings, each) if each.name == polling else None,
        )
        for each in settings.sources
        if each.name in ids
    }


def fingerprint(settings: Settings) -> str:
    """Tells one configuration from another."""
    return hashlib.sha256(settings.text.encode()).hexdigest()


def providers_of(settings: Settings) -> dict[str, str]:
    """Source name -> provider name, for the store to remember."""
    return {each.name: each.provider for each in settings.sources}


def warnings(settings: Settings, sources: Iterable[Source]) -> set[str]:
    """What a person should know about a configuration that can be used: senders that are told to
    come back, and destinations that cannot be brought anything yet.
    """
    told = {
        f"source {each.name} has no secret, its sender is told to come back; "
        f"next: hookbox secret set {each.name}"
        for each in sources
        if not each.trust.keys and each.provider.needs_secret
    }
    return told | onward.warnings(settings)


def polling_of(settings: Settings, chosen: SourceSettings) -> Polling | None:
    """How the source is polled, if it is. Raises ConfigError with the line, the reason and the
    mend.
    """
    try:
        return polled(chosen, configured(chosen, settings.server.public_url))
    except ConfigError as error:
        raise _placed(settings, chosen, error) from error


def budget(settings: Settings) -> Budget:
    """The transient budget in force."""
    chosen = settings.suppression
    return Budget(messages=chosen.transient_budget, window_ms=chosen.transient_window_s * 1000)


def ages(settings: Settings) -> Ages:
    """How long what is kept."""
    return Ages(bodies_s=settings.retention.bodies_s, keys_s=settings.retention.keys_s)


def _live(settings: Settings, chosen: SourceSettings, source_id: int, sealed: Sealed) -> Source:
    try:
        provider = configured(chosen, settings.server.public_url)
        keys = _keys(chosen, provider, sealed.get(chosen.name, {}))
        polling = polled(chosen, provider)
    except ConfigError as error:
        raise _placed(settings, chosen, error) from error
    _check_retention(settings, chosen, provider)
    return Source(
        name=chosen.name,
        id=source_id,
        provider=provider,
        trust=Trust(
            keys=keys, tolerance_s=None if chosen.skew == "observe" else provider.tolerance_s
        ),
        body_max=chosen.body_max or settings.server.body_max,
        scope=chosen.scope,
        suppress_ambiguous=chosen.suppress_ambiguous,
        polling=polling,
    )


def configured(chosen: SourceSettings, public_url: str | None) -> Provider:
    """The provider as this source uses it. Raises ConfigError, its `where` inside the source's
    table.
    """
    provider = PROVIDERS.get(chosen.provider)
    if provider is None:
        near = difflib.get_close_matches(chosen.provider, PROVIDERS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(PROVIDERS))}"
        raise ConfigError(f"no provider is called {chosen.provider!r}", where="provider", mend=hint)
    options = dict(chosen.options)
    if "url" in provider.options and "url" not in options and public_url:
        options["url"] = f"{public_url.rstrip('/')}/hooks/{chosen.name}"
    provider = fed(chosen, provider.configure(provider, options))
    if chosen.tolerance_s is not None:
        provider = replace(provider, tolerance_s=chosen.tolerance_s)
    return replace(provider, answers=_answers(provider.answers, chosen.responses))


def _answers(answers: Answers, responses: Mapping[str, int]) -> Answers:
    """The provider's response map with what the source's `[responses]` says instead."""
    return Answers(
        ok=responses.get("ok", answers.ok),
        refused=responses.get("refused", answers.refused),
        unreadable=responses.get("unreadable", answers.unreadable),
        busy=responses.get("busy", answers.busy),
        refused_by={} if "refused" in responses else answers.refused_by,
    )


def _keys(
    chosen: SourceSettings, provider: Provider, sealed: Mapping[Slot, str]
) -> tuple[Key, ...]:
    """The usable secrets, current first. A slot without reference is the sealed store's, and may be
    empty.
    """
    slots: tuple[tuple[Slot, str, Reference | None], ...] = (
        (Slot.CURRENT, "secret", chosen.secret),
        (Slot.PREVIOUS, "previous_secret", chosen.previous_secret),
    )
    found = []
    for slot, setting, reference in slots:
        try:
            text = reference.read() if reference is not None else sealed.get(slot)
            if text is not None:
                found.append(Key(slot=slot, material=provider.read_secret(text)))
        except ConfigError as error:
            raise error.at(setting) from error
    return tuple(found)


def secret_text(chosen: SourceSettings, sealed: Mapping[Slot, str]) -> str:
    """The current secret as text, to sign a simulated request with; empty where the source has
    none.
    """
    if chosen.secret is not None:
        return chosen.secret.read()
    return sealed.get(Slot.CURRENT, "")


def _placed(settings: Settings, chosen: SourceSettings, error: ConfigError) -> ConfigError:
    return placed(error, settings.text, ("source", chosen.name), chosen.line)


def _check_retention(settings: Settings, chosen: SourceSettings, provider: Provider) -> None:
    """An event's key must be known for as long as the sender may send the event again."""
    needed_s = max(provider.retry_horizon_s or 0, provider.tolerance_s or 0)
    if settings.retention.keys_s >= needed_s:
        return
    raise ConfigError(
        f"keys are kept {settings.retention.keys_s / 3600:g} h, but {provider.title} "
        f"(source {chosen.name}) may send "
        f"an event again for {needed_s / 3600:g} h; a late retry would count twice",
        where="retention.keys",
        mend=f'write keys = "{-(-needed_s // 3600)}h" or more; "90d" is the default',
        line=line_of(settings.text, ("retention", "keys")),
    )


# --- what the store knows of the sources


def open_secrets(transaction: Transaction, seal: Seal, names: Mapping[str, str]) -> Sealed:
    """The sealed store's secrets of these sources, opened."""
    return {name: secrets.opened(transaction, seal, secrets.source_owner(name)) for name in names}


def remember(transaction: Transaction, providers: Mapping[str, str], now: int) -> dict[str, int]:
    """The sources' ids. Events that waited for their source to come back are due again; those that
    still wait would be misread by another provider, so then that change is refused.
    """
    for name in sources.changed(transaction, providers):
        waiting = jobs.unapplied(transaction, name)
        if waiting:
            raise ConfigError(
                f"{waiting} events of this source are not applied yet, and another provider "
                "would misread them",
                where=f"source.{name}.provider",
                mend="wait until `hookbox stats` shows none, or give the new provider a new name",
            )
    jobs.release(transaction, jobs.APPLY, providers, now)
    return sources.remember(transaction, providers)
