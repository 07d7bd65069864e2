"""Amazon SES through the whole box: what is stored, what comes of it, and what goes out for it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hookbox.flows.receive import Outcome, Receipt
from hookbox.model import Delivery
from hookbox.providers.contract import Trust
from tests.flows.conftest import Box
from tests.flows.test_work import until
from tests.outbound import guarded
from tests.providers.requests import provider_of
from tests.providers.samples import FOLDER, Sample, samples
from tests.providers.topics import (
    ARN,
    FAREWELL,
    NOTIFICATION,
    NOW_S,
    OFFER,
    Posted,
    headers,
    posted,
    signer,
)
from tests.rules.hostile import CERTIFICATE_URLS, SUBSCRIBE_URLS

CASES: dict[str, Sample] = {each.case: each for each in samples() if each.provider == "ses"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The directory of certificates, with those of the samples and of the tests' own signer."""
    found = tmp_path / "certificates"
    found.mkdir()
    pem = (FOLDER / "ses" / "certificate.pem").read_bytes()
    (found / "SimpleNotificationService-0123456789abcdef0123456789abcdef.pem").write_bytes(pem)
    (found / "SimpleNotificationService-0123456789abcdef.pem").write_bytes(signer().pem)
    return found


@pytest.fixture
def ses(box: Box, folder: Path) -> Box:
    """The box with Amazon SES as its source, at the time of the samples."""
    provider = provider_of("ses", {"topics": [ARN], "certificates": str(folder)})
    trust = Trust(keys=(), tolerance_s=provider.tolerance_s)
    box.sources.replace({"std": replace(box.source, provider=provider, trust=trust)})
    box.clock.step(NOW_S - box.clock.now() / 1000)
    return box


async def receive(box: Box, message: Posted | bytes) -> Receipt:
    """Through the receive flow, under a guard that lets no request out."""
    body = message if isinstance(message, bytes) else message.body
    kind = "Notification" if isinstance(message, bytes) else str(message.members["Type"])
    pairs = tuple((name.lower().encode(), text.encode()) for name, text in headers(kind).items())
    delivery = Delivery(
        source="std", headers=pairs, body=body, received_at=box.clock.now(), remote="192.0.2.9"
    )
    with guarded() as guard:
        receipt = await box.receiver.receive(box.source, delivery)
    assert (guard.connects, guard.lookups) == ([], [])
    return receipt


async def applied(box: Box) -> None:
    await until(box, lambda: not box.rows("SELECT 1 FROM events WHERE state = 'pending'"))


async def test_throw_away_key_is_believed_only_through_the_directory(
    ses: Box, folder: Path
) -> None:
    assert (await receive(ses, posted())).outcome is Outcome.ACCEPTED
    assert (await receive(ses, posted())).outcome is Outcome.DUPLICATE
    (folder / "SimpleNotificationService-0123456789abcdef.pem").unlink()
    other = posted({**NOTIFICATION, "MessageId": "another"})
    assert (await receive(ses, other)).outcome is Outcome.BUSY
    assert ses.rows("SELECT count(*) FROM events") == [(1,)]


async def test_missing_certificate_sends_nobody_away_for_good(ses: Box, folder: Path) -> None:
    file = folder / "SimpleNotificationService-0123456789abcdef.pem"
    file.unlink()
    receipt = await receive(ses, posted())
    assert (receipt.outcome, ses.source.provider.answers.busy) == (Outcome.BUSY, 503)
    file.write_bytes(signer().pem)
    assert (await receive(ses, posted())).outcome is Outcome.ACCEPTED


async def test_retry_of_two_hours_ago_is_accepted_and_then_known(ses: Box) -> None:
    ses.clock.step(7200)
    outcomes = [(await receive(ses, posted())).outcome for _ in range(2)]
    assert outcomes == [Outcome.ACCEPTED, Outcome.DUPLICATE]


async def test_one_bounce_by_both_dialects_counts_once(ses: Box) -> None:
    for case in ("two-recipients", "duplicate-dialect"):
        receipt = await receive(ses, CASES[f"bounce-permanent-{case}"].body)
        assert receipt.outcome is Outcome.ACCEPTED
    await applied(ses)
    assert ses.rows("SELECT count(*) FROM events") == [(2,)]
    assert sorted(ses.rows("SELECT address, reason FROM suppressions")) == [
        ("Richard@example.com", "hard_bounce"),
        ("jane@example.com", "hard_bounce"),
    ]
    told = ses.rows("SELECT event_id, recipient, effect FROM notifications ORDER BY 1, 2")
    assert [(event, recipient) for event, recipient, _ in told] == [
        (1, "Richard@example.com"),
        (1, "jane@example.com"),
        (2, "Richard@example.com"),
        (2, "jane@example.com"),
    ]
    first, second = ({effect for event, _, effect in told if event == each} for each in (1, 2))
    assert first.isdisjoint(second)


