"""Mailgun: a proof that does not cover the content, and what is done about it."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from urllib.parse import urlencode

import pytest

from hookbox.errors import Reason, Refused
from hookbox.model import BounceClass, Kind, Notification, RejectReason, Split
from hookbox.providers.contract import Simulation
from hookbox.rules.digest import digest_of
from tests.providers.requests import delivery, events, proved, provider_of, stored, trust

PROVIDER = provider_of("mailgun")
KEY = "key-mailgun-that-is-not-real"
NOW_S = 1_773_480_413
STAMP = str(NOW_S)
TOKEN = "a1" * 25
HOUR_S = 3600

EVENT: Mapping[str, object] = {
    "id": "Ase7i2zsRYeDXztHGENqRA",
    "timestamp": NOW_S + 0.5,
    "event": "delivered",
    "recipient": "ana@example.com",
    "message": {"headers": {"message-id": "m1@mg.example.org"}},
}


def mac(stamp: str = STAMP, token: str = TOKEN, key: str = KEY) -> str:
    return hmac.new(key.encode(), f"{stamp}{token}".encode(), hashlib.sha256).hexdigest()


def triple(stamp: str = STAMP, token: str = TOKEN) -> dict[str, object]:
    return {"timestamp": stamp, "token": token, "signature": mac(stamp, token)}


def body(event: object, **block: object) -> bytes:
    return json.dumps({"signature": {**triple(), **block}, "event-data": event}).encode()


def split(content: bytes) -> Split:
    found = PROVIDER.split(PROVIDER.verify(delivery({}, content), TRUST, NOW_S * 1000))
    assert isinstance(found, Split)
    return found


TRUST = trust(PROVIDER, KEY)


def read(**members: object) -> Notification:
    """What one event says; a member that is None is left out."""
    event = {name: value for name, value in {**EVENT, **members}.items() if value is not None}
    (notification,) = _read(body(event))
    return notification


def _read(content: bytes) -> tuple[Notification, ...]:
    verified = PROVIDER.verify(delivery({}, content), TRUST, NOW_S * 1000)
    (event,) = events(PROVIDER.split(verified))
    return PROVIDER.normalize(stored(PROVIDER, verified, event))


def failed(severity: object = "permanent", **members: object) -> Notification:
    return read(event="failed", severity=severity, **members)


# -- the proof and its weakness ------------------------------------------------------------------


def test_any_event_beside_a_right_triple_is_proved() -> None:
    """The weakness itself: Mailgun signs no content. Only the token tells that these are two."""
    right = body(EVENT)
    forged = body({**EVENT, "event": "complained", "recipient": "victim@example.com", "id": "z"})
    found = [split(each) for each in (right, forged)]
    assert not PROVIDER.signs_body
    assert [each.token for each in found] == [TOKEN, TOKEN]
    assert found[0].events[0].digest != found[1].events[0].digest


def test_retry_that_is_written_otherwise_has_the_digest_that_its_token_vouched_for() -> None:
    turned = json.dumps(
        {"event-data": dict(reversed(EVENT.items())), "signature": triple()}, indent=4
    )
    assert split(turned.encode()).events[0].digest == split(body(EVENT)).events[0].digest
    assert split(body(EVENT)).events[0].digest == digest_of(dict(EVENT))


def test_either_signature_proves() -> None:
    """The parent account's key proves what happens in a subaccount."""
    parent = trust(PROVIDER, "key-of-the-parent-account")
    signed = mac(key="key-of-the-parent-account")
    content = body(EVENT, **{"parent-signature": signed})
    for keys in (TRUST, parent):
        PROVIDER.verify(delivery({}, content), keys, NOW_S * 1000)
    without = json.dumps(
        {
            "signature": {"timestamp": STAMP, "token": TOKEN, "parent-signature": signed},
            "event-data": EVENT,
        }
    )
    PROVIDER.verify(delivery({}, without.encode()), parent, NOW_S * 1000)


