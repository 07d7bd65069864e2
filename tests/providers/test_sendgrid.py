"""SendGrid: one key per event, one reading per fact, and batches that lose nothing."""

import base64
import gzip
import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.errors import ConfigError, OperatorError, Reason, Refused, Unintelligible
from hookbox.model import BounceClass, Kind, Notification, RejectReason, Slot, Split
from hookbox.providers.contract import Simulation
from hookbox.rules.signatures import ecdsa_pair, ecdsa_signature
from tests.providers.requests import delivery, events, proved, provider_of, stored, trust

PROVIDER = provider_of("sendgrid")
PUBLIC, PRIVATE = ecdsa_pair()
NOW_S = 1_773_480_413
STAMP = str(NOW_S)

MESSAGE = "14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0"
EVENT = {
    "email": "ana@example.com",
    "timestamp": NOW_S,
    "event": "delivered",
    "sg_event_id": "s1",
    "sg_message_id": MESSAGE,
}


def signed(body: bytes, stamp: str = STAMP, private: str = PRIVATE) -> dict[str, str]:
    signature = ecdsa_signature(private, stamp.encode() + body)
    return {
        "X-Twilio-Email-Event-Webhook-Signature": base64.b64encode(signature).decode(),
        "X-Twilio-Email-Event-Webhook-Timestamp": stamp,
    }


def split(*elements: object, headers: Mapping[str, str] | None = None) -> Split:
    found = PROVIDER.split(proved(delivery(headers or {}, json.dumps(elements).encode())))
    assert isinstance(found, Split)
    return found


def read(**members: object) -> Notification:
    """What one event says; a member that is None is left out."""
    event = {name: value for name, value in {**EVENT, **members}.items() if value is not None}
    return _read(json.dumps([event]).encode())


def _read(body: bytes) -> Notification:
    verified = proved(delivery({}, body))
    (event,) = events(PROVIDER.split(verified))
    (notification,) = PROVIDER.normalize(stored(PROVIDER, verified, event))
    return notification


# -- proof ---------------------------------------------------------------------------------------


def test_line_ends_between_and_after_the_events_are_signed() -> None:
    body = b'[{"email":"a@example.com","event":"delivered"},\r\n{"event":"bounce"}]\r\n'
    keys = trust(PROVIDER, PUBLIC)
    headers = signed(body)
    assert PROVIDER.verify(delivery(headers, body), keys, NOW_S * 1000).slot is Slot.CURRENT
    with pytest.raises(Refused) as refused:
        PROVIDER.verify(delivery(headers, body.replace(b"\r\n", b"")), keys, NOW_S * 1000)
    assert refused.value.reason is Reason.SIGNATURE_WRONG


def _pem(text: str) -> str:
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN PUBLIC KEY-----", *lines, "-----END PUBLIC KEY-----", ""])


@pytest.mark.parametrize(
    "pasted",
    [
        PUBLIC,
        f"  {PUBLIC}\n",
        "\n".join(PUBLIC[at : at + 20] for at in range(0, len(PUBLIC), 20)),
        _pem(PUBLIC),
        _pem(PUBLIC).replace("\n", "\r\n"),
        _pem(PUBLIC).replace("\n", "\n\n"),
        _pem(PUBLIC).replace("\n", ""),
        _pem(PUBLIC).replace("\n", " "),
        _pem(PUBLIC).replace("\n", "\\n"),
        PRIVATE,
    ],
    ids=["bare", "blanks", "wrapped", "pem", "crlf", "gaps", "flat", "joined", "escaped", "pair"],
)
def test_key_is_read_however_it_was_pasted(pasted: str) -> None:
    body = json.dumps([EVENT]).encode()
    received = delivery(signed(body), body)
    assert PROVIDER.verify(received, trust(PROVIDER, pasted), NOW_S * 1000).signed_at


