"""Who is believed as Amazon SES, and what a message of SNS is taken for."""

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hookbox.errors import ConfigError, OperatorError, Reason, Refused, Unintelligible
from hookbox.model import Kind, Slot
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Provider, Simulation, Trust, VerifiedDelivery
from hookbox.rules.certificates import fingerprint, private_rsa_key, self_signed
from tests.outbound import guarded
from tests.providers.requests import Headers, delivery, events, stored
from tests.providers.samples import FOLDER
from tests.providers.topics import (
    ARN,
    CERTIFICATE_URL,
    FAREWELL,
    HOST,
    NOTIFICATION,
    NOW_S,
    OFFER,
    Posted,
    headers,
    posted,
    signature,
    signed_text,
    source,
    stranger,
    trusting,
)
from tests.rules.hostile import CERTIFICATE_URLS, SUBSCRIBE_URLS

USER = "hookbox:a-password-that-is-not-real"
OTHER_USER = "hookbox:another-one-that-is-not-real"


def verified(
    message: Posted | bytes,
    sent: Headers | None = None,
    provider: Provider | None = None,
    trust: Trust | None = None,
    now_s: float = NOW_S,
) -> VerifiedDelivery:
    """Through `certificate_url` and `verify`, as the box does it; no socket is ever touched."""
    provider = provider or source()
    body = message if isinstance(message, bytes) else message.body
    kind = "Notification" if isinstance(message, bytes) else str(message.members.get("Type"))
    received = delivery(headers(kind) if sent is None else sent, body)
    with guarded() as guard:
        assert provider.certificate_url
        provider.certificate_url(received, trust or trusting(provider))
        found = provider.verify(received, trust or trusting(provider), round(now_s * 1000))
    assert (guard.connects, guard.lookups) == ([], [])
    return found


def refusal(*arguments: object, **named: object) -> Reason:
    with pytest.raises(Refused) as refused:
        verified(*arguments, **named)  # type: ignore[arg-type]
    return refused.value.reason


# -- signatures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("message", [NOTIFICATION, OFFER, FAREWELL], ids=lambda m: m["Type"])
def test_both_signature_versions_are_believed(message: Mapping[str, str], version: str) -> None:
    found = verified(posted(message, version))
    assert (found.slot, found.signed_at, found.skew_s) == (Slot.NONE, NOW_S * 1000, 0)


def test_message_without_subject_is_believed() -> None:
    for version in ("1", "2"):
        message = {name: text for name, text in NOTIFICATION.items() if name != "Subject"}
        verified(posted(message, version))
        verified(posted(message, version).but(Subject=None))


@pytest.mark.parametrize("empty", ["Subject", "Message"])
def test_empty_member_is_part_of_the_signed_text(empty: str) -> None:
    good = posted({**NOTIFICATION, empty: ""})
    verified(good)
    assert refusal(good.without(empty)) in (Reason.SIGNATURE_WRONG, Reason.ENVELOPE_MALFORMED)


@pytest.mark.parametrize("version", ["", "0", "3", "1.0", " 1", "01", "\u0661", "1,2"])
def test_other_signature_versions_are_refused(version: str) -> None:
    text = signed_text(NOTIFICATION)
    for digest in ("sha1", "sha256", "sha512"):
        message = posted().but(SignatureVersion=version, Signature=signature(text, digest=digest))
        assert refusal(message) is Reason.SIGNATURE_VERSION


@pytest.mark.parametrize(("version", "digest"), [("2", "sha1"), ("1", "sha256"), ("2", "sha512")])
def test_version_decides_the_digest(version: str, digest: str) -> None:
    text = signed_text(NOTIFICATION)
    message = posted().but(SignatureVersion=version, Signature=signature(text, digest=digest))
    assert refusal(message) is Reason.SIGNATURE_WRONG


def test_second_version_can_be_demanded() -> None:
    provider = source(require_signature_version=2)
    verified(posted(version="2"), provider=provider)
    assert refusal(posted(version="1"), provider=provider) is Reason.SIGNATURE_VERSION


def test_certificate_that_looks_the_same_proves_nothing() -> None:
    assert refusal(posted(by=stranger())) is Reason.SIGNATURE_WRONG


@pytest.mark.parametrize("pem", [None, b"", b"no certificate", b"-----BEGIN CERTIFICATE-----"])
def test_unusable_certificate_is_our_fault(pem: bytes | None) -> None:
    provider = source()
    trust = replace(trusting(provider), certificate=pem)
    reason = refusal(posted(), provider=provider, trust=trust)
    assert provider.answers.refused_by[reason] == 503


# -- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("age_s", [-7200, -300, 0, 300, 3600, 7200])
def test_retry_of_an_hour_later_is_believed(age_s: int) -> None:
    """The time is the publication's, and no retry renews it."""
    assert verified(posted(), now_s=NOW_S + age_s).skew_s == age_s


