"""What the unique index decides, and what is written with it."""

import asyncio
import json
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookbox.model import Admission, Rotten
from hookbox.store import admissions, connections, schema
from hookbox.store.admissions import Ids
from hookbox.store.proposals import Proposal
from hookbox.store.writer import Writer
from tests.store.conftest import Rows
from tests.store.offers import event, proposal


async def test_new_event_comes_with_its_delivery_and_one_apply_job(
    writer: Writer, rows: Rows
) -> None:
    admission = await writer.admit([proposal(event("evt_1", b"a"), body=b'{"n": 1}')])
    assert admission == Admission(new=1)
    assert rows("SELECT key, state, duplicates, content, via, verified_by FROM events") == [
        ("evt_1", "pending", 0, '{"n": 1}', "webhook", "current")
    ]
    assert rows("SELECT event_id, target, replay, state FROM outbox") == [
        (1, "apply", 0, "available")
    ]


async def test_duplicate_is_counted_and_leaves_no_row_behind(writer: Writer, rows: Rows) -> None:
    await writer.admit([proposal(event("evt_1"))])
    again = [await writer.admit([proposal(event("evt_1"))]) for _ in range(3)]
    assert again == [Admission(duplicate=1)] * 3
    assert rows("SELECT duplicates, last_duplicate_at IS NOT NULL FROM events") == [(3, 1)]
    assert rows("SELECT (SELECT count(*) FROM delivery), (SELECT count(*) FROM job)") == [(1, 1)]


async def test_conflict_is_set_aside_once_however_often_it_comes(
    writer: Writer, rows: Rows
) -> None:
    await writer.admit([proposal(event("evt_1", b"a"), body=b"a")])
    outcomes = [await writer.admit([proposal(event("evt_1", b"b"), body=b"b")]) for _ in range(3)]
    outcomes.append(await writer.admit([proposal(event("evt_1", b"a"), body=b"a")]))
    assert outcomes == [Admission(conflicting=1)] * 3 + [Admission(duplicate=1)]
    assert rows("SELECT key, reason, content FROM quarantine") == [
        ("evt_1", "payload_digest_conflict", "b")
    ]
    assert rows("SELECT repeats FROM quarantine_entry") == [(2,)]
    assert rows("SELECT content FROM events") == [("a",)]
    assert rows("SELECT count(*) FROM outbox") == [(1,)]


async def test_two_different_conflicts_of_one_key_are_two_entries(
    writer: Writer, rows: Rows
) -> None:
    for content in (b"a", b"b", b"c"):
        await writer.admit([proposal(event("evt_1", content), body=content)])
    assert rows("SELECT content FROM quarantine ORDER BY id") == [("b",), ("c",)]


async def test_same_key_of_two_sources_is_two_events(writer: Writer, rows: Rows) -> None:
    await writer.write(
        lambda t: t.execute("INSERT INTO source (name, provider) VALUES ('b', 'efa')") and None
    )
    first = await writer.admit([proposal(event("evt_1", b"a"))])
    second = await writer.admit([proposal(event("evt_1", b"b"), source_id=2)])
    assert (first, second) == (Admission(new=1), Admission(new=1))
    assert rows("SELECT source, key FROM events ORDER BY id") == [("std", "evt_1"), ("b", "evt_1")]


async def test_keys_that_differ_only_in_case_or_look_like_numbers_stay_apart(
    writer: Writer, rows: Rows
) -> None:
    keys = ["a", "A", "1", "01", "1.0", " 1", "é", "e\u0301"]
    await writer.admit([proposal(*[event(key, key.encode()) for key in keys])])
    assert [key for (key,) in rows("SELECT key FROM events ORDER BY id")] == keys
    again = await writer.admit([proposal(*[event(key, key.encode()) for key in keys])])
    assert again == Admission(duplicate=len(keys))


async def test_twins_in_one_delivery_are_one_event(writer: Writer, rows: Rows) -> None:
    admission = await writer.admit([proposal(event("x", b"1"), event("x", b"1"), event("x", b"2"))])
    assert admission == Admission(new=1, duplicate=1, conflicting=1)
    assert rows("SELECT count(*) FROM events") == [(1,)]


async def test_events_of_a_batch_are_slices_of_its_body(writer: Writer, rows: Rows) -> None:
    body = '[{"a":"é"}, {"b":2}]'.encode()
    first, second = body.index(b"{"), body.rindex(b"{")
    await writer.admit(
        [
            proposal(
                event("1", b"1", start=first, end=body.index(b"}") + 1),
                event("2", b"2", start=second, end=len(body) - 1),
                body=body,
            )
        ]
    )
    assert rows("SELECT content FROM events ORDER BY id") == [('{"a":"é"}',), ('{"b":2}',)]


async def test_content_that_is_no_text_is_shown_as_hex_and_kept_exactly(
    writer: Writer, rows: Rows
) -> None:
    given_proposal = proposal(event("1"), body=b"\xff\x00x")
    given_proposal.delivery.is_text = False
    await writer.admit([given_proposal])
    assert rows("SELECT content FROM events") == [("hex:FF0078",)]
    assert rows("SELECT body FROM delivery") == [(b"\xff\x00x",)]


async def test_rotten_piece_is_quarantined_alone(writer: Writer, rows: Rows) -> None:
    rotten = (
        Rotten(reason="not_an_object", content=b"7"),
        Rotten(reason="not_an_object", content=b"null"),
    )
    admission = await writer.admit([proposal(event("1"), body=b"[{},7,null]", rotten=rotten)])
    assert admission == Admission(new=1, quarantined=2)
    assert rows("SELECT reason, content FROM quarantine ORDER BY id") == [
        ("not_an_object", "7"),
        ("not_an_object", "null"),
    ]


