"""Every sample is proved, taken apart and read as its case file says; every vector is judged."""

import pytest

from hookbox.errors import Reason, Refused
from hookbox.model import Handshake
from tests.providers.requests import delivery, events, provider_of, stored, trust
from tests.providers.samples import Sample, Vector, expected, samples, shown, vectors

REASONS = {
    "invalid:signature": Reason.SIGNATURE_WRONG,
    "invalid:stale": Reason.STALE,
    "invalid:future": Reason.FUTURE,
}


@pytest.mark.parametrize("sample", samples(), ids=str)
def test_sample_reads_as_its_case_says(sample: Sample) -> None:
    provider = provider_of(sample.provider, sample.options)
    received = delivery(sample.headers, sample.body, received_at=sample.now)
    verified = provider.verify(received, trust(provider, sample.secret), sample.now)
    split = provider.split(verified)
    if sample.handshake is not None:
        assert split == Handshake(answer=sample.handshake.encode())
        return
    assert [event.key for event in events(split)] == [each["key"] for each in sample.events]
    for event, wanted in zip(events(split), sample.events, strict=True):
        assert event.synthesised is wanted.get("synthesised", False)
        (notification,) = provider.normalize(stored(provider, verified, event))
        assert expected(wanted) == shown(notification)


@pytest.mark.parametrize("vector", vectors(), ids=str)
def test_vector_is_judged_rightly(vector: Vector) -> None:
    provider = provider_of(vector.provider)
    keys = trust(provider, *vector.secrets)
    received = delivery(vector.headers, vector.body)
    if vector.expect == "valid":
        verified = provider.verify(received, keys, vector.now)
        assert verified.slot is keys.keys[-1].slot  # where there are two, the second one is right
        return
    with pytest.raises(Refused) as refused:
        provider.verify(received, keys, vector.now)
    assert refused.value.reason is REASONS[vector.expect]


def test_every_sample_of_one_provider_has_its_own_digest() -> None:
    """But for `deferred-again`, whose data is that of `deferred`: their ids are content, too."""
    digests = []
    for sample in samples():
        provider = provider_of(sample.provider, sample.options)
        received = delivery(sample.headers, sample.body)
        split = provider.split(
            provider.verify(received, trust(provider, sample.secret), sample.now)
        )
        if not isinstance(split, Handshake):
            digests += [(sample.provider, event.digest) for event in split.events]
    assert len(set(digests)) == len(digests)
    assert {len(digest) for _, digest in digests} == {32}
