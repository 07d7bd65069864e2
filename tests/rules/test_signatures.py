"""Signatures are compared as text, and public keys never raise for what a stranger sent."""

import base64
import hashlib
import hmac
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from hypothesis import given
from hypothesis import strategies as st

from hookbox.rules.signatures import (
    ALGORITHMS,
    PublicKey,
    any_equal,
    any_proves,
    base64_mac,
    ecdsa_key,
    ed25519_key,
    encoded_mac,
    hex_mac,
    rsa_key,
    strict_base64,
)

MESSAGE = b"1700000000.{}"
EC_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(65537, 2048)
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def _der(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey) -> str:
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    return base64.b64encode(
        key.public_key().public_bytes(serialization.Encoding.DER, spki)
    ).decode()


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, spki).decode()


# RFC 4231, test case 2.
def test_hmac_of_the_published_vector() -> None:
    expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert hex_mac(b"Jefe", b"what do ya want for nothing?") == expected.encode()
    mac = base64_mac(b"Jefe", b"what do ya want for nothing?")
    assert base64.b64decode(mac).hex() == expected


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_in_every_encoding(algorithm: str) -> None:
    mac = hmac.new(b"k", MESSAGE, getattr(hashlib, algorithm)).digest()
    assert encoded_mac(b"k", MESSAGE, algorithm, "hex").decode() == mac.hex()
    for name, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
        assert encoded_mac(b"k", MESSAGE, algorithm, name) == encode(mac)
        assert encoded_mac(b"k", MESSAGE, algorithm, f"{name}-unpadded") == encode(mac).rstrip(b"=")


def test_one_equal_candidate_is_enough_and_none_is_not() -> None:
    assert any_equal(b"abc", [b"abd", b"abc", b""])
    assert not any_equal(b"abc", [b"ab", b"abcd", b"ABC", b"\xff\xff\xff"])
    assert not any_equal(b"abc", [])


@given(st.binary(max_size=60))
def test_strict_base64_has_one_way_to_write_each_text(raw: bytes) -> None:
    text = base64.b64encode(raw)
    assert strict_base64(text) == raw
    for other in (text + b"=", text + b"\n", b" " + text, text + b"A", b"!" + text):
        assert strict_base64(other) is None


@pytest.mark.parametrize(
    "junk", [b"QQ", b"QR==", b"Q", b"QQ=", b"Q!Q=", b"-_-_", b"\xff", b"QQ==QQ=="]
)
def test_strict_base64_takes_no_junk(junk: bytes) -> None:
    """`QR==` decodes to what `QQ==` does: its spare bits are set."""
    assert strict_base64(junk) is None


KEYS: list[tuple[str, PublicKey, Callable[[bytes], bytes]]] = [
    (
        "ed25519",
        ed25519_key(ED_KEY.public_key().public_bytes_raw()),
        ED_KEY.sign,
    ),
    ("ecdsa", ecdsa_key(_der(EC_KEY)), lambda m: EC_KEY.sign(m, ec.ECDSA(hashes.SHA256()))),
    ("ecdsa pem", ecdsa_key(_pem(EC_KEY)), lambda m: EC_KEY.sign(m, ec.ECDSA(hashes.SHA256()))),
    (
        "rsa",
        rsa_key(_der(RSA_KEY)),
        lambda m: RSA_KEY.sign(m, padding.PKCS1v15(), hashes.SHA256()),
    ),
    (
        "rsa sha1",
        rsa_key(_pem(RSA_KEY), sha1=True),
        lambda m: RSA_KEY.sign(m, padding.PKCS1v15(), hashes.SHA1()),
    ),
]
EVERY_KEY = pytest.mark.parametrize(("name", "key", "sign"), KEYS, ids=[name for name, *_ in KEYS])


@EVERY_KEY
def test_public_key_accepts_its_own_signature_only(
    name: str, key: PublicKey, sign: Callable[[bytes], bytes]
) -> None:
    signature = sign(MESSAGE)
    assert key.verify(signature, MESSAGE)
    assert not key.verify(signature, MESSAGE + b"\r\n")
    assert not key.verify(sign(b"other"), MESSAGE)
    for at in range(0, len(signature), 7):
        flipped = signature[:at] + bytes([signature[at] ^ 1]) + signature[at + 1 :]
        assert not key.verify(flipped, MESSAGE)
    for other_name, _, other in KEYS:
        if other_name.split()[0] != name.split()[0]:
            assert not key.verify(other(MESSAGE), MESSAGE)


def test_sha1_and_sha256_are_not_each_other() -> None:
    made = {name: sign(MESSAGE) for name, _, sign in KEYS}
    keys = {name: key for name, key, _ in KEYS}
    assert not keys["rsa"].verify(made["rsa sha1"], MESSAGE)
    assert not keys["rsa sha1"].verify(made["rsa"], MESSAGE)


@EVERY_KEY
@given(signature=st.binary(max_size=300), message=st.binary(max_size=50))
def test_public_key_says_no_to_noise(
    name: str, key: PublicKey, sign: Callable[[bytes], bytes], signature: bytes, message: bytes
) -> None:
    assert key.verify(signature, message) is False


def test_public_key_over_a_list() -> None:
    key, good = KEYS[0][1], base64.b64encode(ED_KEY.sign(MESSAGE))
    assert any_proves(key, MESSAGE, [b"", b"junk", b"AAAA", good])
    assert not any_proves(key, MESSAGE, [good.rstrip(b"="), good + b"="])


def test_key_may_be_pasted_with_line_breaks() -> None:
    text = _der(RSA_KEY)
    assert rsa_key("\n".join(text[at : at + 64] for at in range(0, len(text), 64)) + "\n")


SMALL_RSA = _der(rsa.generate_private_key(65537, 1024))
P384 = _der(ec.generate_private_key(ec.SECP384R1()))


def test_old_rsa_of_1024_bits_is_taken() -> None:
    assert rsa_key(SMALL_RSA)


@pytest.mark.parametrize("text", ["", "junk", "QQ==", P384, _der(RSA_KEY), _der(ED_KEY), "\xe9"])
def test_what_is_no_p256_key_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match="public key"):
        ecdsa_key(text)


@pytest.mark.parametrize(
    "text",
    ["", "junk", P384, _der(EC_KEY), "-----BEGIN PUBLIC KEY-----\nQQ==\n", "-----BEGIN"],
)
def test_what_is_no_rsa_key_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match="public key"):
        rsa_key(text)


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_ed25519_key_has_32_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        ed25519_key(b"k" * length)
