"""Tokens signed instead of the content: each vouches for the first content seen with it."""

import json
from collections.abc import Sequence

from hookbox.store.connections import Transaction
from hookbox.store.proposals import Proposal

KNOWN_TOKENS = """
SELECT wanted.key AS position, token.digest
FROM json_each(:wanted) AS wanted
CROSS JOIN token
  ON token.source_id = json_extract(wanted.value, '$[0]')
  AND token.token = json_extract(wanted.value, '$[1]')
"""
INSERT_TOKENS = """
INSERT INTO token (source_id, token, digest, seen_at) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""


def bind(transaction: Transaction, proposals: Sequence[Proposal], now: int) -> set[int]:
    """Remember what each token came with; the positions of proposals whose token came with other
    content before. Costs nothing for senders without tokens.
    """
    asked = [(position, each) for position, each in enumerate(proposals) if each.token]
    if not asked:
        return set()
    wanted = json.dumps([[each.delivery.source_id, each.token] for _, each in asked])
    rows = transaction.execute(KNOWN_TOKENS, {"wanted": wanted})
    known = {_place(asked[row["position"]][1]): row["digest"] for row in rows}
    reused: set[int] = set()
    for position, each in asked:
        if known.setdefault(_place(each), each.content_digest) != each.content_digest:
            reused.add(position)
    transaction.executemany(
        INSERT_TOKENS, [(*place, digest, now) for place, digest in known.items()]
    )
    return reused


def _place(proposal: Proposal) -> tuple[int, str]:
    return proposal.delivery.source_id, proposal.token
