"""Certificates: the key in them, the chain above them, and those that we make ourselves."""

import warnings
from datetime import timedelta

import pytest

from hookbox.rules.certificates import (
    authorities,
    certificate_key,
    check,
    fingerprint,
    issuer_urls,
    private_rsa_key,
    rsa_signature,
    self_signed,
    valid_until,
)
from tests.pki import BORN, YEAR, authority, rsa_key, server

AT = round((BORN + timedelta(days=1)).timestamp() * 1000)
NAME = "sns.amazonaws.com"


def test_own_certificate_proves_what_its_key_signed() -> None:
    key = private_rsa_key()
    proof = certificate_key(self_signed(key, NAME, AT))
    signature = rsa_signature(key, b"message")
    assert proof.verify(signature, b"message")
    assert not proof.verify(signature, b"massage")
    assert not certificate_key(self_signed(key, NAME, AT), sha1=True).verify(signature, b"message")
    assert not certificate_key(self_signed(private_rsa_key(), NAME, AT)).verify(
        signature, b"message"
    )


def test_pair_has_a_name_of_its_own() -> None:
    one, other = private_rsa_key(), private_rsa_key()
    assert fingerprint(one) == fingerprint(one) != fingerprint(other)
    assert len(fingerprint(one)) == 32


@pytest.mark.parametrize("text", ["", "x", "-----BEGIN PRIVATE KEY-----"])
def test_text_that_is_no_private_key_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="private key"):
        rsa_signature(text, b"")


def test_key_of_another_kind_is_named() -> None:
    with pytest.raises(ValueError, match="RSA"):
        rsa_signature(authority("x").key_pem.decode(), b"")
    with pytest.raises(ValueError, match="RSA"):
        certificate_key(authority("x").pem)


@pytest.mark.parametrize(
    "content",
    [b"", b"text", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", b"\x30\x03abc"],
)
def test_content_without_certificate_is_named(content: bytes) -> None:
    for read in (certificate_key, valid_until):
        with pytest.raises(ValueError, match="no certificate"):
            read(content)
    assert issuer_urls(content) == []
    with pytest.raises(ValueError, match="no authority"):
        authorities([content])


def test_facts_of_a_certificate() -> None:
    root = authority("root")
    found = server(root, NAME, issuer_url="http://ca.example/x.cer")
    assert issuer_urls(found.pem) == issuer_urls(found.der) == ["http://ca.example/x.cer"]
    assert issuer_urls(root.pem) == []
    assert valid_until(found.pem) == round((BORN + YEAR).timestamp() * 1000)


def test_chain_may_come_from_anywhere_but_must_end_at_a_trusted_authority() -> None:
    root = authority("root")
    between = authority("between", root)
    leaf = server(between, NAME, key=rsa_key())
    trusted = authorities([b"rubbish", root.pem])
    check(leaf.pem + between.pem, [NAME], AT, trusted)
    check(leaf.pem, [NAME], AT, trusted, [between.der])
    check(leaf.pem, ["other.example", NAME], AT, trusted, [authority("x").pem, between.pem])
    for issuers in ([], [authority("between", authority("root")).pem], [root.pem]):
        with pytest.raises(ValueError, match="no authority vouches"):
            check(leaf.pem, [NAME], AT, trusted, issuers)
    with pytest.raises(ValueError, match="no authority vouches"):
        check(leaf.pem + between.pem, [NAME], AT, authorities([authority("root").pem]))


def test_name_and_date_are_asked_for() -> None:
    root = authority("root")
    trusted, leaf = authorities([root.pem]), server(root, NAME, "two.example")
    check(leaf.pem, ["two.example"], AT, trusted)
    for names in ([], ["three.example"], [f"x.{NAME}"], [NAME.upper()]):
        with pytest.raises(ValueError, match="somebody else"):
            check(leaf.pem, names, AT, trusted)
    for days in (-1, 366):
        moment = round((BORN + timedelta(days=days)).timestamp() * 1000)
        with pytest.raises(ValueError, match="no authority vouches"):
            check(leaf.pem, [NAME], moment, trusted)


def test_certificate_that_vouches_for_itself_is_not_enough() -> None:
    own = self_signed(private_rsa_key(), NAME, AT)
    with pytest.raises(ValueError, match="no authority vouches"):
        check(own, [NAME], AT, authorities([authority("root").pem]), [own])


def test_authorities_that_warn_are_read_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        authorities([authority("root").pem])
