"""The sources that the database knows, and the number of this start."""

from collections.abc import Mapping

from hookbox.store.connections import Transaction

REMEMBER_SOURCE = """
INSERT INTO source (name, provider) VALUES (:name, :provider)
ON CONFLICT (name) DO UPDATE SET provider = excluded.provider WHERE provider <> excluded.provider
"""
SOURCE_IDS = "SELECT name, id FROM source"
NEXT_INSTANCE = """
INSERT INTO meta (name, value) VALUES ('instance', 1)
ON CONFLICT (name) DO UPDATE SET value = value + 1
RETURNING value
"""


def changed(transaction: Transaction, providers: Mapping[str, str]) -> list[str]:
    """The names that stood for another provider before."""
    rows = transaction.execute("SELECT name, provider FROM source")
    return [r["name"] for r in rows if providers.get(r["name"], r["provider"]) != r["provider"]]


def remember(transaction: Transaction, providers: Mapping[str, str]) -> dict[str, int]:
    """Give every configured source (name -> provider name) its lasting id; name -> id of all that
    were ever there.
    """
    rows = [{"name": name, "provider": provider} for name, provider in providers.items()]
    transaction.executemany(REMEMBER_SOURCE, rows)
    return {row["name"]: row["id"] for row in transaction.execute(SOURCE_IDS)}


def next_instance(transaction: Transaction) -> int:
    """The number of this start; jobs of lower numbers belong to processes that are gone."""
    (instance,) = transaction.execute(NEXT_INSTANCE).fetchone()
    return int(instance)


def known(transaction: Transaction) -> dict[str, int]:
    """The name and lasting id of every source that was ever there."""
    return {row["name"]: row["id"] for row in transaction.execute(SOURCE_IDS)}
