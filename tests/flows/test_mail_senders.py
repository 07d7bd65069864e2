"""The mail senders' traps, from raw bytes to rows and statuses in a real store."""

import json
from dataclasses import replace
from pathlib import Path

from hookbox.errors import Reason
from hookbox.flows.receive import Outcome, Receipt
from tests.flows.conftest import Box
from tests.flows.test_work import states, until
from tests.providers.requests import delivery, provider_of, trust
from tests.providers.samples import FOLDER, Sample, samples
from tests.providers.test_sendgrid import EVENT, PUBLIC, signed

SAMPLES = {str(sample): sample for sample in samples()}
FORGED = Path(FOLDER, "mailgun", "forged", "body").read_bytes()


async def receive(
    box: Box, name: str, headers: dict[str, str], body: bytes, secret: str, now: int = 0
) -> Receipt:
    """One delivery to the box's source, which is of this provider for now."""
    box.clock.step((now - box.clock.now()) / 1000 if now else 0)
    provider = provider_of(name)
    source = replace(box.source, provider=provider, trust=trust(provider, secret))
    box.sources.replace({"std": source})
    received = delivery(headers, body, received_at=box.clock.now())
    return await box.receiver.receive(source, received)


async def receive_sample(box: Box, sample: Sample, **changes: object) -> Receipt:
    sample = replace(sample, **changes)  # type: ignore[arg-type]
    headers = dict(sample.headers)
    return await receive(box, sample.provider, headers, sample.body, sample.secret, sample.now)


def counted(box: Box, what: str) -> object:
    return box.rows(f"SELECT count(*) FROM {what}")[0][0]


async def test_lifted_triple_is_refused_and_its_retry_is_a_duplicate(box: Box) -> None:
    bounce = SAMPLES["mailgun-bounce-hard"]
    assert (await receive_sample(box, bounce)).outcome is Outcome.ACCEPTED
    forged = await receive_sample(box, bounce, body=FORGED)
    assert (forged.outcome, forged.reason) == (Outcome.REFUSED, Reason.TOKEN_REUSED)
    assert (await receive_sample(box, bounce)).outcome is Outcome.DUPLICATE
    assert (counted(box, "events"), counted(box, "quarantine")) == (1, 0)


async def test_unreadable_event_spends_its_token_too(box: Box) -> None:
    bounce = SAMPLES["mailgun-bounce-hard"]
    broken = bounce.body.replace(b'"event": "failed"', b'"event": "failed", "event": "x"')
    receipt = await receive_sample(box, bounce, body=broken)
    assert (receipt.outcome, receipt.unreadable) == (Outcome.QUARANTINED, True)
    receipt = await receive_sample(box, bounce, body=FORGED)
    assert receipt.reason is Reason.TOKEN_REUSED


async def test_single_posts_after_their_batch_bring_only_what_was_not_in_it(box: Box) -> None:
    await receive_sample(box, SAMPLES["sendgrid-batch"])
    known = {key for (key,) in box.rows("SELECT key FROM events")}
    assert len(known) == 7
    singles = [each for name, each in SAMPLES.items() if name.startswith("sendgrid-")]
    for sample in singles:
        receipt = await receive_sample(box, sample)
        fresh = [each["key"] for each in sample.events if each["key"] not in known]
        assert (receipt.admission.new, receipt.admission.conflicting) == (len(fresh), 0)


async def test_rotten_elements_neither_lose_nor_hold_up_the_others(box: Box) -> None:
    elements = [
        {**EVENT, "sg_event_id": "g1"},
        {"event": "bounce"},
        *("text", None, 7),
        {"email": None, "event": "delivered", "sg_event_id": "x"},
        {**EVENT, "sg_event_id": "g2"},
    ]
    body = json.dumps(elements).encode() + b"\r\n"
    receipt = await receive(
        box, "sendgrid", signed(body), body, PUBLIC, SAMPLES["sendgrid-batch"].now
    )
    assert (receipt.admission.new, receipt.admission.quarantined) == (2, 5)
    assert not receipt.unreadable
    await until(box, lambda: set(states(box).values()) == {"applied"})


async def test_copies_under_changed_ids_cost_one_message_of_the_budget(box: Box) -> None:
    """Six copies of one soft bounce, one of six messages' worth of harm."""
    bounce = {**EVENT, "event": "bounce", "type": "bounce", "bounce_classification": "Technical"}
    for number in range(6):
        body = json.dumps([{**bounce, "sg_event_id": f"copy-{number}"}]).encode()
        now = SAMPLES["sendgrid-batch"].now
        await receive(box, "sendgrid", signed(body), body, PUBLIC, now)
    await until(box, lambda: list(states(box).values()) == ["applied"] * 6)
    assert counted(box, "notification WHERE claims = 1") == 1
    assert counted(box, "suppressions") == 0


async def test_retry_that_lost_its_trace_id_counts_once(box: Box) -> None:
    traced = SAMPLES["postmark-traced"]
    bare = {name: text for name, text in traced.headers.items() if not name.startswith("X-PM")}
    await receive_sample(box, traced)
    await receive_sample(box, traced, headers=bare)
    await until(box, lambda: list(states(box).values()) == ["applied"] * 2)
    assert counted(box, "notification WHERE claims = 1") == 1


async def test_reactivation_by_the_sender_is_shown_and_lifts_nothing(box: Box) -> None:
    for name in ("postmark-subscriptionchange-hardbounce", "postmark-resubscribe"):
        await receive_sample(box, SAMPLES[name])
    await until(box, lambda: list(states(box).values()) == ["applied"] * 2)
    assert box.rows("SELECT kind FROM notifications ORDER BY occurred_at") == [
        ("bounced",),
        ("subscribed",),
    ]
    assert box.rows("SELECT address, reason, lifted_at FROM suppressions") == [
        ("ada@example.com", "hard_bounce", None)
    ]


async def test_what_is_about_a_group_or_about_nobody_in_particular_suppresses_none(
    box: Box,
) -> None:
    for name in ("sendgrid-group-unsubscribe", "resend-bounce-ambiguous"):
        await receive_sample(box, SAMPLES[name])
        await until(box, lambda: set(states(box).values()) == {"applied"})
    assert sorted(box.rows("SELECT kind, recipient FROM notifications")) == [
        ("bounced", None),
        ("unsubscribed", "ada@example.com"),
    ]
    assert counted(box, "suppressions") == 0