def test_upper_case_and_numbers_are_the_same_triple() -> None:
    for block in ({"signature": mac().upper()}, {"timestamp": NOW_S}):
        PROVIDER.verify(delivery({}, body(EVENT, **block)), TRUST, NOW_S * 1000)


@pytest.mark.parametrize("hours", [0, 1, 8, 9, -9])
def test_retry_with_the_first_triple_is_accepted_for_nine_hours(hours: int) -> None:
    now = (NOW_S + hours * HOUR_S) * 1000
    assert PROVIDER.verify(delivery({}, body(EVENT)), TRUST, now).skew_s == hours * HOUR_S


def test_stale_triple_ends_the_delivery_and_a_wrong_key_does_not() -> None:
    answers = PROVIDER.answers
    for now_s, keys, reason, status in (
        (NOW_S + 9 * HOUR_S + 1, TRUST, Reason.STALE, 406),
        (NOW_S - 9 * HOUR_S - 1, TRUST, Reason.FUTURE, 401),
        (NOW_S, trust(PROVIDER, "another key that is wrong"), Reason.SIGNATURE_WRONG, 401),
    ):
        with pytest.raises(Refused) as refused:
            PROVIDER.verify(delivery({}, body(EVENT)), keys, now_s * 1000)
        assert refused.value.reason is reason
        assert answers.refused_by.get(reason, answers.refused) == status
    assert answers.refused_by[Reason.TOKEN_REUSED] == 406
    assert (answers.ok, answers.unreadable, answers.busy) == (200, 200, 503)


@pytest.mark.parametrize("moved", [1, 2, 5, 9])
def test_no_digit_moves_between_time_and_token(moved: int) -> None:
    """Else one proof would have many tokens. Nobody asks for the time here."""
    observed = trust(PROVIDER, KEY, tolerance_s=None)
    for stamp, token in (
        (STAMP[:-moved], STAMP[-moved:] + TOKEN),
        (STAMP + TOKEN[:moved], TOKEN[moved:]),
        (STAMP + "7" * moved, TOKEN),
    ):
        content = body(EVENT, timestamp=stamp, token=token, signature=mac(stamp, token))
        with pytest.raises(Refused):
            PROVIDER.verify(delivery({}, content), observed, NOW_S * 1000)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "gzip, gzip"])
def test_nothing_is_unpacked_for_a_stranger(coding: str) -> None:
    with pytest.raises(Refused) as refused:
        PROVIDER.verify(delivery({"Content-Encoding": coding}, body(EVENT)), TRUST, NOW_S * 1000)
    assert refused.value.reason is Reason.ENCODING_UNSUPPORTED


ODD = [None, True, 0, 1.5, [], ["x"], {}, {"x": 1}, "", " ", "\0", "é", "\ud800", "x" * 5000]


@pytest.mark.parametrize("member", ["timestamp", "token", "signature"])
@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:12])
def test_odd_type_in_the_triple_is_refused(member: str, value: object) -> None:
    with pytest.raises(Refused):
        PROVIDER.verify(delivery({}, body(EVENT, **{member: value})), TRUST, NOW_S * 1000)


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:12])
def test_odd_block_is_refused(value: object) -> None:
    content = json.dumps({"signature": value, "event-data": EVENT}).encode()
    with pytest.raises(Refused):
        PROVIDER.verify(delivery({}, content), TRUST, NOW_S * 1000)


# -- identity ------------------------------------------------------------------------------------


def test_ids_are_unique_within_a_day_and_the_day_is_the_events() -> None:
    later = {**EVENT, "timestamp": NOW_S + 3 * 86_400, "event": "failed"}
    keys = [split(body(each)).events[0].key for each in (EVENT, later)]
    assert keys == [f"{EVENT['id']}@2026-03-14", f"{EVENT['id']}@2026-03-17"]


@pytest.mark.parametrize("time", [None, "soon", True, [], -1, 10**30])
def test_day_is_that_of_the_signed_time_where_the_event_has_none(time: object) -> None:
    assert split(body({**EVENT, "timestamp": time})).events[0].key.endswith("@2026-03-14")