RSA = (
    "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCxQo8/cL49H6snTxeXjU0E2OQ2fiXbjhzW9LgAdv7iqo8Wo2wjor4k"
    "UT9tGGh7EQPLpc/Kb6HHHKnbZYcRCFV8KNf40AEYzj+UIUruPrftS7dpmzD0gfYRqn4ZUwki7NroZ0tlDnmGXw55p2DK"
    "Nu7lFhT/iHKlgFlm/X9cyaxBowIDAQAB"
)
P384 = (
    "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEtPDUsfnqE7nDhi7Afam64bpCvGykVl5Cem+MYZPT4Q4YoAZrhESiOO9vcgR+"
    "69DU2CHcZqXe1kx++mZYFssmcu8ZpZ7YOmAYTaE5Rf2+GXxiYUE3h+P4IwUNwK6Xrm1Q"
)


@pytest.mark.parametrize(
    "pasted",
    [
        *("", " \n", "key", RSA, P384, PUBLIC[:-8], PUBLIC[4:], "\ud800", PRIVATE[:100]),
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PUBLIC KEY----------END PUBLIC KEY-----",
    ],
)
def test_what_is_no_such_key_is_refused_with_a_mend(pasted: str) -> None:
    with pytest.raises(ConfigError) as refused:
        PROVIDER.read_secret(pasted)
    assert refused.value.mend


def test_window_is_26_hours_both_ways() -> None:
    body = json.dumps([EVENT]).encode()
    received, keys = delivery(signed(body), body), trust(PROVIDER, PUBLIC)
    for skew_s, reason in (
        *((0, None), (26 * 3600, None), (-26 * 3600, None)),
        *((26 * 3600 + 1, Reason.STALE), (-26 * 3600 - 1, Reason.FUTURE)),
    ):
        if reason is None:
            PROVIDER.verify(received, keys, (NOW_S + skew_s) * 1000)
            continue
        with pytest.raises(Refused) as refused:
            PROVIDER.verify(received, keys, (NOW_S + skew_s) * 1000)
        assert (refused.value.reason, refused.value.authentic) == (reason, True)


# -- identity ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "absent", [None, "", " ", "None", "null", "undefined", 1.5, [], {}, True, "\0"]
)
def test_without_a_usable_id_the_key_is_made_from_content(absent: object) -> None:
    (event,) = split({**EVENT, "sg_event_id": absent}).events
    (bare,) = split({name: each for name, each in EVENT.items() if name != "sg_event_id"}).events
    assert event.key == bare.key
    assert event.synthesised
    assert event.key.startswith("h:")


def test_recipients_without_ids_stay_apart_and_copies_together() -> None:
    """Three people leave a group in the same second; the post comes twice."""
    leave = {**EVENT, "event": "group_unsubscribe", "sg_event_id": None, "sg_message_id": ""}
    posts = [
        split(*({**leave, "email": f"{name}@example.com"} for name in order))
        for order in ("abc", "cab")
    ]
    keys = [{event.key for event in post.events} for post in posts]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 3


def test_ids_that_differ_only_in_case_are_two() -> None:
    found = split({**EVENT, "sg_event_id": "aBc="}, {**EVENT, "sg_event_id": "AbC="})
    assert [event.key for event in found.events] == ["aBc=", "AbC="]


def test_regrouped_event_is_the_same_event() -> None:
    """In another batch, with its members in another order and other white space."""
    other = {**EVENT, "sg_event_id": "s2"}
    first = split(EVENT, other)
    turned = dict(reversed(other.items()))
    body = b"[ " + json.dumps(turned, indent=3).encode() + b' , {"event": "x"} ]'
    again = events(PROVIDER.split(proved(delivery({}, body))))
    assert (again[0].key, again[0].digest) == (first.events[1].key, first.events[1].digest)


def test_copies_with_other_ids_mean_one_fact() -> None:
    deferral = {"event": "deferred", "response": "450 4.7.1 try again later", "attempt": "5"}
    meanings = {read(**deferral, sg_event_id=f"copy-{number}").meaning for number in range(6)}
    assert len(meanings) == 1
    assert meanings != {None}


