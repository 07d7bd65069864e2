"""Reading secrets as people paste them.

White space around a secret is a pasting accident and is dropped; everything else is taken at its
word or refused with the mend. An empty key is a key that everybody knows.
"""

import base64
import binascii
import secrets

from hookbox.errors import ConfigError
from hookbox.rules.signatures import PublicKey, ed25519_key

# Senders make secrets of 24 bytes and more, but people choose some of their own, and a sender that
# takes a shorter one must stay usable. Under 16 bytes a secret can be guessed from one request.
SECRET_BYTES_MIN = 16
SECRET_BYTES_MADE = 32

MEND_EMPTY = "copy the whole signing secret from the sender's console"


def long_enough(key: bytes) -> bytes:
    if not key:
        raise ConfigError("the secret is empty", mend=MEND_EMPTY)
    if len(key) < SECRET_BYTES_MIN:
        raise ConfigError(
            f"the secret has {len(key)} bytes; one of under {SECRET_BYTES_MIN} can be guessed",
            mend="have the sender make a longer one, or choose one of 32 random characters",
        )
    return key


def utf8_secret(text: str) -> bytes:
    """The characters themselves are the key, whatever they look like."""
    try:
        return long_enough(text.strip().encode())
    except UnicodeEncodeError as error:
        raise ConfigError("the secret is not UTF-8 text", mend=MEND_EMPTY) from error


def hex_secret(text: str) -> bytes:
    try:
        return long_enough(bytes.fromhex(text.strip()))
    except ValueError as error:
        raise ConfigError("the secret is not hexadecimal", mend=MEND_EMPTY) from error


def base64_secret(text: str, altchars: bytes | None = None) -> bytes:
    """Base64, with or without its padding."""
    bare = text.strip().rstrip("=")
    try:
        padded = bare.encode("ascii") + b"=" * (-len(bare) % 4)
        return long_enough(base64.b64decode(padded, altchars, validate=True))
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ConfigError(
            "the secret is not base64",
            mend='if the sender uses the text itself as key, use provider = "hmac" '
            'with secret_encoding = "utf8"',
        ) from error


def base64url_secret(text: str) -> bytes:
    return base64_secret(text, b"-_")


def whsec_secret(text: str) -> bytes | PublicKey:
    """Standard Webhooks: `whsec_` and base64, or `whpk_` and the base64 of an ed25519 public key.

    Prefix and padding may be missing, and `v1,` in front is what some consoles show.
    """
    bare = text.strip().removeprefix("v1,").removeprefix("v1a,")
    if bare.startswith("whsk_"):
        raise ConfigError(
            "this is the sender's private key, which only the sender should have",
            mend="paste the public key, `whpk_...`, and have the sender make a new pair",
        )
    if bare.startswith("whpk_"):
        try:
            return ed25519_key(base64_secret(bare.removeprefix("whpk_")))
        except ValueError as error:
            raise ConfigError(str(error), mend="copy the whole public key") from error
    return base64_secret(bare.removeprefix("whsec_"))


def whsec_only(text: str) -> bytes:
    """The same where only an HMAC key will do."""
    key = whsec_secret(text)
    if not isinstance(key, bytes):
        raise ConfigError("this is a public key", mend="this source needs a `whsec_...` secret")
    return key


def made_base64() -> str:
    return base64.b64encode(secrets.token_bytes(SECRET_BYTES_MADE)).decode()


def made_base64url() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES_MADE)).decode()


def made_whsec() -> str:
    return "whsec_" + made_base64()


def made_text() -> str:
    return secrets.token_hex(SECRET_BYTES_MADE)
