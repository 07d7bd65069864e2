"""What providers declare about their senders is consistent, and people can follow the steps."""

import re
import subprocess
import sys

import pytest

from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Provider, SignedTime

EVERY = pytest.mark.parametrize("provider", PROVIDERS.values(), ids=lambda each: each.name)


@EVERY
def test_steps_lead_from_the_address_to_a_look(provider: Provider) -> None:
    """Every placeholder is one that is filled in, and a secret is given only where it may be."""
    steps = " ".join(provider.console_steps)
    assert "{url}" in steps
    assert set(re.findall(r"\{(\w+)\}", steps)) <= {"url", "secret"}
    assert "{secret}" not in steps or provider.make_secret is not None


@EVERY
def test_answers_are_never_a_redirect_nor_gone(provider: Provider) -> None:
    answers = provider.answers
    for status in (answers.refused, *answers.refused_by.values()):
        assert 400 <= status < 500 or status == 503
        assert status != 410
    assert answers.ok == 200
    assert answers.unreadable in (200, 400)
    assert answers.busy in (429, 503)


@EVERY
def test_schedule_fits_into_the_horizon(provider: Provider) -> None:
    """A window exists just where a time is signed, and the dedupe keys outlive the horizon."""
    if provider.retry_schedule_s:
        assert provider.retry_horizon_s is not None
        assert sum(provider.retry_schedule_s) <= provider.retry_horizon_s
    assert (provider.tolerance_s is None) == (provider.signed_time is SignedTime.NONE)
    assert (provider.retry_horizon_s or 0) < 90 * 86_400


@pytest.mark.parametrize(
    ("name", "refused", "unreadable"),
    [
        ("efa", 400, 200),
        ("standardwebhooks", 401, 200),
        ("svix", 401, 200),
        ("emaildigit", 401, 200),
        ("courier", 401, 400),
        ("hmac", 401, 400),
        ("github", 401, 200),
        ("stripe", 401, 200),
        ("shopify", 401, 200),
        ("slack", 401, 200),
    ],
)
def test_response_map(name: str, refused: int, unreadable: int) -> None:
    answers = PROVIDERS[name].answers
    assert (answers.ok, answers.refused, answers.unreadable) == (200, refused, unreadable)
    assert answers.busy == 503


def test_knowing_the_providers_costs_no_cryptography() -> None:
    """`hookbox --help` and most commands never need a public key."""
    loaded = (
        "import sys, hookbox.providers; sys.exit(any(n.startswith('cryptography') "
        "for n in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", loaded]).returncode == 0