@pytest.mark.parametrize(
    "other",
    [
        {"email": "eve@example.com"},
        {"timestamp": NOW_S + 1},
        {"event": "processed"},
        {"sg_message_id": "another.filter0001.1"},
        {"event": "group_unsubscribe", "asm_group_id": 1},
        {"event": "group_unsubscribe", "asm_group_id": 2},
        {"event": "unsubscribe"},
        {"event": "bounce", "type": "bounce"},
        {"event": "bounce", "type": "blocked"},
        {"event": "dropped", "reason": "Bounced Address"},
        {"event": "dropped", "reason": "Invalid"},
        {"event": "click", "url": "https://example.com/a"},
        {"event": "click", "url": "https://example.com/b"},
    ],
    ids=str,
)
def test_other_facts_have_other_meanings(other: dict[str, object]) -> None:
    """A block never hides a hard bounce, nor one group's goodbye the goodbye to all."""
    mine = read(**other).meaning
    everything = [
        *({}, {"event": "bounce", "type": "bounce", "email": "eve@example.com"}),
        *({"event": "bounce", "type": "bounce"}, {"event": "bounce", "type": "blocked"}),
        *({"event": "unsubscribe"}, {"event": "group_unsubscribe", "asm_group_id": 1}),
        *({"event": "dropped", "reason": "Invalid"}, {"event": "click"}),
    ]
    same = [read(**each).meaning for each in everything if each != other]
    assert mine not in same


def test_a_fact_without_time_or_recipient_counts_by_its_key() -> None:
    assert read(timestamp="soon").meaning is None
    assert read(email="nobody at all").meaning is None


# -- batches -------------------------------------------------------------------------------------


def test_rotten_elements_are_set_aside_one_by_one() -> None:
    good = [{**EVENT, "sg_event_id": f"g{number}"} for number in range(2)]
    rotten = [{"event": "bounce"}, "text", None, 7, {**EVENT, "email": None}]
    found = split(good[0], *rotten, good[1])
    assert [event.key for event in found.events] == ["g0", "g1"]
    assert [json.loads(piece.content) for piece in found.rotten] == rotten


@pytest.mark.parametrize(
    "element",
    [
        '{"event":"delivered","email":"a@example.com","sg_event_id":"s47","event":"bounce"}',
        '{"event":"delivered","email":"a@example.com","sg_event_id":"s47","x":NaN}',
        '{"event":"delivered","email":"a@example.com","sg_event_id":"s47","x":%s}' % ("9" * 5000),
        '{"event":7,"email":"a@example.com"}',
        '{"event":"","email":"a@example.com"}',
        '{"event":"delivered","email":""}',
        '{"event":"delivered","email":["a@example.com"]}',
        "[]",
        "[[[]]]",
    ],
    ids=lambda text: text[:70],
)
def test_element_that_could_be_read_in_two_ways_is_set_aside_alone(element: str) -> None:
    body = f"[{json.dumps(EVENT)}, {element} ]\r\n".encode()
    found = PROVIDER.split(proved(delivery({}, body)))
    assert isinstance(found, Split)
    assert [event.key for event in found.events] == ["s1"]
    assert [piece.content.decode() for piece in found.rotten] == [element]


@pytest.mark.parametrize("body", [b"[]", b" [ ]\r\n"])
def test_empty_array_is_no_event_and_no_trouble(body: bytes) -> None:
    assert PROVIDER.split(proved(delivery({}, body))) == Split()


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'"text"', b"[", b"[1,", b"[1 2]", b"[]x", b"\xff[]", b"--", b"--x\r\n"]
)
def test_authentic_body_that_is_no_array_is_unintelligible(body: bytes) -> None:
    with pytest.raises(Unintelligible):
        PROVIDER.split(proved(delivery({}, body)))


def test_compressed_batch_keeps_each_event_by_itself() -> None:
    body = json.dumps([EVENT, {**EVENT, "sg_event_id": "s2"}]).encode()
    verified = proved(delivery({"Content-Encoding": "gzip"}, gzip.compress(body)))
    found = events(PROVIDER.split(verified))
    assert [json.loads(event.content or b"")["sg_event_id"] for event in found] == ["s1", "s2"]


