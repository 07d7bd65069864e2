"""A body is inflated whole, under a cap, or not at all."""

import gzip
import zlib

import pytest

from hookbox.errors import Reason, Refused, Unintelligible
from hookbox.rules.encoding import INFLATED_MAX, plain, plain_before_proof

TEXT = b'{"a": 1}' * 50


def _coded(*codings: str) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((b"content-encoding", coding.encode("latin-1")) for coding in codings)


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_uncoded_body_is_the_same_object(coding: str) -> None:
    assert plain(_coded(coding), TEXT) is TEXT
    assert plain((), TEXT) is TEXT


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("GZIP", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT, 0)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)[2:-4]),
    ],
)
def test_known_codings(coding: str, body: bytes) -> None:
    assert plain(_coded(coding), body) == TEXT
    assert plain_before_proof(_coded(coding), body) == TEXT


BROKEN = [
    ("gzip", gzip.compress(TEXT)[:-1]),
    ("gzip", gzip.compress(TEXT) + b"\0"),
    ("gzip", gzip.compress(TEXT) + gzip.compress(TEXT)),
    ("gzip", zlib.compress(TEXT)),
    ("gzip", TEXT),
    ("gzip", b""),
    ("deflate", gzip.compress(TEXT)),
    ("deflate", b""),
    ("br", TEXT),
    ("gzip, gzip", gzip.compress(gzip.compress(TEXT))),
    ("caf\xe9", TEXT),
    ("x" * 5000, TEXT),
]


@pytest.mark.parametrize(("coding", "body"), BROKEN, ids=lambda value: repr(value)[:20])
def test_what_cannot_be_undone_is_said_so(coding: str, body: bytes) -> None:
    """Proved: set aside. Not proved: refused."""
    with pytest.raises(Unintelligible):
        plain(_coded(coding), body)
    with pytest.raises(Refused) as refused:
        plain_before_proof(_coded(coding), body)
    assert refused.value.reason is Reason.ENCODING_UNSUPPORTED


def test_two_headers_are_one_list() -> None:
    with pytest.raises(Unintelligible):
        plain(_coded("gzip", "gzip"), gzip.compress(TEXT))


def test_cap_is_exact() -> None:
    assert len(plain(_coded("gzip"), gzip.compress(b"0" * INFLATED_MAX))) == INFLATED_MAX
    with pytest.raises(Unintelligible, match="2 MiB"):
        plain(_coded("gzip"), gzip.compress(b"0" * (INFLATED_MAX + 1)))
