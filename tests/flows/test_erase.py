"""An erased address is in no byte of the database, and still must not be mailed."""

import asyncio
import hashlib
import json
import sqlite3

import pytest

from hookbox.errors import OperatorError
from hookbox.flows.erase import Erased, Erasures
from hookbox.model import BounceClass, Kind, Rotten, SplitEvent
from hookbox.rules.folding import folded, spellings
from hookbox.rules.mentions import pattern, written
from hookbox.rules.suppression import Budget, Cause
from hookbox.store import (
    database,
    ledger,
    pseudonyms,
    secrets,
    suppressions,
)
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Verb, Word
from hookbox.store.ledger import Applied
from hookbox.store.suppressions import Wanted
from tests.flows.conftest import Box
from tests.store.facts import NOW, said
from tests.store.offers import proposal

ANN, BOB = "Ann@Example.com", "bob@example.com"
WORD = Word(who="eve", reason="ann@example.com asked us to", at=NOW)


@pytest.fixture
async def erasures(box: Box) -> Erasures:
    seal = secrets.load_seal(box.path.parent)
    made = Erasures(box.writer, box.path, seal, box.clock, asyncio.Lock())
    await made.start()
    return made


async def tell(box: Box, key: str, to: str = ANN, kind: str = "email.complained") -> None:
    """An event about somebody arrives and is applied."""
    body = {"type": kind, "data": {"to": [to], "message_id": f"m-{key}"}}
    await box.receiver.receive(box.source, box.delivery(key, body))
    await work(box)


async def work(box: Box) -> None:
    worker = box.worker()
    task = asyncio.create_task(worker.run())
    pending = "SELECT count(*) FROM job WHERE state = 'available' AND target = 'apply'"
    while box.rows(pending) != [(0,)]:
        await asyncio.to_thread(lambda: None)
    worker.stop()
    await task


def left(box: Box, address: str = ANN) -> list[str]:
    """The files of the state directory in which it still stands, whatever the case."""
    sought = pattern(written(spellings(folded(address))))
    files = [each for each in box.path.parent.iterdir() if each.is_file()]
    return [each.name for each in files if sought.search(each.read_bytes())]


def verdict(box: Box, erasures: Erasures, address: str) -> str | None:
    with database.reading(box.path.parent) as transaction:
        [found] = suppressions.verdicts(transaction, [address], pseudonyms=erasures.pseudonyms)
    return found.reason


async def erase(erasures: Erasures, address: str = ANN) -> Erased:
    done = await erasures.erase(address, WORD)
    assert (done.folded, done.pending) == (True, 0)
    return done


async def test_address_is_in_no_byte_and_still_must_not_be_mailed(
    box: Box, erasures: Erasures
) -> None:
    await tell(box, "a")
    await tell(box, "b", to="ann@EXAMPLE.com", kind="email.delivered")
    await tell(box, "c", to=BOB)
    assert left(box) != []
    await erase(erasures)
    assert left(box) == []
    for spelt in (ANN, "ann@example.com", "Ann <ANN@example.COM>"):
        assert verdict(box, erasures, spelt) == "complaint"
    assert verdict(box, erasures, "joann@example.com") is None
    assert box.rows("SELECT content FROM events WHERE key IN ('a', 'b')") == [(None,), (None,)]
    [(content,)] = box.rows("SELECT content FROM events WHERE key = 'c'")
    assert BOB in str(content)


async def test_what_happened_stays_under_its_name(box: Box, erasures: Erasures) -> None:
    await tell(box, "a")
    done = await erase(erasures)
    for view, column in (
        ("notifications", "recipient"), ("recipients", "recipient"), ("events", "recipient"),
        ("suppressions", "address"),
    ):  # fmt: skip
        assert box.rows(f"SELECT {column} FROM {view}") == [(done.name,)]
    assert box.rows("SELECT status FROM recipients") == [("complained",)]
    [(who, reason)] = box.rows("SELECT who, reason FROM erasure")
    assert (who, reason) == ("eve", f"{done.name} asked us to")