@given(
    texts=st.lists(st.text(max_size=20), min_size=1, max_size=5),
    gap=st.sampled_from(["", " ", "\r\n", "\n\t "]),
)
def test_each_event_is_a_slice_of_the_body(texts: list[str], gap: str) -> None:
    elements = [
        json.dumps({**EVENT, "sg_event_id": str(number), "arg": text}, ensure_ascii=False)
        for number, text in enumerate(texts)
    ]
    body = f"{gap}[{gap}{f'{gap},{gap}'.join(elements)}{gap}]{gap}".encode("utf-8", "replace")
    for number, event in enumerate(events(PROVIDER.split(proved(delivery({}, body))))):
        assert event.content is None
        assert json.loads(body[event.start : event.end])["sg_event_id"] == str(number)


# -- reading -------------------------------------------------------------------------------------

HARD, SOFT, BLOCK = BounceClass.HARD, BounceClass.SOFT, BounceClass.BLOCK
UNDETERMINED = BounceClass.UNDETERMINED


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ({"type": "bounce", "status": "5.1.1"}, HARD),
        ({"type": "bounce", "status": "4.0.0"}, HARD),  # its own word goes before the codes
        ({"type": "Bounce"}, HARD),
        ({"type": "blocked", "status": "5.7.1"}, BLOCK),
        ({"type": "blocked", "status": "5.1.1"}, BLOCK),
        ({"type": "bounce", "bounce_classification": "Technical"}, SOFT),
        ({"type": "bounce", "bounce_classification": "content"}, SOFT),
        ({"type": "bounce", "bounce_classification": "Invalid Address"}, HARD),
        ({"type": "bounce", "bounce_classification": ["Technical"]}, HARD),
        ({"type": "blocked", "bounce_classification": "Technical"}, BLOCK),
        ({"status": "5.1.1"}, HARD),
        ({"status": "5.1.10"}, HARD),
        ({"status": "5.1.8"}, BLOCK),
        ({"status": "5.7.26"}, BLOCK),
        ({"status": "4.2.2"}, SOFT),
        ({"status": "5.2.2"}, UNDETERMINED),
        ({"status": "5.0.0", "reason": "550 5.1.1 no such user"}, HARD),
        ({"reason": "550 5.1.1 no such user"}, HARD),
        ({"reason": "421 try later"}, SOFT),
        ({"reason": "550 no"}, UNDETERMINED),
        ({"status": "paid"}, UNDETERMINED),
        ({"type": "welcome", "status": "5.1.1"}, HARD),
        ({"type": 7, "status": {"5": 1}}, UNDETERMINED),
        ({}, UNDETERMINED),
    ],
    ids=str,
)
def test_bounce_is_classed_by_its_type_and_else_by_its_codes(
    members: dict[str, object], wanted: BounceClass
) -> None:
    found = read(event="bounce", **members)
    assert (found.kind, found.bounce_class) == (Kind.BOUNCED, wanted)
    assert found.suppress is (wanted is HARD)
    assert found.reject_reason is (
        RejectReason.BLOCKED if wanted is BLOCK else RejectReason.BOUNCED
    )


@pytest.mark.parametrize(
    ("text", "reason", "suppress"),
    [
        ("Bounced Address", RejectReason.BOUNCED, True),
        ("Spam Reporting Address", RejectReason.SPAM, True),
        ("Unsubscribed Address", RejectReason.UNSUBSCRIBED, True),
        ("Invalid", RejectReason.INVALID, False),
        ("Invalid SMTPAPI header", RejectReason.OTHER, False),
        ("Spam Content (if Spam Checker app is enabled)", RejectReason.BLOCKED, False),
        ("Recipient List over Package Quota", RejectReason.OTHER, False),
        ("a new one", RejectReason.OTHER, False),
        (7, RejectReason.OTHER, False),
        (None, RejectReason.OTHER, False),
    ],
)
def test_drop_suppresses_only_for_what_happened_before(
    text: object, reason: RejectReason, suppress: bool
) -> None:
    found = read(event="dropped", reason=text)
    assert (found.kind, found.reject_reason, found.suppress) == (Kind.REJECTED, reason, suppress)


