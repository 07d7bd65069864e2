"""What SNS signs, where it may point to, and what is made of an offer to subscribe."""

import json
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.errors import Reason, Refused
from hookbox.rules.sns import (
    SIGNED,
    certificate_place,
    confirm_url,
    envelope,
    is_certificate_url,
    is_subscribe_url,
    signed_text,
    signer_names,
    topic,
)
from tests.rules.hostile import CERTIFICATE_URLS, GOOD, HOST, NAME, SUBSCRIBE_URLS

ARN = "arn:aws:sns:eu-west-1:123456789012:ses-events"
NOTIFICATION: dict[str, object] = {
    "Type": "Notification",
    "MessageId": "7d0f3a52-91c4-5b7e-8a60-1f2e3d4c0001",
    "TopicArn": ARN,
    "Message": "{}",
    "Timestamp": "2026-03-14T09:26:53.101Z",
    "SignatureVersion": "1",
    "Signature": "AAAA",
    "SigningCertURL": GOOD,
}
OFFER = NOTIFICATION | {
    "Type": "SubscriptionConfirmation",
    "Token": "2336412f37fb687f5d51e6e2425dacbba",
    "SubscribeURL": f"https://{HOST}/?Action=ConfirmSubscription&TopicArn={ARN}&Token=2336",
}


def _body(members: dict[str, object], **changed: object) -> bytes:
    return json.dumps(members | changed).encode()


def _refusal(body: bytes) -> Reason:
    with pytest.raises(Refused) as refused:
        envelope(body)
    return refused.value.reason


# -- the signed text -----------------------------------------------------------------------------


def test_signed_text_of_a_notification() -> None:
    body = _body(NOTIFICATION, Message="a\nb", Subject="Hi")
    assert envelope(body).signed == (
        b"Message\na\nb\n"
        b"MessageId\n7d0f3a52-91c4-5b7e-8a60-1f2e3d4c0001\n"
        b"Subject\nHi\n"
        b"Timestamp\n2026-03-14T09:26:53.101Z\n"
        b"TopicArn\narn:aws:sns:eu-west-1:123456789012:ses-events\n"
        b"Type\nNotification\n"
    )


@pytest.mark.parametrize("kind", ["SubscriptionConfirmation", "UnsubscribeConfirmation"])
def test_signed_text_of_both_confirmations_holds_token_and_url(kind: str) -> None:
    """Some libraries leave the token of the second out, and then refuse the real ones."""
    names = envelope(_body(OFFER, Type=kind)).signed.decode().split("\n")[:-1:2]
    assert " ".join(names) == "Message MessageId SubscribeURL Timestamp Token TopicArn Type"
    assert "Subject" not in SIGNED[kind]


def test_empty_members_are_signed_and_absent_ones_are_not() -> None:
    """Presence decides: an empty subject or message is a line of its own."""
    assert b"Subject\n\nTimestamp" in envelope(_body(NOTIFICATION, Subject="")).signed
    assert envelope(_body(NOTIFICATION, Message="")).signed.startswith(b"Message\n\nMessageId")
    assert b"Subject" not in envelope(_body(NOTIFICATION)).signed
    assert b"Subject" not in envelope(_body(NOTIFICATION, Subject=None)).signed


def test_text_is_signed_as_utf8_however_it_was_escaped() -> None:
    message = 'ünïcödé \U0001f600 / " \\ \t'
    escaped, plain = (
        json.dumps(NOTIFICATION | {"Message": message}, ensure_ascii=ascii_only).encode()
        for ascii_only in (True, False)
    )
    assert escaped != plain
    assert envelope(escaped).signed == envelope(plain).signed
    assert f"Message\n{message}\n".encode() in envelope(plain).signed


def test_unsigned_members_do_not_matter() -> None:
    more = {"UnsubscribeURL": 5, "MessageAttributes": {"a": {"Type": "String"}}, "Subject2": []}
    assert envelope(_body(NOTIFICATION, **more)) == envelope(_body(NOTIFICATION))


# -- what cannot be read -------------------------------------------------------------------------

WRONG: list[object] = [None, True, 5, 1.5, [], ["x"], {}, {"a": "b"}, 10**400]


@pytest.mark.parametrize("name", [*SIGNED["SubscriptionConfirmation"], "SigningCertURL"])
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_member_of_another_type_is_malformed(name: str, value: object) -> None:
    assert _refusal(_body(OFFER, **{name: value})) is Reason.ENVELOPE_MALFORMED


@pytest.mark.parametrize("value", [each for each in WRONG if each is not None], ids=repr)
def test_subject_of_another_type_is_malformed(value: object) -> None:
    assert _refusal(_body(NOTIFICATION, Subject=value)) is Reason.ENVELOPE_MALFORMED


