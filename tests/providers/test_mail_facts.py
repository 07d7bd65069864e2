"""What is declared about the mail senders: by these facts others answer, wait, keep and advise."""

import pytest

from hookbox.errors import Reason
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Answers, Provider

MAIL = [PROVIDERS[name] for name in ("sendgrid", "mailgun", "postmark", "resend")]
EVERY = pytest.mark.parametrize("provider", MAIL, ids=lambda provider: provider.name)

# ok, signature or credentials wrong, too old, authentic but unreadable, our fault
STATUSES = {
    "sendgrid": (200, 401, 401, 200, 503),
    "mailgun": (200, 401, 406, 200, 503),
    "postmark": (200, 401, 401, 200, 503),
    "resend": (200, 401, 401, 200, 503),
}


def _refused(answers: Answers, reason: Reason) -> int:
    return answers.refused_by.get(reason, answers.refused)


@EVERY
def test_statuses_are_those_that_the_sender_acts_on_rightly(provider: Provider) -> None:
    answers = provider.answers
    assert STATUSES[provider.name] == (
        answers.ok,
        _refused(answers, Reason.SIGNATURE_WRONG),
        _refused(answers, Reason.STALE),
        answers.unreadable,
        answers.busy,
    )
    assert _refused(answers, Reason.CREDENTIALS_WRONG) == answers.refused


@EVERY
def test_window_covers_the_retries_of_senders_that_do_not_sign_anew(provider: Provider) -> None:
    if provider.tolerance_s is None or provider.name == "resend":
        return
    assert provider.retry_horizon_s is not None
    assert provider.tolerance_s > provider.retry_horizon_s
    assert provider.tolerance_s > sum(provider.retry_schedule_s)


@EVERY
def test_schedule_ends_within_the_horizon(provider: Provider) -> None:
    assert provider.retry_horizon_s is not None
    assert sum(provider.retry_schedule_s) <= provider.retry_horizon_s


@EVERY
def test_steps_say_where_to_post_and_nothing_is_left_to_fill_in(provider: Provider) -> None:
    steps = " ".join(provider.console_steps)
    assert "{url}" in steps
    filled = steps.replace("{url}", "").replace("{secret}", "")
    assert "{" not in filled
    assert ("{secret}" in steps) is (provider.name == "postmark")


@EVERY
def test_weakness_is_declared(provider: Provider) -> None:
    assert provider.signs_body is (provider.name in ("sendgrid", "resend"))