async def test_large_delivery_in_chunks_is_answered_after_the_last_and_stored_once(
    writer: Writer, rows: Rows
) -> None:
    first = proposal(*[event(f"a{n}") for n in range(300)], body=b"big")
    second = Proposal(delivery=first.delivery, events=[event(f"b{n}") for n in range(300)])
    assert await writer.admit([first, second]) == Admission(new=600)
    assert rows("SELECT count(*), count(DISTINCT delivery_id) FROM event") == [(600, 1)]
    assert rows("SELECT count(*) FROM delivery") == [(1,)]


async def test_guilty_proposal_goes_to_quarantine_and_its_neighbours_are_stored(
    writer: Writer, rows: Rows
) -> None:
    """A key that SQLite cannot take (a lone surrogate) must cost nobody else anything, and lose
    nothing.
    """
    offers = [proposal(event(f"good{n}")) for n in range(5)] + [
        proposal(event("bad\ud800"), body=b"precious")
    ]
    admitted = await asyncio.gather(*(writer.admit([offer]) for offer in offers))
    assert admitted == [Admission(new=1)] * 5 + [Admission(quarantined=1)]
    assert rows("SELECT reason, content FROM quarantine") == [("unstorable", "precious")]
    assert rows("SELECT count(*) FROM events") == [(5,)]


async def test_sixty_four_copies_at_once_are_one_event_and_one_job(
    writer: Writer, rows: Rows
) -> None:
    offers = [proposal(event(f"evt_{n % 50}", b"same")) for n in range(50 * 64)]
    random.Random(1).shuffle(offers)
    admitted = []
    for at in range(0, len(offers), 400):
        admitted += await asyncio.gather(
            *(writer.admit([offer]) for offer in offers[at : at + 400])
        )
    assert sum(a.new for a in admitted) == 50
    assert sum(a.duplicate for a in admitted) == 50 * 63
    assert rows("SELECT count(*), sum(duplicates) FROM events") == [(50, 50 * 63)]
    assert rows("SELECT count(*) FROM outbox") == [(50,)]


offer_lists = st.lists(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=6),
    min_size=1,
    max_size=12,
)


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(offer_lists)
def test_any_mix_of_batches_keeps_the_first_content_of_every_key(
    tmp_path_factory: object, offers: list[list[tuple[int, int]]]
) -> None:
    """Against the obvious model: a dict of first contents, and a set of all else that came."""
    import sqlite3

    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    for _, sql in schema.migrations():
        connection.executescript(sql)
    connection.execute("INSERT INTO source (name, provider) VALUES ('std', 'x')")
    ids = Ids()
    first: dict[str, bytes] = {}
    others: set[tuple[str, bytes]] = set()
    for at in range(0, len(offers), 3):
        batch = [
            [(f"k{key}", str(content).encode()) for key, content in pairs]
            for pairs in offers[at : at + 3]
        ]
        proposals = [proposal(*[event(key, content) for key, content in pairs]) for pairs in batch]
        admitted = connections.in_transaction(
            connection, lambda t, proposals=proposals: admissions.admit(t, proposals, ids, 1)
        )
        for pairs, admission in zip(batch, admitted, strict=True):
            expected = {"new": 0, "duplicate": 0, "conflicting": 0}
            for key, content in pairs:
                known = first.setdefault(key, content) if key in first else None
                if known is None:
                    first[key] = content
                    expected["new"] += 1
                elif known == content:
                    expected["duplicate"] += 1
                else:
                    others.add((key, content))
                    expected["conflicting"] += 1
            assert admission == Admission(**expected)
    stored = {
        row["key"]: row["digest"] for row in connection.execute("SELECT key, digest FROM event")
    }
    assert stored == {key: event(key, content).digest for key, content in first.items()}
    (aside,) = connection.execute("SELECT count(*) FROM quarantine_entry").fetchone()
    (jobs,) = connection.execute("SELECT count(*) FROM job").fetchone()
    assert (aside, jobs) == (len(others), len(first))
    assert not connection.execute("PRAGMA foreign_key_check").fetchall()
    connection.close()


def test_lookup_of_known_events_uses_the_identity_index(rows: Rows) -> None:
    with_keys = json.dumps([[1, "a"]])
    plan = rows(
        "EXPLAIN QUERY PLAN " + admissions.KNOWN_EVENTS.replace(":wanted", f"'{with_keys}'")
    )
    assert any(
        "USING INDEX event_identity (source_id=? AND key=?)" in str(line[3]) for line in plan
    ), plan


async def test_token_vouches_for_the_first_content_and_no_other(writer: Writer, rows: Rows) -> None:
    first = proposal(event("a", b"1"))
    again = proposal(event("a", b"1"))
    forged = proposal(event("b", b"2"))
    for each in (first, again, forged):
        each.token = "once"
    assert await writer.admit([first]) == Admission(new=1)
    assert await writer.admit([again]) == Admission(duplicate=1)
    assert await writer.admit([forged]) == Admission(token_reused=True)
    assert rows("SELECT key FROM events") == [("a",)]
    assert rows("SELECT (SELECT count(*) FROM delivery), (SELECT count(*) FROM job)") == [(1, 1)]


async def test_token_with_two_contents_at_once_lets_one_through(writer: Writer, rows: Rows) -> None:
    offers = [proposal(event(f"k{n}", str(n).encode())) for n in range(6)]
    for offer in offers:
        offer.token = "once"
    admitted = await asyncio.gather(*(writer.admit([offer]) for offer in offers))
    assert [each.new for each in admitted].count(1) == 1
    assert [each.token_reused for each in admitted].count(True) == 5
    assert rows("SELECT count(*) FROM events") == [(1,)]
