"""Content-Encoding: which bytes are signed, and how far a body may grow.

One rule for every sender: the signature is checked over the bytes received, and only a body that
was proved is inflated, under a hard cap. A source may say that its sender signs the plain text;
then inflating comes first, under the same cap. The header itself is never signed, so a coding we
cannot undo is no reason to refuse a proved body.
"""

import zlib

from hookbox.errors import Reason, Refused, Unintelligible
from hookbox.rules.headers import Headers

# A body is at most 1 MiB on the wire unless a source asks for more, and JSON deflates to about a
# tenth.
INFLATED_MAX = 2 * 1024 * 1024

GZIP, ZLIB, RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
# "deflate" means zlib's framing, and some senders leave the frame away.
WINDOWS = {b"gzip": (GZIP,), b"x-gzip": (GZIP,), b"deflate": (ZLIB, RAW)}


def plain(headers: Headers, body: bytes) -> bytes:
    """The body without its coding, after it was proved. What cannot be undone is Unintelligible."""
    codings = [value for name, value in headers if name == b"content-encoding"]
    coding = b", ".join(codings).strip().lower()
    if coding in (b"", b"identity"):
        return body
    named = coding[:40].decode("ascii", "replace")
    if coding not in WINDOWS:
        raise Unintelligible(f"content encoding `{named}` is not supported")
    for window in WINDOWS[coding]:
        try:
            return _inflate(body, window)
        except zlib.error:
            continue
    raise Unintelligible(f"the body is not {named}, as its header says")


def plain_before_proof(headers: Headers, body: bytes) -> bytes:
    """The same, for senders that sign the plain text: nothing is proved yet, so the caller is
    refused."""
    try:
        return plain(headers, body)
    except Unintelligible as error:
        raise Refused(Reason.ENCODING_UNSUPPORTED) from error


def _inflate(body: bytes, window: int) -> bytes:
    """One complete stream and nothing behind it, or an error."""
    stream = zlib.decompressobj(window)
    inflated = stream.decompress(body, INFLATED_MAX)
    if stream.unconsumed_tail:
        raise Unintelligible(f"the body inflates to more than {INFLATED_MAX >> 20} MiB")
    if not stream.eof or stream.unused_data:
        raise zlib.error("incomplete stream")
    return inflated