@pytest.mark.parametrize(
    ("age_s", "reason"), [(7201, Reason.STALE), (-7201, Reason.FUTURE), (10**6, Reason.STALE)]
)
def test_time_outside_the_window_is_told_from_a_forgery(age_s: int, reason: Reason) -> None:
    with pytest.raises(Refused) as refused:
        verified(posted(), now_s=NOW_S + age_s)
    assert (refused.value.reason, refused.value.authentic) == (reason, True)
    assert refusal(posted().but(Message="x"), now_s=NOW_S + age_s) is Reason.SIGNATURE_WRONG


@pytest.mark.parametrize("time", ["", "yesterday", "1773480415", "2026-13-14T09:26:55Z", "\u0662"])
def test_time_that_is_none_is_refused_though_it_is_signed(time: str) -> None:
    with pytest.raises(Refused):
        verified(posted({**NOTIFICATION, "Timestamp": time}))


# -- topics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [NOTIFICATION, OFFER, FAREWELL], ids=lambda m: m["Type"])
@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:sns:eu-west-1:999999999999:ses-events",
        "arn:aws:sns:eu-west-1:123456789012:other",
        "arn:aws:sns:us-east-1:123456789012:ses-events",
        "arn:aws:sns:eu-west-1:123456789012:SES-events",
        "arn:aws-cn:sns:eu-west-1:123456789012:ses-events",
    ],
)
def test_topic_of_somebody_else_is_refused_though_amazon_signed_it(
    message: Mapping[str, str], arn: str
) -> None:
    assert refusal(posted({**message, "TopicArn": arn})) is Reason.TOPIC_NOT_LISTED


def test_every_listed_topic_is_believed() -> None:
    other = "arn:aws:sns:us-east-1:123456789012:more"
    provider = source(topics=[ARN, other])
    verified(posted(), provider=provider)
    message = posted({**NOTIFICATION, "TopicArn": other})
    assert refusal(message, provider=provider) is Reason.CERTIFICATE_REFUSED
    moved = CERTIFICATE_URL.replace("eu-west-1", "us-east-1")
    verified(message.but(SigningCertURL=moved), provider=provider)


def test_source_that_was_not_configured_believes_nobody() -> None:
    assert refusal(posted(), provider=PROVIDERS["ses"]) is Reason.TOPIC_NOT_LISTED


# -- URLs: refused before anything is looked up or connected to ----------------------------------


@pytest.mark.parametrize("url", CERTIFICATE_URLS, ids=lambda url: repr(url[:90]))
def test_hostile_certificate_url_is_refused_without_a_request(url: str) -> None:
    assert refusal(posted().but(SigningCertURL=url)) is Reason.CERTIFICATE_REFUSED


@pytest.mark.parametrize("url", SUBSCRIBE_URLS, ids=lambda url: repr(url[:90]))
def test_hostile_subscribe_url_is_refused_without_a_request(url: str) -> None:
    """Though it is rightly signed: somebody's topic may be misconfigured, or Amazon's servers."""
    lines = "\n" in url  # then it is no envelope at all
    reason = Reason.ENVELOPE_MALFORMED if lines else Reason.CONFIRMATION_REFUSED
    assert refusal(posted({**OFFER, "SubscribeURL": url})) is reason


def test_right_certificate_url_is_what_is_asked_for() -> None:
    provider = source()
    assert provider.certificate_url
    received = delivery(headers(), posted().body)
    assert provider.certificate_url(received, trusting(provider)) == CERTIFICATE_URL


# -- headers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", "x", None])
def test_content_type_does_not_matter(content_type: str | None) -> None:
    sent = {name: value for name, value in headers().items() if name != "Content-Type"}
    verified(posted(), {**sent, "Content-Type": content_type} if content_type else sent)


def test_headers_may_be_absent() -> None:
    verified(posted(), {})


@pytest.mark.parametrize("kind", ["SubscriptionConfirmation", "", "notification", "Bounce"])
def test_type_header_never_chooses_the_path(kind: str) -> None:
    """It is not signed: where it contradicts the body nothing is done at all."""
    assert refusal(posted(), headers(kind)) is Reason.HEADER_MALFORMED


@pytest.mark.parametrize("kind", ["SubscriptionConfirmation", "UnsubscribeConfirmation"])
def test_notification_is_never_taken_for_a_confirmation(kind: str) -> None:
    message = posted().but(Type=kind, Token="x", SubscribeURL=OFFER["SubscribeURL"])
    assert refusal(message, headers(kind)) is Reason.SIGNATURE_WRONG
    assert refusal(message, headers("Notification")) is Reason.HEADER_MALFORMED


