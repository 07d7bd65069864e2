"""Every sample is proved, taken apart and read as its case file says; every vector is judged."""

import pytest

from hookbox.errors import Reason, Refused
from hookbox.model import Handshake, Slot
from tests.providers.requests import delivery, events, provider_of, stored, trust
from tests.providers.samples import Sample, Vector, expected, samples, shown, vectors

REASONS = {
    "invalid:signature": Reason.SIGNATURE_WRONG,
    "invalid:stale": Reason.STALE,
    "invalid:future": Reason.FUTURE,
    "invalid:cert-url": Reason.CERTIFICATE_REFUSED,
}


@pytest.mark.parametrize("sample", samples(), ids=str)
def test_sample_reads_as_its_case_says(sample: Sample) -> None:
    provider = provider_of(sample.provider, sample.options)
    received = delivery(sample.headers, sample.body, received_at=sample.now)
    keys = trust(provider, sample.secret, certificate=sample.certificate)
    verified = provider.verify(received, keys, sample.now)
    split = provider.split(verified)
    if sample.handshake is not None:
        assert split == Handshake(answer=sample.handshake.encode())
        return
    told = [
        (event, notification)
        for event in events(split)
        for notification in provider.normalize(stored(provider, verified, event))
    ]
    assert len(events(split)) == len({each["key"] for each in sample.events})
    for (event, notification), wanted in zip(told, sample.events, strict=True):
        assert event.key == wanted["key"]
        assert event.synthesised is wanted.get("synthesised", False)
        assert expected(wanted) == shown(notification)
        assert notification.meaning == wanted.get("meaning", notification.meaning)


@pytest.mark.parametrize("vector", vectors(), ids=str)
def test_vector_is_judged_rightly(vector: Vector) -> None:
    provider = provider_of(vector.provider, vector.options)
    keys = trust(provider, *vector.secrets, certificate=vector.certificate)
    received = delivery(vector.headers, vector.body)
    if vector.expect == "valid":
        verified = provider.verify(received, keys, vector.now)
        # Where there are two, the second one is right.
        assert verified.slot is (keys.keys[-1].slot if keys.keys else Slot.NONE)
        return
    with pytest.raises(Refused) as refused:
        provider.verify(received, keys, vector.now)
    assert refused.value.reason is REASONS[vector.expect]


def test_events_have_one_digest_if_and_only_if_they_have_one_key() -> None:
    """Over all samples of a provider; some batches hold events that come alone in other samples."""
    digests: dict[tuple[str, str], set[bytes]] = {}
    for sample in samples():
        provider = provider_of(sample.provider, sample.options)
        received = delivery(sample.headers, sample.body)
        keys = trust(provider, sample.secret, certificate=sample.certificate)
        split = provider.split(provider.verify(received, keys, sample.now))
        if not isinstance(split, Handshake):
            for event in split.events:
                digests.setdefault((sample.provider, event.key), set()).add(event.digest)
    every = [digest for found in digests.values() for digest in found]
    assert {len(found) for found in digests.values()} == {1}
    assert len(set(every)) == len(every)
    assert {len(digest) for digest in every} == {32}