@pytest.mark.parametrize("name", sorted(OFFER))
def test_missing_member_is_refused(name: str) -> None:
    body = json.dumps({n: value for n, value in OFFER.items() if n != name}).encode()
    missing = Reason.SIGNATURE_MISSING if name == "Signature" else Reason.ENVELOPE_MALFORMED
    assert _refusal(body) is missing


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"5",
        b"{",
        b"\xff\xfe{}",
        _body(NOTIFICATION) + b"x",
        _body(NOTIFICATION)[:-1] + b', "Type": "Notification"}',
        _body(NOTIFICATION)[:-1] + b', "x": NaN}',
        _body(NOTIFICATION)[:-1] + b', "x": ' + b"9" * 5000 + b"}",
        _body(NOTIFICATION)[:-1] + b', "x": ' + b"[" * 100_000,
        _body(NOTIFICATION, Message="\ud83d"),
        _body(NOTIFICATION, Type="notification"),
        _body(NOTIFICATION, Type="UnsubscriptionConfirmation"),
        _body(NOTIFICATION, Type=""),
    ],
    ids=lambda body: repr(body[:20]),
)
def test_body_that_is_no_envelope_is_malformed(body: bytes) -> None:
    assert _refusal(body) is Reason.ENVELOPE_MALFORMED


@pytest.mark.parametrize("name", sorted(set(SIGNED["SubscriptionConfirmation"]) - {"Message"}))
def test_line_break_outside_the_message_is_refused(name: str) -> None:
    """Or a part of the message could be passed off as other members, under the same signature."""
    _refusal(_body(OFFER, **{name: f"{OFFER[name]}\n"}))


def test_no_two_envelopes_have_one_signed_text() -> None:
    message = "a\nMessageId\nforged\nSubject\nb"
    signed = envelope(_body(NOTIFICATION, Message=message)).signed
    rest = f"b\nMessageId\n{NOTIFICATION['MessageId']}"
    forged = NOTIFICATION | {"Message": "a", "MessageId": "forged", "Subject": rest}
    assert signed_text({n: str(value) for n, value in forged.items()}) == signed
    assert _refusal(_body(forged)) is Reason.ENVELOPE_MALFORMED


@pytest.mark.parametrize("message_id", ["", "a\tb", "a\x00", "x" * 1000])
def test_message_id_that_is_no_key_is_refused(message_id: str) -> None:
    assert _refusal(_body(NOTIFICATION, MessageId=message_id)) is Reason.ID_MALFORMED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(OFFER)), JSON), st.sampled_from(sorted(OFFER)))
def test_nothing_but_a_refusal_comes_of_noise(changed: dict[str, object], gone: str) -> None:
    members = {name: value for name, value in (OFFER | changed).items() if name != gone}
    with pytest.raises(Refused):
        envelope(json.dumps(members).encode())


@given(st.binary(max_size=200))
def test_nothing_but_a_refusal_comes_of_bytes(body: bytes) -> None:
    with pytest.raises(Refused):
        envelope(body)