def test_header_that_is_there_twice_is_refused() -> None:
    twice = [*headers().items(), ("x-amz-sns-message-type", "Notification")]
    assert refusal(posted(), twice) is Reason.HEADER_AMBIGUOUS


@pytest.mark.parametrize("flag", ["true", "True"])
def test_raw_delivery_is_refused_and_named(flag: str) -> None:
    """It looks like SES, and nobody signed it."""
    body = (FOLDER / "ses" / "raw-delivery" / "body").read_bytes()
    raw = headers(**{"x-amz-sns-rawdelivery": flag})
    for content in (body, b"{}", b"text", b""):
        assert refusal(content, raw) is Reason.RAW_DELIVERY
        assert refusal(content, headers()) is Reason.ENVELOPE_MALFORMED


# -- Basic ---------------------------------------------------------------------------------------


def test_credentials_are_demanded_where_there_are_some() -> None:
    """With an answer that makes SNS send them: it calls without them first."""
    provider = source()
    trust = trusting(provider, USER)
    assert refusal(posted(), provider=provider, trust=trust) is Reason.CREDENTIALS_MISSING
    assert provider.answers.refused_by[Reason.CREDENTIALS_MISSING] == 401
    assert provider.answers.refused_by[Reason.CREDENTIALS_WRONG] == 401
    assert (provider.answers.refused, provider.answers.busy) == (403, 503)


@pytest.mark.parametrize(
    ("secrets", "slot"),
    [
        ((USER,), Slot.CURRENT),
        ((USER, OTHER_USER), Slot.CURRENT),
        ((OTHER_USER, USER), Slot.PREVIOUS),
    ],
)
def test_credentials_of_either_slot_are_believed(secrets: tuple[str, ...], slot: Slot) -> None:
    provider = source()
    trust = trusting(provider, *secrets)
    right = "aG9va2JveDphLXBhc3N3b3JkLXRoYXQtaXMtbm90LXJlYWw="
    for scheme in ("Basic", "basic", "BASIC"):
        sent = headers(Authorization=f"{scheme} {right}")
        assert verified(posted(), sent, provider, trust).slot is slot


@pytest.mark.parametrize(
    "value",
    [
        *("Basic", "Basic ", "Bearer aG9va2JveDphLXBhc3N3b3JkLXRoYXQtaXMtbm90LXJlYWw=", "x"),
        *("Basic aG9va2JveDphLXBhc3N3b3JkLXRoYXQtaXMtbm90LXJlYWw", USER, f"Basic {USER}"),
        *("Basic aG9va2JveDphbm90aGVy", "Basic !!!!", "Basic aG9va2JveDo=", "Basic Og=="),
        "aG9va2JveDphLXBhc3N3b3JkLXRoYXQtaXMtbm90LXJlYWw=",
    ],
)
def test_wrong_credentials_are_refused_though_the_signature_is_right(value: str) -> None:
    provider = source()
    sent = headers(Authorization=value)
    found = refusal(posted(), sent, provider, trusting(provider, USER))
    assert found is Reason.CREDENTIALS_WRONG


def test_right_credentials_do_not_replace_the_signature() -> None:
    provider = source()
    right = "Basic aG9va2JveDphLXBhc3N3b3JkLXRoYXQtaXMtbm90LXJlYWw="
    sent = headers(Authorization=right)
    message = posted(by=stranger())
    found = refusal(message, sent, provider, trusting(provider, USER))
    assert found is Reason.SIGNATURE_WRONG


@pytest.mark.parametrize("secret", ["hookbox", ":password-of-enough-letters", "hookbox:", "a:b"])
def test_secret_that_is_no_credentials_is_refused(secret: str) -> None:
    with pytest.raises(ConfigError) as refused:
        source().read_secret(secret)
    assert refused.value.mend


# -- content -------------------------------------------------------------------------------------


def test_digest_is_over_the_message_alone() -> None:
    """Every subscription's envelope is another one, and so is every retry's in theory."""
    provider = source()
    (one,) = events(provider.split(verified(posted())))
    renewed = {**NOTIFICATION, "Timestamp": "2026-03-14T09:27:00.000Z", "Subject": "Another"}
    (same,) = events(provider.split(verified(posted(renewed, "2").but(UnsubscribeURL="x"))))
    (other,) = events(provider.split(verified(posted({**NOTIFICATION, "Message": "{}"}))))
    assert one.digest == same.digest != other.digest
    assert one.key == same.key == other.key


def test_only_an_offer_asks_for_a_job() -> None:
    provider = source()
    asked = {
        message["Type"]: events(provider.split(verified(posted(message))))[0].jobs
        for message in (NOTIFICATION, OFFER, FAREWELL)
    }
    assert asked == {
        "Notification": (),
        "SubscriptionConfirmation": ("confirm",),
        "UnsubscribeConfirmation": (),
    }


