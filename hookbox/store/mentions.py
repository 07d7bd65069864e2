"""Mentions of an address anywhere in the database, found by short reads and mended one by one.

Looks through every column of every table that holds text or content, whatever table it is; so
nothing that is added later is forgotten. Content is not mended but taken away.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hookbox.store import contents
from hookbox.store.connections import Row, Transaction

# Events about the address first: what they rest on goes with them, however it is written there.
FIRST = "notification"
TABLES = """
SELECT t.name, t.wr AS keyed FROM pragma_table_list AS t
WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name <> 'secret'
ORDER BY t.name <> :first, t.name
"""
COLUMNS = "SELECT name, type, pk FROM pragma_table_info(:table)"
CONTENT = {("delivery", "body"), ("event", "content"), ("quarantine_entry", "content")}
# Where the delivery of a row is found; for `notification` that of its event.
DELIVERY_OF = {
    "delivery": "SELECT id AS delivery_id, NULL AS event_id FROM delivery WHERE id = :id",
    "event": "SELECT delivery_id, NULL AS event_id FROM event WHERE id = :id",
    "quarantine_entry": "SELECT delivery_id, NULL AS event_id FROM quarantine_entry WHERE id = :id",
    "notification": """
        SELECT e.delivery_id, n.event_id
        FROM notification AS n JOIN event AS e ON e.id = n.event_id WHERE n.id = :id
    """,
}
LAST = "SELECT coalesce(max(rowid), 0) AS last FROM {table}"

PAGE = 2_000  # rows that are looked at in one read


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table, and what of it is looked at. `keyed`: it is known by its key alone."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    keyed: bool

    @property
    def where(self) -> str:
        return " AND ".join(f"{name} IS ?" for name in self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What is looked for: a part of every form in which it is written, what tells it from others,
    and the name that it goes by now.
    """

    needle: str
    pattern: re.Pattern[bytes]
    name: str

    def mentioned(self, value: object) -> bool:
        """Whether text or content mentions it."""
        raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        return isinstance(raw, bytes) and self.pattern.search(raw) is not None

    def renamed(self, text: str) -> str:
        """The text with the name in its place."""
        raw = text.encode("utf-8", "surrogatepass")
        return self.pattern.sub(self.name.encode(), raw).decode("utf-8", "surrogatepass")


def tables(ledger: Transaction) -> list[Table]:
    """Every table that can hold a mention, in the order in which they are mended."""
    found = []
    for table in ledger.execute(TABLES, {"first": FIRST}).fetchall():
        columns = ledger.execute(COLUMNS, {"table": table["name"]}).fetchall()
        looked_at = tuple(c["name"] for c in columns if c["type"] in ("TEXT", "BLOB", "ANY"))
        key = tuple(column["name"] for column in columns if column["pk"])
        if looked_at:
            keyed = bool(table["keyed"])
            found.append(
                Table(
                    name=table["name"],
                    key=key if keyed else ("rowid",),
                    columns=looked_at,
                    keyed=keyed,
                )
            )
    return found


def pages(ledger: Transaction, table: Table) -> range:
    """Where each page of it begins. What is known by its key alone is one page."""
    if table.keyed:
        return range(1)
    last = ledger.execute(LAST.format(table=table.name)).fetchone()["last"]
    return range(0, last, _page(table))


def _page(table: Table) -> int:
    """A row with content may be a thousand times as large as others."""
    holds_content = any((table.name, name) in CONTENT for name in table.columns)
    return PAGE // 20 if holds_content else PAGE


def find(ledger: Transaction, table: Table, after: int, sought: Sought) -> list[tuple[object, ...]]:
    """The keys of the rows of one page that mention it."""
    columns = ", ".join(table.columns)
    texts = " || char(10) || ".join(f"coalesce(CAST({name} AS TEXT), '')" for name in table.columns)
    within = "TRUE" if table.keyed else "rowid > :after AND rowid <= :until"
    statement = f"""
        SELECT {", ".join(table.key)}, {columns} FROM {table.name}
        WHERE {within} AND instr(lower({texts}), :needle)
    """
    asked = {"needle": sought.needle, "after": after, "until": after + _page(table)}
    rows = ledger.execute(statement, asked)
    width = len(table.key)
    return [tuple(row)[:width] for row in rows if any(map(sought.mentioned, tuple(row)[width:]))]


def mend(
    transaction: Transaction,
    table: Table,
    keys: Sequence[tuple[object, ...]],
    sought: Sought,
    now: int,
) -> int:
    """Take the address out of these rows; how many had to be left, since they are to be applied."""
    left = 0
    columns = ", ".join(table.columns)
    for key in keys:
        statement = f"SELECT {columns} FROM {table.name} WHERE {table.where}"
        row = transaction.execute(statement, key).fetchone()
        if row is None:
            continue
        if not _taken_away(transaction, table, key, row, sought, now):
            left += 1
        else:
            _rename(transaction, table, key, row, sought)
    return left


def _taken_away(
    transaction: Transaction,
    table: Table,
    key: tuple[object, ...],
    row: Row,
    sought: Sought,
    now: int,
) -> bool:
    """Content goes, and with what an event says all that it was read from."""
    if table.name not in DELIVERY_OF:
        return True
    own = [name for name in table.columns if (table.name, name) in CONTENT]
    if table.name != FIRST and not any(sought.mentioned(row[name]) for name in own):
        return True
    place = transaction.execute(DELIVERY_OF[table.name], {"id": key[0]}).fetchone()
    about = () if place["event_id"] is None else (place["event_id"],)
    return contents.erase(transaction, place["delivery_id"], about, sought.mentioned, now)


def _rename(
    transaction: Transaction, table: Table, key: tuple[object, ...], row: Row, sought: Sought
) -> None:
    changed = dict(_changes(table, row, sought))
    if not changed:
        return
    fields = ", ".join(f"{name} = ?" for name in changed)
    statement = f"UPDATE {table.name} SET {fields} WHERE {table.where}"
    try:
        transaction.execute(statement, (*changed.values(), *key))
    except sqlite3.IntegrityError:  # the same is there already, from an erasure before
        if "key" in changed and not table.keyed:
            changed["key"] = f"{changed['key']}~{key[0]}"
            transaction.execute(statement, (*changed.values(), *key))
        else:
            transaction.execute(f"DELETE FROM {table.name} WHERE {table.where}", key)


def _changes(table: Table, row: Row, sought: Sought) -> Iterator[tuple[str, object]]:
    for name in table.columns:
        value = row[name]
        if (table.name, name) in CONTENT or not sought.mentioned(value):
            continue
        yield name, sought.renamed(value) if isinstance(value, str) else b""