@pytest.mark.parametrize("event_id", [None, "", True, 1.5, [], {}, "\0", "x" * 600])
def test_token_stands_for_a_missing_id(event_id: object) -> None:
    (event,) = split(body({**EVENT, "id": event_id})).events
    assert (event.key, event.synthesised) == (TOKEN, False)


@pytest.mark.parametrize(
    "content",
    [
        body(EVENT).replace(b'"event":', b'"event": "failed", "event":'),
        body(EVENT).replace(b"delivered", b"delivered\xff", 1),
        body(EVENT)[:-1] + b', "x": NaN}',
        body(EVENT)[:-1] + b', "x": %s}' % (b"9" * 5000),
        body(EVENT) + b" x",
        body([]),
        body(None),
        body("delivered"),
    ],
    ids=["doubled", "bytes", "NaN", "digits", "tail", "list", "null", "text"],
)
def test_proved_but_unreadable_is_set_aside_with_its_token(content: bytes) -> None:
    """It is authentic, so it is not refused; and its token is spent on it."""
    found = split(content)
    assert (found.events, found.token) == ((), TOKEN)
    assert [piece.content for piece in found.rotten] == [content]


# -- reading -------------------------------------------------------------------------------------

HARD, SOFT, BLOCK = BounceClass.HARD, BounceClass.SOFT, BounceClass.BLOCK
UNDETERMINED = BounceClass.UNDETERMINED


def status(code: object = None, message: str = "", **members: object) -> dict[str, object]:
    return {"code": code, "message": message, **members}


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (status(550, "5.1.1 no such user"), HARD),
        (status(550, **{"enhanced-code": "5.1.1"}), HARD),
        (status(550, **{"bounce-code": "5.1.1"}), HARD),
        (status("550", "550 5.1.1 no such user"), HARD),
        (status(550, "5.1.8 sender refused"), BLOCK),
        (status(550, "5.7.1 policy"), BLOCK),
        (status(450, "try later"), SOFT),
        (status(498, "no MX"), SOFT),
        (status(499, "too old"), SOFT),
        (status(552, "5.2.2 mailbox full"), UNDETERMINED),
        (status(552, "5.2.2 mailbox full", **{"bounce-type": "hard"}), HARD),
        (status(552, "5.2.2 mailbox full", **{"bounce-type": "soft"}), SOFT),
        (status(550, "no"), UNDETERMINED),
        ({}, UNDETERMINED),
        ([], UNDETERMINED),
        ("550", UNDETERMINED),
        (None, UNDETERMINED),
    ],
    ids=str,
)
def test_permanent_failure_is_classed_by_its_codes(told: object, wanted: BounceClass) -> None:
    found = failed(reason="generic", **{"delivery-status": told})
    assert (found.kind, found.bounce_class) == (Kind.BOUNCED, wanted)
    assert found.suppress is (wanted is HARD)


def test_failure_with_null_status_is_read_by_its_severity_and_reason() -> None:
    content = {**EVENT, "event": "failed", "delivery-status": None}
    for members, kind, suppress in (
        ({"severity": "temporary", "reason": "generic"}, Kind.DEFERRED, False),
        ({"severity": "permanent", "reason": "suppress-unsubscribe"}, Kind.REJECTED, True),
        ({"severity": "permanent", "reason": "bounce"}, Kind.BOUNCED, True),
        ({"severity": "permanent", "reason": "espblock"}, Kind.BOUNCED, False),
    ):
        (found,) = _read(body({**content, **members}))
        assert (found.kind, found.suppress) == (kind, suppress)