@pytest.mark.parametrize("message", ["text", "", "[]", "5", '{"a": 1, "a": 2}', "{", "null"])
def test_message_that_is_not_of_ses_is_set_aside_under_its_id(message: str) -> None:
    """Whoever may publish to the topic can write what they like; it is authentic all the same."""
    found = verified(posted({**NOTIFICATION, "Message": message}))
    with pytest.raises(Unintelligible) as error:
        source().split(found)
    assert error.value.key == NOTIFICATION["MessageId"]


def test_escaped_surrogate_in_the_message_passes_and_is_made_readable() -> None:
    provider = source()
    message = NOTIFICATION["Message"].replace('"5.1.1"', '"5.1.1", "diagnosticCode": "a \\ud83d b"')
    found = verified(posted({**NOTIFICATION, "Message": message}))
    (event,) = events(provider.split(found))
    (notification,) = provider.normalize(stored(provider, found, event))
    assert notification.extras["diagnostic"] == "a \ufffd b"


# -- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({}, "topics"),
        ({"topics": []}, "topics"),
        ({"topics": ARN}, "topics"),
        ({"topics": [5]}, "topics"),
        ({"topics": [ARN, "ses-events"]}, "topics"),
        ({"topics": [ARN + "*"]}, "topics"),
        ({"topics": [ARN], "require_signature_version": 3}, "require_signature_version"),
        ({"topics": [ARN], "require_signature_version": True}, "require_signature_version"),
        ({"topics": [ARN], "require_signature_version": "2"}, "require_signature_version"),
        ({"topics": [ARN], "certificates": "relative"}, "certificates"),
        ({"topics": [ARN], "certificates": 5}, "certificates"),
        ({"topics": [ARN], "topic": ARN}, "topic"),
        ({"topics": [ARN], "raw_delivery": True}, "raw_delivery"),
    ],
    ids=str,
)
def test_setting_that_cannot_be_meant_is_refused_with_its_mend(
    options: dict[str, object], where: str
) -> None:
    provider = PROVIDERS["ses"]
    with pytest.raises(ConfigError) as refused:
        provider.configure(provider, options)
    assert refused.value.where == where
    assert refused.value.mend


def test_directory_of_certificates_is_known_to_the_flow(tmp_path: Path) -> None:
    assert source().certificates is None
    assert source(certificates=str(tmp_path)).certificates == tmp_path


# -- simulation ----------------------------------------------------------------------------------

TO = "Ana.B+x@Example.com"


@functools.cache
def local_key() -> str:
    return private_rsa_key()


@functools.cache
def local_certificate() -> bytes:
    return self_signed(local_key(), "sns.amazonaws.com", NOW_S * 1000)


@pytest.mark.parametrize("kind", source().kinds)
@pytest.mark.parametrize("secret", ["", USER])
def test_simulated_kind_reads_back_as_itself(kind: Kind, secret: str) -> None:
    """By a source that trusts the test certificate, and asks for SHA-256."""
    provider = source(require_signature_version=2)
    assert provider.simulate
    wanted = Simulation(
        kind=kind, to=TO, secret=secret, id="sim_1", now=NOW_S * 1000, signing_key=local_key()
    )
    made = provider.simulate(wanted)
    trust = replace(
        trusting(provider, *([secret] if secret else [])),
        certificate=local_certificate(),
    )
    found = verified(made.body, made.headers, provider, trust)
    (event,) = events(provider.split(found))
    (notification,) = provider.normalize(stored(provider, found, event))
    assert (event.key, notification.kind) == (made.key, kind)
    assert event.jobs == ()
    if kind not in (Kind.CONTROL, Kind.UNKNOWN):
        assert notification.recipient == TO
        assert notification.occurred_at == NOW_S * 1000
    url = json.loads(made.body)["SigningCertURL"]
    assert url == f"https://{HOST}/SimpleNotificationService-{fingerprint(local_key())}.pem"
    assert refusal(made.body, made.headers, provider, trusting(provider, *filter(None, [secret])))


@pytest.mark.parametrize(
    "changed", [{"signing_key": ""}, {"kind": Kind.QUEUED}, {"kind": Kind.ACCOUNT}], ids=str
)
def test_what_cannot_be_simulated_is_said(changed: dict[str, object]) -> None:
    wanted = Simulation(
        kind=Kind.BOUNCED, to=TO, secret="", id="sim_1", now=0, signing_key=local_key()
    )
    provider = source()
    assert provider.simulate
    with pytest.raises(OperatorError):
        provider.simulate(replace(wanted, **changed))  # type: ignore[arg-type]
