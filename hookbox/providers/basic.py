"""HTTP Basic, which some senders prove themselves with and others only add: `user:password`.

The one right header is written out and compared as text; nothing that a stranger sent is decoded.
"""

import base64

from hookbox.errors import ConfigError, Reason, Refused
from hookbox.model import Delivery, Slot
from hookbox.providers.contract import Trust
from hookbox.providers.secret_text import made_text, utf8_secret
from hookbox.rules.headers import required
from hookbox.rules.signatures import any_equal


def basic_secret(text: str) -> bytes:
    """The credentials as the sender's URL has them in front of its `@`, without escapes."""
    user, colon, password = text.strip().partition(":")
    if not (user and colon and password):
        raise ConfigError(
            "these are no credentials", mend="write user and password as `user:password`"
        )
    return utf8_secret(text)


def made_credentials() -> str:
    return f"hookbox:{made_text()}"


def credentials_slot(delivery: Delivery, trust: Trust) -> Slot:
    """Which of the source's credentials the delivery came with. Refused when with none of them."""
    value = required(delivery.headers, "authorization", Reason.CREDENTIALS_MISSING)
    scheme, _, given = value.partition(b" ")
    proving = [
        key.slot
        for key in trust.keys
        if isinstance(key.material, bytes)
        and any_equal(base64.b64encode(key.material), (given.strip(b" "),))
    ]
    if scheme.lower() != b"basic" or not proving:
        raise Refused(Reason.CREDENTIALS_WRONG)
    return proving[0]


def authorization(text: str) -> str:
    """The header's value that a sender with these credentials writes."""
    return f"Basic {base64.b64encode(basic_secret(text)).decode()}"