@pytest.mark.parametrize(
    ("members", "reason", "suppress"),
    [
        ({"reason": "suppress-bounce"}, RejectReason.BOUNCED, True),
        ({"reason": "suppress-complaint"}, RejectReason.SPAM, True),
        ({"reason": "Suppress-Unsubscribe"}, RejectReason.UNSUBSCRIBED, True),
        ({"reason": "suppress-something"}, RejectReason.OTHER, False),
        ({"delivery-status": status(605)}, RejectReason.BOUNCED, True),
        ({"delivery-status": status(606)}, RejectReason.UNSUBSCRIBED, True),
        ({"delivery-status": status("607")}, RejectReason.SPAM, True),
        ({"delivery-status": status(625)}, RejectReason.OTHER, False),
        (
            {"delivery-status": status(625), "reason": "suppress-bounce"},
            RejectReason.BOUNCED,
            True,
        ),
    ],
    ids=str,
)
def test_what_was_never_tried_is_rejected_and_no_bounce(
    members: dict[str, object], reason: RejectReason, suppress: bool
) -> None:
    found = failed(**members)
    assert (found.kind, found.reject_reason, found.suppress) == (Kind.REJECTED, reason, suppress)
    assert found.bounce_class is None


def test_temporary_failures_of_one_message_are_deferrals_until_mailgun_gives_up() -> None:
    """Ten events, one message: whoever counts messages counts at most one."""
    told = [
        failed("temporary", id=f"try-{number}", timestamp=NOW_S + number, reason=reason)
        for number, reason in enumerate(["greylisted"] * 9 + ["old"])
    ]
    assert [found.kind for found in told] == [Kind.DEFERRED] * 9 + [Kind.BOUNCED]
    assert (told[-1].bounce_class, told[-1].reject_reason) == (SOFT, RejectReason.TIMED_OUT)
    assert {found.message_id for found in told} == {"m1@mg.example.org"}
    assert not any(found.suppress for found in told)


@pytest.mark.parametrize("severity", [None, "", "Temporary", "grave", 7, ["permanent"]])
def test_only_a_permanent_failure_is_one(severity: object) -> None:
    assert failed(severity, reason="bounce").kind is Kind.DEFERRED


def test_rejection_names_its_recipient_only_when_the_message_had_one() -> None:
    for to, recipient, candidates in (
        ("ana@example.com", "ana@example.com", ()),
        ("Ana <ana@example.com>", "ana@example.com", ()),
        ("a@example.com, b@example.com", None, ("a@example.com", "b@example.com")),
        (None, None, ()),
        (7, None, ()),
    ):
        found = read(
            event="rejected", recipient=None, message={"headers": {"to": to, "message-id": "m"}}
        )
        assert (found.recipient, found.candidates) == (recipient, candidates)
        assert found.ambiguous is bool(candidates)


@pytest.mark.parametrize(
    ("time", "occurred_at"),
    [
        (1_700_000_000.512, 1_700_000_000_512),
        (1_700_000_000, 1_700_000_000_000),
        ("1700000000.512", 1_700_000_000_512),
        ("soon", None),
        (None, None),
        (10**25, None),
    ],
)
def test_time_is_the_events_to_the_millisecond(time: object, occurred_at: int | None) -> None:
    assert read(timestamp=time).occurred_at == occurred_at


def test_bot_is_a_machine_and_nobody_else() -> None:
    for bot, is_machine in (("generic", True), ("", None), (None, None), ([], None)):
        extras = read(event="clicked", **{"client-info": {"bot": bot}}).extras
        assert extras.get("is_machine") is is_machine


@pytest.mark.parametrize("word", ["list_uploaded", "trapped", "email_validation"])
def test_what_concerns_no_message_is_about_the_account(word: str) -> None:
    assert read(event=word, recipient=None).kind is Kind.ACCOUNT


# -- forms ---------------------------------------------------------------------------------------


def form(**fields: str) -> bytes:
    return urlencode({**fields, **triple()}).encode()


def test_received_mail_for_two_makes_two_notifications() -> None:
    found = _read(form(recipient="a@example.com, B@example.com", subject="Hello"))
    assert [each.recipient for each in found] == ["a@example.com", "B@example.com"]
    assert {each.kind for each in found} == {Kind.INBOUND}
    assert {each.occurred_at for each in found} == {NOW_S * 1000}


