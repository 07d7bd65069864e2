"""A small public-key world: an authority, one intermediate, and certificates for anybody."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

BORN = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)


@dataclass(frozen=True)
class Issued:
    """A certificate and the key it is about."""

    certificate: x509.Certificate
    key: Key

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    name: str, key: Key, issuer: Issued | None, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    signer = issuer.certificate.public_key() if issuer else key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(issuer.certificate.subject if issuer else _name(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def authority(name: str, issuer: Issued | None = None, issuer_url: str = "") -> Issued:
    """A certificate that may sign others; its own authority unless somebody issues it."""
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        _builder(name, key, issuer, BORN, BORN + 10 * YEAR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
    )
    return Issued(_signed(builder, key, issuer, issuer_url), key)


def server(
    issuer: Issued,
    *names: str,
    key: Key | None = None,
    issuer_url: str = "",
    start: datetime = BORN,
    end: datetime = BORN + YEAR,
) -> Issued:
    """A certificate for a server of these names."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    builder = (
        _builder(names[0], key, issuer, start, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([*map(x509.DNSName, names)]), critical=False)
        .add_extension(usage, critical=False)
    )
    return Issued(_signed(builder, key, issuer, issuer_url), key)


def _signed(
    builder: x509.CertificateBuilder, key: Key, issuer: Issued | None, issuer_url: str
) -> x509.Certificate:
    if issuer_url:
        access = x509.AccessDescription(
            AuthorityInformationAccessOID.CA_ISSUERS, x509.UniformResourceIdentifier(issuer_url)
        )
        builder = builder.add_extension(x509.AuthorityInformationAccess([access]), critical=False)
    return builder.sign(issuer.key if issuer else key, SHA256())


def server_side(chain: list[Issued], folder: Path) -> ssl.SSLContext:
    """TLS for a server; the first of the chain is its own certificate."""
    file = folder / f"{chain[0].certificate.serial_number}.pem"
    file.write_bytes(chain[0].key_pem + b"".join(each.pem for each in chain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def client_side(trusted: Issued) -> ssl.SSLContext:
    """TLS for a client that trusts one authority and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=trusted.pem.decode())
    return context
