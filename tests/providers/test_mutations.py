"""No mutation of a good request is accepted, and none makes a provider trip."""

import pytest

from hookbox.errors import Refused
from hookbox.model import Slot
from tests.providers.mutations import BODY, ID, NOW_S, TIME, mutations
from tests.providers.requests import delivery, provider_of, trust
from tests.providers.senders import SENDERS, STANDARD, Sender

MUTATIONS_MIN = 80
EVERY = pytest.mark.parametrize("sender", SENDERS, ids=str)


@EVERY
def test_no_mutation_is_accepted(sender: Sender) -> None:
    """An error other than Refused would be a crash on demand, and ends the test."""
    provider, accepted, every = provider_of(sender.name), [], list(mutations(sender))
    for mutation in every:
        try:
            provider.verify(mutation.delivery, trust(provider, *mutation.secrets), mutation.now)
        except Refused:
            continue
        accepted.append(mutation.name)
    assert accepted == []
    assert len(every) >= MUTATIONS_MIN


@EVERY
@pytest.mark.parametrize("skew_s", [-300, -299.5, 0, 0.999, 299.5, 300])
def test_good_request_is_accepted_up_to_the_edges_of_the_window(
    sender: Sender, skew_s: float
) -> None:
    provider = provider_of(sender.name)
    good = delivery(sender.sign(ID, TIME, BODY), BODY)
    verified = provider.verify(good, trust(provider, sender.secret), round((NOW_S + skew_s) * 1000))
    assert verified.slot is Slot.CURRENT
    assert verified.skew_s == (skew_s if sender.timed else None)
    assert verified.signed_at == (NOW_S * 1000 if sender.timed else None)


@EVERY
def test_either_key_proves_and_the_one_that_did_is_named(sender: Sender) -> None:
    provider = provider_of(sender.name)
    good = delivery(sender.sign(ID, TIME, BODY), BODY)
    for secrets, slot in (
        ((sender.secret,), Slot.CURRENT),
        ((sender.secret, sender.other_secret), Slot.CURRENT),
        ((sender.other_secret, sender.secret), Slot.PREVIOUS),
        ((sender.secret, sender.secret), Slot.CURRENT),
    ):
        assert provider.verify(good, trust(provider, *secrets), NOW_S * 1000).slot is slot


@EVERY
def test_age_alone_refuses_only_within_a_tolerance(sender: Sender) -> None:
    """Under observation nothing is too old, and the skew is told."""
    provider = provider_of(sender.name)
    good = delivery(sender.sign(ID, TIME, BODY), BODY)
    observed = trust(provider, sender.secret, tolerance_s=None)
    verified = provider.verify(good, observed, (NOW_S + 86_400) * 1000)
    assert verified.skew_s == (86_400 if sender.timed else None)


@EVERY
def test_stale_is_told_from_forged(sender: Sender) -> None:
    if not sender.timed:
        pytest.skip("signs no time")
    provider = provider_of(sender.name)
    good = sender.sign(ID, TIME, BODY)
    for skew_s in (4000, -4000):
        with pytest.raises(Refused) as refused:
            provider.verify(
                delivery(good, BODY), trust(provider, sender.secret), (NOW_S + skew_s) * 1000
            )
        assert (refused.value.authentic, refused.value.skew_s) == (True, skew_s)
        with pytest.raises(Refused) as refused:
            provider.verify(
                delivery(good, BODY + b" "),
                trust(provider, sender.secret),
                (NOW_S + skew_s) * 1000,
            )
        assert refused.value.authentic is False


@pytest.mark.parametrize("sender", [s for s in SENDERS if s.encode is bytes.hex], ids=str)
def test_upper_case_hexadecimal_is_the_same_signature(sender: Sender) -> None:
    provider = provider_of(sender.name)
    mac = sender.mac(sender.message(ID, TIME, BODY)).upper()
    shouted = delivery(sender.headers(ID, TIME, mac), BODY)
    provider.verify(shouted, trust(provider, sender.secret), NOW_S * 1000)


@pytest.mark.parametrize(
    "form", ["v1,AAAA {} v2,AAAA v1a,AAAA", "{} {}", "garbage {}", "v1 {}", " {} ", ",\t {}"]
)
def test_standard_list_is_searched_and_its_strangers_are_skipped(form: str) -> None:
    provider = provider_of("standardwebhooks")
    good = STANDARD.sign(ID, TIME, BODY)
    headers = {**good, STANDARD.signature: form.replace("{}", good[STANDARD.signature])}
    provider.verify(delivery(headers, BODY), trust(provider, STANDARD.secret), NOW_S * 1000)
