"""Signature checks: bytes in, True or False out, never an exception for what a stranger sent.

Keys are read once, when a secret is set or the configuration is loaded, and then a ValueError
says what is wrong with them. `cryptography` is imported only when a public key is read: most
boxes have none, and commands start faster.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

# Postal's older installations sign with 1,024 bits; less than that is broken.
RSA_BITS_MIN = 1024

ALGORITHMS = ("sha256", "sha1", "sha512")

ARMOUR = re.compile(r"-----BEGIN PUBLIC KEY-----(.*?)-----END PUBLIC KEY-----", re.DOTALL)


class PublicKey(Protocol):
    """A public key that can say whether it made a signature. Never raises."""

    def verify(self, signature: bytes, message: bytes) -> bool: ...


# -- HMAC ----------------------------------------------------------------------------------------
#
# The expected signature is written out in the sender's encoding and compared as text. Nothing
# that a stranger sent is decoded, so there is no junk to skip, no padding to guess and no spare
# bit that makes two texts equal.


def hex_text(mac: bytes) -> bytes:
    return mac.hex().encode()


def _unpadded(encode: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda mac: encode(mac).rstrip(b"=")


ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "hex": hex_text,
    "base64": base64.b64encode,
    "base64url": base64.urlsafe_b64encode,
    "base64-unpadded": _unpadded(base64.b64encode),
    "base64url-unpadded": _unpadded(base64.urlsafe_b64encode),
}


def hex_mac(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA256 in lower-case hexadecimal."""
    return hex_text(hmac.digest(key, message, "sha256"))


def base64_mac(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA256 in padded standard base64."""
    return base64.b64encode(hmac.digest(key, message, "sha256"))


def encoded_mac(key: bytes, message: bytes, algorithm: str, encoding: str) -> bytes:
    """An HMAC with one of ALGORITHMS, written in one of ENCODINGS."""
    return ENCODINGS[encoding](hmac.digest(key, message, algorithm))


def webhook_text(message_id: bytes, stamp: bytes, body: bytes) -> bytes:
    """What is signed by Standard Webhooks: the parts as they are sent, literally."""
    return b"%b.%b.%b" % (message_id, stamp, body)


def webhook_signature(key: bytes, message_id: str, stamp: str, body: bytes) -> str:
    """One entry of the list that a sender by Standard Webhooks sends."""
    return f"v1,{base64_mac(key, webhook_text(message_id.encode(), stamp.encode(), body)).decode()}"


def any_equal(expected: bytes, candidates: Iterable[bytes]) -> bool:
    """Whether one of the candidates is the expected text. Compares them all, each in constant
    time."""
    found = False
    for candidate in candidates:
        found |= hmac.compare_digest(expected, candidate)
    return found


def any_proves(key: PublicKey, message: bytes, candidates: Iterable[bytes]) -> bool:
    """Whether one of the candidates, in base64, is the public key's signature."""
    decoded = (strict_base64(candidate) for candidate in candidates)
    return any(key.verify(signature, message) for signature in decoded if signature is not None)


# -- strict decoding -----------------------------------------------------------------------------


def strict_base64(text: bytes) -> bytes | None:
    """What padded standard base64 stands for. None unless it is the one way to write it."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if base64.b64encode(found) == text else None


# -- public keys ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedKey:
    """A public key bound to the one scheme its sender uses; `check` raises InvalidSignature."""

    check: Callable[[bytes, bytes], None]

    def verify(self, signature: bytes, message: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self.check(signature, message)
        except InvalidSignature:
            return False
        return True


def ed25519_key(raw: bytes) -> PublicKey:
    """An ed25519 key from its 32 bytes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if len(raw) != 32:
        raise ValueError(f"an ed25519 public key has 32 bytes, this one {len(raw)}")
    return CheckedKey(Ed25519PublicKey.from_public_bytes(raw).verify)


def ecdsa_key(text: str) -> PublicKey:
    """An ECDSA P-256 key that signs with SHA-256, from PEM or base64 DER."""
    from cryptography.hazmat.primitives.asymmetric.ec import (
        ECDSA,
        SECP256R1,
        EllipticCurvePublicKey,
    )
    from cryptography.hazmat.primitives.hashes import SHA256

    key = _public_key(text)
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise ValueError("this is a public key, but not one on the curve P-256")
    return CheckedKey(lambda signature, message: key.verify(signature, message, ECDSA(SHA256())))


def rsa_key(text: str, *, sha1: bool = False) -> PublicKey:
    """An RSA key that signs with PKCS #1 v1.5 and SHA-256 (or SHA-1), from PEM or base64 DER."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import SHA1, SHA256

    key = _public_key(text)
    if not isinstance(key, RSAPublicKey):
        raise ValueError("this is a public key, but not an RSA key")
    if key.key_size < RSA_BITS_MIN:
        raise ValueError(f"an RSA key of {key.key_size} bits proves nothing")
    # SHA-1 is what these senders sign with; the digest is theirs to choose, and there is no
    # collision to gain from it.
    digest = SHA1() if sha1 else SHA256()  # noqa: S303
    return CheckedKey(lambda signature, message: key.verify(signature, message, PKCS1v15(), digest))


def _public_key(text: str) -> "PublicKeyTypes":
    """A SubjectPublicKeyInfo, as PEM or as the base64 of its DER.

    White space goes wherever people and their editors put it, `\\n` is what a line break becomes in
    an environment variable, and PEM without its line breaks is still the same key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import (
        load_der_public_key,
        load_pem_public_key,
    )

    text = text.replace("\\n", "\n")
    armoured = ARMOUR.search(text)
    if armoured:
        text = armoured[1]
    try:
        if "-----BEGIN" in text:
            return load_pem_public_key(text.encode())
        return load_der_public_key(base64.b64decode("".join(text.split()), validate=True))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("this is not a public key (PEM, or base64 of DER)") from error


# -- key pairs of our own, for simulated senders -------------------------------------------------


def is_private_key(text: str) -> bool:
    """Whether this is meant to be a private key in PEM."""
    return "PRIVATE KEY-----" in text


def ecdsa_pair() -> tuple[str, str]:
    """A new pair on P-256: the public key as the base64 of its DER, and the private one as PEM."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = generate_private_key(SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return ecdsa_public_text(pem), pem


def ecdsa_public_text(private_pem: str) -> str:
    """The public half of a private key on P-256, as the base64 of its DER."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = _ecdsa_private_key(private_pem).public_key()
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()


def ecdsa_signature(private_pem: str, message: bytes) -> bytes:
    """The signature that `ecdsa_key` of the public half verifies."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.hashes import SHA256

    return _ecdsa_private_key(private_pem).sign(message, ECDSA(SHA256()))


def _ecdsa_private_key(private_pem: str) -> "EllipticCurvePrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(private_pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("this is not a private key in PEM, or it is encrypted") from error
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise ValueError("this is a private key, but not one on the curve P-256")
    return key