# -- ARNs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arn", "host"),
    [
        (ARN, HOST),
        ("arn:aws:sns:us-east-1:999999999999:a_b-C", "sns.us-east-1.amazonaws.com"),
        ("arn:aws-us-gov:sns:us-gov-west-1:123456789012:t", "sns.us-gov-west-1.amazonaws.com"),
        ("arn:aws-cn:sns:cn-north-1:123456789012:t", "sns.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_topic_has_one_host(arn: str, host: str) -> None:
    found = topic(arn)
    assert found is not None
    assert (found.arn, found.host) == (arn, host)


@pytest.mark.parametrize(
    "arn",
    [
        *("", "ses-events", ARN[:-1] + "\n", f" {ARN}", ARN + ":sub", ARN.upper(), ARN + "\x00"),
        ARN.replace(":sns:", ":sqs:"),
        ARN.replace("aws", "awsx"),
        ARN.replace("aws:", "aws-iso:"),
        ARN.replace("eu-west-1", ""),
        ARN.replace("eu-west-1", "evil.example/x"),
        ARN.replace("eu-west-1", "eu-west-1.amazonaws.com@evil"),
        ARN.replace("eu-west-1", "-eu"),
        ARN.replace("123456789012", "12345678901"),
        ARN.replace("123456789012", "\u0661" * 12),
        ARN.replace("ses-events", ""),
        ARN.replace("ses-events", "a b"),
        ARN.replace("ses-events", "x" * 257),
        ARN.replace("ses-events", "ses\u00e9"),
    ],
    ids=repr,
)
def test_text_that_is_no_arn_names_no_topic(arn: str) -> None:
    assert topic(arn) is None
    assert _refusal(_body(NOTIFICATION, TopicArn=arn)) is Reason.TOPIC_NOT_LISTED


# -- certificate URLs ----------------------------------------------------------------------------


def test_enough_hostile_urls_are_tried() -> None:
    assert len(set(CERTIFICATE_URLS)) >= 60
    assert len(set(SUBSCRIBE_URLS)) >= 40


def test_right_certificate_url_is_accepted() -> None:
    found = topic(ARN)
    assert found is not None
    assert is_certificate_url(GOOD, found)
    assert certificate_place(GOOD) == (HOST, NAME)


@pytest.mark.parametrize("url", CERTIFICATE_URLS, ids=repr)
def test_hostile_certificate_url_is_refused(url: str) -> None:
    found = topic(ARN)
    assert found is not None
    assert not is_certificate_url(url, found)


LOOSER: dict[str, Callable[[str], bool]] = {
    "ends with": lambda url: (urlsplit(url).hostname or "").endswith(".amazonaws.com"),
    "host alone": lambda url: urlsplit(url).hostname == HOST,
    "prefix": lambda url: url.startswith(f"https://{HOST}"),
    "search": lambda url: re.search(r"sns\.[a-z0-9-]+\.amazonaws\.com", url) is not None,
    "any region": lambda url: certificate_place(url) is not None,
    "match, no end": lambda url: re.match(rf"https://{HOST}/{NAME}", url) is not None,
    "dollar": lambda url: re.match(rf"https://{HOST}/{NAME}$", url) is not None,
    "stripped": lambda url: url.strip() == GOOD,
    "case": lambda url: url.lower() == GOOD.lower(),
}


@pytest.mark.parametrize("rule", LOOSER)
def test_looser_rule_is_caught_by_some_url(rule: str) -> None:
    """The test of the test: each of these rules is in use somewhere."""

    def passes(url: str) -> bool:
        try:
            return LOOSER[rule](url)
        except ValueError:
            return False

    assert passes(GOOD)
    assert any(passes(url) for url in CERTIFICATE_URLS)


def test_chinese_host_has_its_own_ending() -> None:
    china = topic("arn:aws-cn:sns:cn-north-1:123456789012:t")
    assert china is not None
    assert is_certificate_url(f"https://sns.cn-north-1.amazonaws.com.cn/{NAME}", china)
    assert not is_certificate_url(f"https://sns.cn-north-1.amazonaws.com/{NAME}", china)
    assert certificate_place(
        "https://sns.cn-north-1.amazonaws.com.cn/SimpleNotificationService-0123456789abcdef.pem"
    )


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("sns.eu-west-1.amazonaws.com", "sns.amazonaws.com"),
        ("sns.af-south-1.amazonaws.com", "sns-signing.af-south-1.amazonaws.com"),
        ("sns.af-south-1.amazonaws.com", "sns.af-south-1.amazonaws.com"),
        ("sns.us-gov-east-1.amazonaws.com", "sns-us-gov-west-1.amazonaws.com"),
        ("sns.cn-north-1.amazonaws.com.cn", "sns-cn-north-1.amazonaws.com.cn"),
    ],
)
def test_names_that_amazon_signs_under_are_known(host: str, name: str) -> None:
    assert name in signer_names(host)


def test_name_of_another_region_signs_nothing() -> None:
    names = signer_names("sns.af-south-1.amazonaws.com")
    assert not any("eu-west-1" in name for name in names)


# -- offers to subscribe -------------------------------------------------------------------------


def test_confirmation_is_made_of_topic_and_token() -> None:
    """And not of the URL that the offer brings, whatever else that may say."""
    token = "2336412f37fb&TopicArn=evil#/%00"
    url = confirm_url(_body(OFFER, Token=token, SubscribeURL=f"https://{HOST}/?Action=Delete"))
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.path) == ("https", HOST, "/")
    assert parse_qs(parts.query) == {
        "Action": ["ConfirmSubscription"],
        "TopicArn": [ARN],
        "Token": [token],
    }


def test_right_subscribe_url_is_accepted() -> None:
    found = topic(ARN)
    assert found is not None
    assert is_subscribe_url(str(OFFER["SubscribeURL"]), found)


@pytest.mark.parametrize("url", SUBSCRIBE_URLS, ids=lambda url: repr(url[:90]))
def test_hostile_subscribe_url_confirms_nothing(url: str) -> None:
    with pytest.raises(Refused):
        confirm_url(_body(OFFER, SubscribeURL=url))


@pytest.mark.parametrize("token", ["", "a b", "a\n", "\u00e9", "x" * 2000])
def test_token_that_is_none_confirms_nothing(token: str) -> None:
    with pytest.raises(Refused):
        confirm_url(_body(OFFER, Token=token))


@pytest.mark.parametrize("kind", ["Notification", "UnsubscribeConfirmation"])
def test_nothing_else_is_ever_confirmed(kind: str) -> None:
    """The URL of an unsubscription would subscribe again."""
    with pytest.raises(Refused):
        confirm_url(_body(OFFER, Type=kind))