def everywhere(t: Transaction) -> None:
    """Every place that text from outside can get to."""
    t.execute(
        "INSERT INTO job (event_id, target, run_at, state, finished_at, last_outcome)"
        " VALUES (1, 'forward:x', 0, 'exhausted', 1, 'cancelled: ann@example.com')"
    )
    t.execute("INSERT INTO attempt VALUES (2, 1, 0, 0, 'refused', 500, 'no ann@example.com here')")
    t.execute("INSERT INTO job_turn VALUES ('forward:x', 'ann@example.com', 2)")
    t.execute("INSERT INTO probe VALUES (1, 1, 0, 0, 1, 1, 'done')")
    t.execute(
        "INSERT INTO probe_request VALUES (1, 1, 'k:Ann@example.com', 0, NULL, 'ok',"
        " '[[\"x-to\", \"ann@example.com\"]]', x'7b7d')"
    )
    t.execute("INSERT INTO message_place VALUES (1, '<ann@example.com>', 'ann@example.com', NULL)")
    t.execute("INSERT INTO token VALUES (1, 'ann@example.com', zeroblob(32), 0)")
    t.execute("INSERT INTO lane (target, last_failure) VALUES ('forward:x', 'Ann@example.com')")
    t.execute(
        "INSERT INTO effect (key, state, token, claimed_by, claimed_at, renewed_at, lease_ms)"
        " VALUES ('mail/ann@example.com', 'claimed', 1, 'x', 0, 0, 1)"
    )
    t.execute("UPDATE event SET key = 'order-7:ANN@example.com'")


async def test_every_place_that_text_can_get_to_is_looked_at(box: Box, erasures: Erasures) -> None:
    await tell(box, "a")
    await box.writer.write(everywhere)
    lifted = Word(who="eve", reason="she wrote from ann@example.com", at=NOW)
    await box.writer.write(lambda t: suppressions.lift(t, ANN, "", lifted))
    imported = Wanted(address=ANN, cause=Cause.IMPORTED, since=NOW, scope="news")
    await box.writer.write(lambda t: suppressions.add(t, [imported], Verb.IMPORT, lifted))
    await erase(erasures)
    assert left(box) == []
    assert verdict(box, erasures, ANN) == "imported"
    [(key,)] = box.rows("SELECT key FROM events")
    assert str(key).startswith("order-7:erased:")


@pytest.mark.parametrize("padding", [0, 3_000, 70_000])
async def test_other_peoples_pieces_of_a_delivery_stay(
    box: Box, erasures: Erasures, padding: int
) -> None:
    pieces = [
        json.dumps({"to": to, "n": n, "pad": "x" * padding}).encode()
        for n, to in enumerate([BOB, ANN, "joann@example.com", "ann@example.com.au"])
    ]
    body = b"[" + b",".join(pieces) + b"]"
    rotten = (
        Rotten(reason="bad", content=b"? Ann%40example.com"),
        Rotten(reason="bad", content=b"?"),
    )
    split = []
    for n, piece in enumerate(pieces):
        start = body.index(piece)
        digest = hashlib.sha256(piece).digest()
        split.append(SplitEvent(key=f"e{n}", digest=digest, start=start, end=start + len(piece)))
    await box.writer.admit([proposal(*split, body=body, rotten=rotten)])
    await box.writer.write(lambda t: apply(t, [(2, said(Kind.COMPLAINED, ANN))]))
    await erase(erasures)
    assert left(box) == []
    expected = [piece.decode() for piece in pieces]
    expected[1] = None  # type: ignore[call-overload]
    assert [content for (content,) in box.rows("SELECT content FROM events")] == expected
    assert box.rows("SELECT content, resolution FROM quarantine") == [(None, "erased"), ("?", None)]


def apply(t: Transaction, told: list[tuple[int, object]]) -> None:
    applied = [
        Applied(event_id=n, source_id=1, notifications=(each,))
        for n, each in told  # type: ignore[arg-type]
    ]
    ledger.append(t, applied, Budget())
    t.execute("UPDATE job SET state = 'completed', finished_at = 1")


async def test_content_that_is_not_applied_yet_is_left_and_said_so(
    box: Box, erasures: Erasures
) -> None:
    await box.receiver.receive(
        box.source, box.delivery("a", {"type": "email.complained", "data": {"to": [ANN]}})
    )
    assert (await erasures.erase(ANN, WORD)).pending == 1
    await work(box)
    await erase(erasures)
    assert left(box) == []
    assert verdict(box, erasures, ANN) == "complaint"


