"""One header, or a refusal."""

import pytest

from hookbox.errors import Reason, Refused
from hookbox.rules.headers import one, one_of, pairs, required

HEADERS = ((b"a", b"1"), (b"b", b"2"), (b"b", b"2"), (b"c", b"caf\xe9"), (b"d", b""))


def test_single_header_is_read_as_bytes() -> None:
    assert one(HEADERS, "a") == b"1"
    assert one(HEADERS, "d") == b""
    assert one(HEADERS, "absent") is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [("b", Reason.HEADER_AMBIGUOUS), ("c", Reason.HEADER_MALFORMED)],
)
def test_doubled_and_foreign_bytes_are_refused(name: str, reason: Reason) -> None:
    """Even when both copies say the same."""
    with pytest.raises(Refused) as refused:
        one(HEADERS, name)
    assert refused.value.reason is reason


@pytest.mark.parametrize("name", ["absent", "d"])
def test_empty_counts_as_missing_where_it_is_required(name: str) -> None:
    with pytest.raises(Refused) as refused:
        required(HEADERS, name, Reason.ID_MISSING)
    assert refused.value.reason is Reason.ID_MISSING


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"t=1,v1=ab", [(b"t", b"1"), (b"v1", b"ab")]),
        (b"v1=ab, t=1", [(b"v1", b"ab"), (b"t", b"1")]),
        (b" t=1 ,\tv1=a=b=", [(b"t", b"1"), (b"v1", b"a=b=")]),
        (b"junk,t=1,,=x", [(b"t", b"1"), (b"", b"x")]),
        (b"", []),
    ],
)
def test_pairs_are_read_by_name(text: bytes, found: list[tuple[bytes, bytes]]) -> None:
    assert pairs(text) == found


def test_one_pair_of_a_name() -> None:
    found = pairs(b"t=1,v1=a,v1=b")
    assert one_of(found, b"t", Reason.TIMESTAMP_MISSING) == b"1"
    for name, reason in ((b"v1", Reason.HEADER_AMBIGUOUS), (b"x", Reason.SIGNATURE_MISSING)):
        with pytest.raises(Refused) as refused:
            one_of(found, name, Reason.SIGNATURE_MISSING)
        assert refused.value.reason is reason
