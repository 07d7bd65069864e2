"""The rules of framing on their own."""

import pytest

from hookbox.web.framing import framing_of, refusal_of


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ([(b"content-length", b"2"), (b"transfer-encoding", b"chunked")], 400),
        ([(b"content-length", b"2"), (b"content-length", b"2")], 400),
        ([(b"content-length", b"2,2")], 400),
        ([(b"content-length", b"")], 400),
        ([(b"content-length", b"9" * 5_000)], 413),
        ([(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")], 400),
        ([(b"transfer-encoding", b"chunked, chunked")], 501),
    ],
)
def test_rules_hold_without_the_parsers_help(
    fields: list[tuple[bytes, bytes]], status: int
) -> None:
    """Today's parser refuses these before the rules see them; another version may not."""
    framing = framing_of([(b"host", b"hooks.example"), *fields])
    assert refusal_of(b"POST", "1.1", b"/", framing, 1_000_000) == status