async def test_every_sample_is_applied(ses: Box) -> None:
    """Each at its own time, as SNS posts it."""
    for sample in sorted(CASES.values(), key=lambda sample: sample.now):
        ses.clock.step((sample.now - ses.clock.now()) / 1000)
        message = Posted(json.loads(sample.body))
        assert (await receive(ses, message)).outcome is Outcome.ACCEPTED
    await applied(ses)
    assert ses.rows("SELECT DISTINCT state FROM events") == [("applied",)]
    assert ses.rows("SELECT count(*) FROM quarantine") == [(0,)]


async def test_offer_to_subscribe_asks_for_one_call_however_often_it_comes(ses: Box) -> None:
    for _ in range(3):
        await receive(ses, posted(OFFER))
    assert ses.rows("SELECT target, count(*) FROM outbox GROUP BY 1 ORDER BY 1") == [
        ("apply", 1),
        ("confirm", 1),
    ]


async def test_end_of_a_subscription_is_shown_and_nothing_is_done_about_it(ses: Box) -> None:
    await receive(ses, posted(FAREWELL))
    await applied(ses)
    assert ses.rows("SELECT kind, raw_kind FROM events") == [("control", "UnsubscribeConfirmation")]
    assert ses.rows("SELECT target FROM outbox") == [("apply",)]


@pytest.mark.parametrize("message", [NOTIFICATION, OFFER], ids=lambda message: message["Type"])
async def test_topic_of_a_stranger_leaves_nothing_behind(ses: Box, message: dict[str, str]) -> None:
    stranger = "arn:aws:sns:us-east-1:999999999999:other"
    receipt = await receive(ses, posted({**message, "TopicArn": stranger}))
    assert (receipt.outcome, ses.source.provider.answers.refused) == (Outcome.REFUSED, 403)
    assert ses.rows("SELECT count(*) FROM events") == [(0,)]
    assert ses.rows("SELECT count(*) FROM suppressions") == [(0,)]


async def test_no_hostile_url_causes_a_request_or_a_row(ses: Box) -> None:
    """With and without a directory: the rule is the same, and comes first."""
    for directory in (ses.source.provider.certificates, None):
        ses.change(certificates=directory)
        for url in CERTIFICATE_URLS:
            receipt = await receive(ses, posted().but(SigningCertURL=url))
            assert receipt.outcome is Outcome.REFUSED
        for url in SUBSCRIBE_URLS:
            receipt = await receive(ses, posted({**OFFER, "SubscribeURL": url}))
            assert receipt.outcome is Outcome.REFUSED
    assert ses.rows("SELECT count(*) FROM delivery") == [(0,)]


async def test_raw_delivery_is_refused_by_its_name(ses: Box) -> None:
    body = (FOLDER / "ses" / "raw-delivery" / "body").read_bytes()
    pairs = (*headers().items(), ("x-amz-sns-rawdelivery", "true"))
    sent = tuple((name.lower().encode(), text.encode()) for name, text in pairs)
    delivery = Delivery(source="std", headers=sent, body=body, received_at=ses.clock.now())
    await ses.receiver.receive(ses.source, delivery)
    await ses.tally.flush()
    assert ses.rows("SELECT reason, count FROM refusals") == [("raw_delivery", 1)]


async def test_same_id_with_another_message_is_set_aside(ses: Box) -> None:
    await receive(ses, posted())
    receipt = await receive(ses, posted({**NOTIFICATION, "Message": "{}"}))
    assert receipt.outcome is Outcome.QUARANTINED
    assert ses.rows("SELECT reason FROM quarantine") == [("payload_digest_conflict",)]


async def test_message_that_is_not_of_ses_is_kept_where_it_is_seen(ses: Box) -> None:
    receipt = await receive(ses, posted({**NOTIFICATION, "Message": "hello from the console"}))
    assert (receipt.outcome, receipt.unreadable) == (Outcome.QUARANTINED, True)
    assert ses.rows("SELECT key FROM quarantine") == [(NOTIFICATION["MessageId"],)]
