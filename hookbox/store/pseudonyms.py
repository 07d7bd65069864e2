"""The names by which erased addresses go on: who may not be mailed stays known, but not as whom.

They are made with a key of their own, kept in the sealed store: whoever has the database alone, or
a backup of it, cannot try addresses out.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hookbox.model import Slot
from hookbox.rules.mentions import pseudonym
from hookbox.store.connections import Transaction
from hookbox.store.secrets import Seal, of_owner, put

OWNER = "erasure"
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Without a key nobody was ever erased."""

    key: bytes | None = field(default=None, repr=False)

    def of_all(self, folded: Sequence[str]) -> list[str]:
        """The name of each of these addresses; nothing at all where nobody has one."""
        return [] if self.key is None else [pseudonym(self.key, each) for each in folded]


NONE = Pseudonyms()


def known(transaction: Transaction, seal: Callable[[], Seal]) -> Pseudonyms:
    """The names in use. The seal is only asked for where somebody was erased."""
    sealed = of_owner(transaction, OWNER).get(Slot.CURRENT)
    return NONE if sealed is None else Pseudonyms(bytes.fromhex(seal().open(sealed)))


def ensured(transaction: Transaction, seal: Seal, now: int) -> Pseudonyms:
    """The same, with a key made for the first who is erased."""
    found = known(transaction, lambda: seal)
    if found.key is not None:
        return found
    key = secrets.token_bytes(KEY_BYTES)
    put(transaction, OWNER, Slot.CURRENT, seal.close(key.hex()), now)
    return Pseudonyms(key)