@pytest.mark.parametrize(
    ("members", "scope"),
    [
        ({"event": "group_unsubscribe", "asm_group_id": 10}, "group:10"),
        ({"event": "group_unsubscribe", "asm_group_id": "10"}, "group:10"),
        ({"event": "group_unsubscribe"}, "group:"),
        ({"event": "dropped", "reason": "Unsubscribed Address", "asm_group_id": 10}, "group:10"),
    ],
    ids=str,
)
def test_goodbye_to_a_group_is_never_a_goodbye_to_all(
    members: dict[str, object], scope: str
) -> None:
    found = read(**members)
    assert found.scope == scope
    assert not found.suppress


def test_custom_arguments_never_change_the_meaning() -> None:
    custom = {
        "status": "paid",
        "type": "blocked",
        "reason": "Bounced Address",
        "url": "https://example.com/shop",
        "sg_machine_open": True,
        "useragent": "shop",
        "scope": "all",
        "order": 7,
    }
    plain, adorned = read(), read(**custom)
    for name in ("kind", "bounce_class", "reject_reason", "suppress", "scope", "meaning"):
        assert getattr(plain, name) == getattr(adorned, name)
    assert adorned.extras == {
        "metadata": {**custom, "order": "7"},
    }


@pytest.mark.parametrize(
    ("email", "recipient"),
    [
        ("Buyer@Example.COM", "Buyer@Example.COM"),
        ("a+news@example.com", "a+news@example.com"),
        ('"x@y, z"@example.com', '"x@y, z"@example.com'),
        ("o'brien@example.com", "o'brien@example.com"),
        ("a.b@example.com", "a.b@example.com"),
        ("Ana \ud83d <ana@example.com>", "ana@example.com"),
        ("ana\ud83d@example.com", None),
        ("ana\0@example.com", None),
        ("ana", None),
    ],
)
def test_recipient_is_the_address_as_sent_or_nobody(email: str, recipient: str | None) -> None:
    assert read(email=email).recipient == recipient


@pytest.mark.parametrize("reason", ["broken \ud83d text", "a \0 in it"])
def test_odd_text_is_kept_as_sent_and_shown_clean(reason: str) -> None:
    body = json.dumps([{**EVENT, "event": "bounce", "reason": reason}]).encode()
    (event,) = events(PROVIDER.split(proved(delivery({}, body))))
    assert json.loads(body[event.start : event.end])["reason"] == reason
    shown = _read(body).extras["diagnostic"]
    assert isinstance(shown, str)
    assert "\ufffd" in shown


@pytest.mark.parametrize(
    ("timestamp", "occurred_at"),
    [
        (1_700_000_000, 1_700_000_000_000),
        ("1700000000", 1_700_000_000_000),
        (1_700_000_000.5, 1_700_000_000_500),
        (99_999_999_999_999_999_999, None),
        (-1, None),
        ("soon", None),
        (True, None),
        (None, None),
        ([1_700_000_000], None),
    ],
)
def test_time_that_cannot_be_read_is_none_and_no_error(
    timestamp: object, occurred_at: int | None
) -> None:
    assert read(timestamp=timestamp).occurred_at == occurred_at


def test_account_events_and_unknown_ones_need_no_recipient() -> None:
    found = split(
        {"event": "account_status_change", "type": "compliance_suspend", "timestamp": NOW_S},
        {"event": "something_new", "timestamp": NOW_S},
    )
    assert not found.rotten
    assert read(event="account_status_change", email=None).kind is Kind.ACCOUNT
    assert read(event="something_new", email=None).kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("sent", "message_id"),
    [
        (MESSAGE, "14c5d75ce93.dfd.64b469"),
        ("abc.recvd-55c5d7b5c8-x2k8j-1-6290.0", "abc"),
        ("abc", "abc"),
        ("", None),
        (None, None),
        (7, "7"),
    ],
)
def test_message_is_named_as_the_sending_call_named_it(
    sent: object, message_id: str | None
) -> None:
    assert read(sg_message_id=sent).message_id == message_id


