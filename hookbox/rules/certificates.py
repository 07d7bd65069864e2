"""X.509: the key in a certificate, whether an authority vouches for it, and test certificates.

`check` is what a TLS client does with a server's certificate: dates, name, and a chain that ends at
an authority the machine trusts. A ValueError says what is wrong. `cryptography` is imported only
when a certificate is at hand: most boxes never see one.
"""

import base64
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from hookbox.rules.signatures import PublicKey, rsa_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.x509 import Certificate
    from cryptography.x509.verification import Store

PEM = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]{1,65536}-----END CERTIFICATE-----")
CHAIN_MAX = 8  # a public chain has three or four

TEST_YEARS = 10
TEST_KEY_BITS = 2048


# -- reading -------------------------------------------------------------------------------------


def certificate_key(pem: bytes, *, sha1: bool = False) -> PublicKey:
    """The RSA key in a certificate, which signs with SHA-256 or SHA-1. Of several the first one's:
    a chain begins with its end."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    try:
        key = _first(pem).public_key()
    except UnsupportedAlgorithm as error:
        raise ValueError("its key is of a kind that nobody knows") from error
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return rsa_key(base64.b64encode(der).decode(), sha1=sha1)


def valid_until(pem: bytes) -> int:
    """The last instant at which the certificate is valid."""
    return round(_first(pem).not_valid_after_utc.timestamp() * 1000)


def issuer_urls(content: bytes) -> list[str]:
    """Where the issuer of the certificate says that its own certificate can be had."""
    from cryptography import x509
    from cryptography.x509.oid import AuthorityInformationAccessOID

    try:
        access = _first(content).extensions.get_extension_for_class(x509.AuthorityInformationAccess)
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [
        each.access_location.value
        for each in access.value
        if each.access_method == AuthorityInformationAccessOID.CA_ISSUERS
        and isinstance(each.access_location, x509.UniformResourceIdentifier)
    ]


def _first(content: bytes) -> "Certificate":
    for found in _certificates(content):
        return found
    raise ValueError("there is no certificate in it")


def _certificates(content: bytes) -> Iterator["Certificate"]:
    """The certificates in PEM, or the one that the content is in DER; those that can be read."""
    from cryptography import x509

    found = PEM.findall(content)
    with warnings.catch_warnings():  # some old authorities have serial numbers that are no such
        warnings.simplefilter("ignore")
        for each in found or [content]:
            try:
                load = x509.load_pem_x509_certificate if found else x509.load_der_x509_certificate
                yield load(each)
            except ValueError:
                continue


# -- checking ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Authorities:
    """The authorities that a machine trusts."""

    store: "Store"


def authorities(contents: Iterable[bytes]) -> Authorities:
    """Read from PEM; whatever else there is in it is left out. ValueError when none is left."""
    from cryptography.x509.verification import Store

    found = [each for content in contents for each in _certificates(content)]
    if not found:
        raise ValueError("no authority's certificate can be read")
    return Authorities(Store(found))


def check(
    pem: bytes, names: Sequence[str], at: int, trusted: Authorities, issuers: Iterable[bytes] = ()
) -> None:
    """Whether, at this instant, an authority vouches that the first certificate is one of `names`.

    `issuers`: certificates from anywhere that may complete the chain. They prove nothing by
    themselves.
    """
    from cryptography import x509
    from cryptography.x509.verification import PolicyBuilder, VerificationError

    leaf, *rest = list(_certificates(pem))[:CHAIN_MAX] or [_first(pem)]
    between = [*rest, *(each for content in issuers for each in _certificates(content))]
    named = [name for name in names if name in _dns_names(leaf)]
    if not named:
        raise ValueError("it is a certificate of somebody else")
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    policy = PolicyBuilder().store(trusted.store).time(moment).max_chain_depth(CHAIN_MAX)
    try:
        policy.build_server_verifier(x509.DNSName(named[0])).verify(leaf, between)
    except VerificationError as error:
        raise ValueError(f"no authority vouches for it: {error}") from error


def _dns_names(leaf: "Certificate") -> list[str]:
    from cryptography import x509

    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return []
    return names.value.get_values_for_type(x509.DNSName)


# -- test certificates: a sender of our own, for a source that trusts it ---------------------------


def private_rsa_key() -> str:
    """A new private key, as PEM."""
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = generate_private_key(public_exponent=65537, key_size=TEST_KEY_BITS)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def fingerprint(private_pem: str) -> str:
    """32 hexadecimal digits that name the pair."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = _private_key(private_pem).public_key()
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return sha256(der).hexdigest()[:32]


def self_signed(private_pem: str, name: str, now: int) -> bytes:
    """A certificate that only its own key vouches for, valid from a day ago, as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import NameOID

    key = _private_key(private_pem)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    today = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=now)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=365 * TEST_YEARS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, SHA256())
        .public_bytes(Encoding.PEM)
    )


def rsa_signature(private_pem: str, message: bytes) -> bytes:
    """The signature that `certificate_key` of the pair's certificate verifies, with SHA-256."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    return _private_key(private_pem).sign(message, PKCS1v15(), SHA256())


def _private_key(private_pem: str) -> "RSAPrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(private_pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("this is not a private key in PEM") from error
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("this is a private key, but not an RSA key")
    return key