@pytest.mark.parametrize(
    ("fields", "message_id"),
    [
        ({"message-headers": '[["Message-Id", "<m@example.net>"]]'}, "m@example.net"),
        ({"body-mime": "Subject: x\r\nMessage-ID: <m@example.net>\r\n\r\nx"}, "m@example.net"),
        ({"body-mime": "Subject: x\r\n\r\nMessage-ID: <m@example.net>"}, None),
        ({"message-headers": '[["Message-Id"], 7, ["x", 7], []]'}, None),
        ({"message-headers": "{"}, None),
        ({"message-headers": "7"}, None),
        ({}, None),
    ],
    ids=str,
)
def test_received_mail_is_named_by_its_own_head(
    fields: dict[str, str], message_id: str | None
) -> None:
    (found,) = _read(form(recipient="a@example.com", **fields))
    assert found.extras.get("rfc_message_id") == message_id


def test_token_vouches_for_all_fields_of_a_form_but_for_its_triple() -> None:
    first, other = (split(form(recipient="a@example.com", subject=each)) for each in ("x", "y"))
    assert first.token == other.token == TOKEN
    assert first.events[0].digest != other.events[0].digest
    assert b"signature" not in (first.events[0].content or b"signature")


def test_last_of_two_fields_with_one_name_counts() -> None:
    """The customer's variables come first and may have the names of Mailgun's."""
    shadow = urlencode([("recipient", "x"), ("token", "x"), ("event", "complained")]).encode()
    own = form(recipient="a@example.com", event="delivered")
    (found,) = _read(shadow + b"&" + own)
    assert (found.kind, found.recipient) == (Kind.DELIVERED, "a@example.com")


@pytest.mark.parametrize(
    ("fields", "kind", "lasting", "suppress"),
    [
        ({"event": "bounced", "code": "550", "error": "5.1.1 x"}, Kind.BOUNCED, HARD, True),
        ({"event": "bounced", "code": "550", "error": "5.7.1 x"}, Kind.BOUNCED, BLOCK, False),
        ({"event": "bounced"}, Kind.BOUNCED, HARD, True),
        ({"event": "dropped", "reason": "hardfail", "code": "605"}, Kind.REJECTED, None, True),
        ({"event": "dropped", "reason": "hardfail", "code": "550"}, Kind.BOUNCED, HARD, True),
        ({"event": "dropped", "reason": "old", "code": "499"}, Kind.BOUNCED, SOFT, False),
        ({"event": "dropped"}, Kind.BOUNCED, UNDETERMINED, False),
        ({"event": "complained"}, Kind.COMPLAINED, None, True),
        ({"event": "unsubscribed"}, Kind.UNSUBSCRIBED, None, True),
        ({"event": "opened"}, Kind.OPENED, None, False),
        ({"event": "something new"}, Kind.UNKNOWN, None, False),
        ({"event": ""}, Kind.UNKNOWN, None, False),
    ],
    ids=str,
)
def test_webhook_of_old_is_read_like_the_new_ones(
    fields: dict[str, str], kind: Kind, lasting: BounceClass | None, suppress: bool
) -> None:
    (found,) = _read(form(recipient="a@example.com", **fields))
    assert (found.kind, found.bounce_class, found.suppress) == (kind, lasting, suppress)


# -- simulation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PROVIDER.kinds)
def test_simulated_event_reads_back_as_itself(kind: Kind) -> None:
    assert PROVIDER.simulate
    made = PROVIDER.simulate(
        Simulation(kind=kind, to="ana@example.com", secret=KEY, id="sim_1", now=NOW_S * 1000)
    )
    verified = PROVIDER.verify(delivery(made.headers, made.body), TRUST, NOW_S * 1000)
    (event,) = events(PROVIDER.split(verified))
    assert event.key == made.key
    (found,) = PROVIDER.normalize(stored(PROVIDER, verified, event))
    assert found.kind is kind
    assert found.recipient == (None if kind is Kind.ACCOUNT else "ana@example.com")


def test_any_content_is_read_whatever_was_stored() -> None:
    for content in (b"", b"[]", b"{}", b'{"event-data": 7}', b"\xff"):
        verified = proved(delivery({}, content))
        event = split(body(EVENT)).events[0]
        assert PROVIDER.normalize(stored(PROVIDER, verified, event))