async def test_later_event_is_a_new_fact_and_can_be_erased_again(
    box: Box, erasures: Erasures
) -> None:
    await tell(box, "a")
    await erase(erasures)
    await tell(box, "b", kind="email.delivered")
    await tell(box, "c", kind="email.complained")
    assert verdict(box, erasures, ANN) == "complaint"
    assert len(box.rows("SELECT * FROM suppressions")) == 2
    done = await erase(erasures)
    assert left(box) == []
    assert box.rows("SELECT address, reason FROM suppressions") == [(done.name, "complaint")]
    assert len(box.rows("SELECT * FROM suppression_cause")) == 2
    assert {row[0] for row in box.rows("SELECT recipient FROM recipients")} == {done.name}


async def test_status_that_was_erased_before_takes_the_later_one_in(
    box: Box, erasures: Erasures
) -> None:
    for kind in (Kind.DELIVERED, Kind.COMPLAINED, Kind.SENT):
        number = len(box.rows("SELECT id FROM event")) + 1
        await box.writer.admit([proposal(SplitEvent(key=str(number), digest=b"x" * 32))])
        told = said(kind, ANN, message="m")
        await box.writer.write(lambda t, n=number, told=told: apply(t, [(n, told)]))
        await erase(erasures)
    assert box.rows("SELECT status, event_id FROM recipients") == [("complained", 2)]


async def test_persons_lift_finds_the_erased_one(box: Box, erasures: Erasures) -> None:
    await tell(box, "a")
    await erase(erasures)
    await box.writer.write(lambda t: suppressions.lift(t, ANN, "", WORD, erasures.pseudonyms))
    assert verdict(box, erasures, ANN) is None
    with pytest.raises(OperatorError, match="is not suppressed"):
        await box.writer.write(lambda t: suppressions.lift(t, ANN, "", WORD, erasures.pseudonyms))


async def test_names_are_the_same_after_a_restart(box: Box, erasures: Erasures) -> None:
    await tell(box, "a")
    done = await erase(erasures)
    again = Erasures(
        box.writer, box.path, secrets.load_seal(box.path.parent), box.clock, asyncio.Lock()
    )
    await again.start()
    assert again.pseudonyms.of_all(["ann@example.com"]) == [done.name]


async def test_database_alone_does_not_tell_whose_name_it_is(box: Box, erasures: Erasures) -> None:
    await tell(box, "a")
    await erase(erasures)
    key = erasures.pseudonyms.key
    assert key is not None
    stored = box.path.read_bytes()
    assert key not in stored
    assert key.hex().encode() not in stored
    with database.reading(box.path.parent) as transaction, pytest.raises(ZeroDivisionError):
        pseudonyms.known(transaction, lambda: 1 // 0)  # type: ignore[arg-type, return-value]


async def test_what_is_no_address_is_refused(erasures: Erasures) -> None:
    with pytest.raises(OperatorError, match="not an address"):
        await erasures.erase("everybody", WORD)


async def test_reader_that_stays_is_told_of(
    box: Box, erasures: Erasures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookbox.flows.erase.FOLD_AGAIN_S", 0)
    await tell(box, "a")
    reader = sqlite3.connect(box.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM event").fetchone()
    assert not (await erasures.erase(ANN, WORD)).folded
    reader.close()
    await erase(erasures)
    assert left(box) == []


async def test_many_rows_and_pages_leave_nothing_in_free_room(box: Box, erasures: Erasures) -> None:
    """Rows that were changed or moved leave copies in pages, unless they are overwritten."""
    told = []
    for n in range(400):
        to = ANN if n % 3 else f"user{n}@example.com"
        body = json.dumps({"to": to, "pad": "x" * (n * 37 % 3000)}).encode()
        digest = hashlib.sha256(body).digest()
        await box.writer.admit([proposal(SplitEvent(key=f"k{n}", digest=digest), body=body)])
        kind = (Kind.DELIVERED, Kind.BOUNCED, Kind.OPENED)[n % 3]
        told.append((n + 1, said(kind, to, message=f"m{n % 50}", bounce=BounceClass.SOFT)))
    await box.writer.write(lambda t: apply(t, told))
    done = await erase(erasures)
    assert left(box) == []
    assert done.statuses > 0
    assert box.rows("PRAGMA integrity_check") == [("ok",)]