def test_operator_may_read_classifications_otherwise() -> None:
    provider = provider_of("sendgrid", {"classifications": {"Mailbox Unavailable": "soft"}})
    told = {**EVENT, "event": "bounce", "type": "bounce"}
    for classification, wanted in (("mailbox unavailable", SOFT), ("Technical", SOFT), ("x", HARD)):
        body = json.dumps([{**told, "bounce_classification": classification}]).encode()
        verified = proved(delivery({}, body))
        (event,) = events(provider.split(verified))
        assert provider.normalize(stored(provider, verified, event))[0].bounce_class is wanted


@pytest.mark.parametrize(
    "options",
    [
        {"classifications": "soft"},
        {"classifications": {"x": "maybe"}},
        {"classifications": {"x": ["soft"]}},
        {"other": 1},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_with_a_mend(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as refused:
        provider_of("sendgrid", options)
    assert refused.value.mend


# -- inbound -------------------------------------------------------------------------------------


def inbound(**fields: str) -> bytes:
    parts = (
        f'--b0\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        for name, text in fields.items()
    )
    return "".join(parts).encode() + b"--b0--\r\n"


def test_inbound_mail_for_two_makes_two_notifications() -> None:
    body = inbound(
        headers="Message-ID: <m1@example.net>", envelope='{"to":["a@example.com","B@example.com"]}'
    )
    verified = proved(delivery({}, body))
    (event,) = events(PROVIDER.split(verified))
    found = PROVIDER.normalize(stored(PROVIDER, verified, event))
    assert [each.recipient for each in found] == ["a@example.com", "B@example.com"]
    assert {each.kind for each in found} == {Kind.INBOUND}


def test_inbound_mail_without_message_id_is_known_by_its_fields() -> None:
    """Another post of it has another boundary."""
    body = inbound(subject="Hello", envelope='{"to":["a@example.com"]}')
    keys = [
        events(PROVIDER.split(proved(delivery({}, each))))[0].key
        for each in (body, body.replace(b"b0", b"other"), body.replace(b"Hello", b"Bye"))
    ]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("envelope", ["", "{", "[]", '{"to":7}', '{"to":null}', "null", "\udcff"])
def test_inbound_mail_with_a_broken_envelope_is_kept(envelope: str) -> None:
    body = inbound(headers="x", to="Ana <ana@example.com>").replace(
        b"--b0--",
        b'--b0\r\nContent-Disposition: form-data; name="envelope"\r\n\r\n'
        + envelope.encode("utf-8", "surrogateescape")
        + b"\r\n--b0--",
    )
    assert _read(body).recipient == "ana@example.com"


def test_message_id_in_the_text_of_a_mail_is_not_its_own() -> None:
    mail = "Subject: x\r\n\r\nMessage-ID: <forged@example.com>"
    body = inbound(email=mail, envelope='{"to":["a@example.com"]}')
    assert "rfc_message_id" not in _read(body).extras


# -- simulation ----------------------------------------------------------------------------------


def wanted(kind: Kind, secret: str) -> Simulation:
    return Simulation(kind=kind, to="ana@example.com", secret=secret, id="sim_1", now=NOW_S * 1000)


@pytest.mark.parametrize("kind", PROVIDER.kinds)
def test_simulated_event_is_believed_only_by_a_source_with_that_pair(kind: Kind) -> None:
    public, private = ecdsa_pair()
    assert PROVIDER.simulate
    made = PROVIDER.simulate(wanted(kind, private))
    received = delivery(made.headers, made.body)
    for trusted in (public, private):
        verified = PROVIDER.verify(received, trust(PROVIDER, trusted), NOW_S * 1000)
        (event,) = events(PROVIDER.split(verified))
        assert event.key == made.key
        assert PROVIDER.normalize(stored(PROVIDER, verified, event))[0].kind is kind
    with pytest.raises(Refused):
        PROVIDER.verify(received, trust(PROVIDER, PUBLIC), NOW_S * 1000)


def test_real_senders_key_cannot_simulate_and_says_what_can() -> None:
    assert PROVIDER.simulate
    with pytest.raises(OperatorError, match="secret set"):
        PROVIDER.simulate(wanted(Kind.BOUNCED, PUBLIC))
