"""The sealed store: secrets in the database, readable only with a key that is not in the database.

The key is a Fernet key in `hookbox.key` (0600, beside the database) or the systemd credential
`hookbox.key`. A backup of the database alone gives no secret away.
"""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hookbox.errors import OperatorError, StoreError
from hookbox.model import Slot
from hookbox.store import database
from hookbox.store.connections import Transaction

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

KEY_NAME = "hookbox.key"

PUT = """
INSERT INTO secret (owner, slot, sealed, set_at) VALUES (:owner, :slot, :sealed, :now)
ON CONFLICT (owner, slot) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at
"""
DEMOTE = """
INSERT INTO secret (owner, slot, sealed, set_at)
SELECT owner, 'previous', sealed, set_at FROM secret WHERE owner = :owner AND slot = 'current'
ON CONFLICT (owner, slot) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at
"""
DROP = "DELETE FROM secret WHERE owner = :owner AND slot = :slot"
OF_OWNER = "SELECT slot, sealed FROM secret WHERE owner = :owner"
MOVE_USE = """
UPDATE secret_use SET slot = 'previous' WHERE slot = 'current' AND source_id = (
  SELECT id FROM source WHERE 'source.' || name = :owner
)
"""
FORGET_USE = """
DELETE FROM secret_use WHERE slot = :slot AND source_id = (
  SELECT id FROM source WHERE 'source.' || name = :owner
)
"""
SEALED = "SELECT sealed FROM secret"
ANY = "SELECT EXISTS (SELECT 1 FROM secret)"


class Seal:
    """Seals and opens secrets with one key."""

    def __init__(self, fernet: "Fernet") -> None:
        self._fernet = fernet

    def __repr__(self) -> str:
        return "Seal(…)"

    def close(self, text: str) -> bytes:
        """Text to sealed bytes."""
        return self._fernet.encrypt(text.encode())

    def open(self, sealed: bytes) -> str:
        """Sealed bytes to text. Raises StoreError when another key sealed them."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken:
            raise StoreError(
                f"a stored secret cannot be opened with {KEY_NAME}; put the key file back that "
                "belongs to this database, or set the secret again with: hookbox secret set SOURCE"
            ) from None


def load_seal(state: Path) -> Seal:
    """The seal of this state directory; its key file is made on first use. Raises StoreError for an
    unusable key.
    """
    from cryptography.fernet import Fernet

    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    place = (
        Path(folder, KEY_NAME) if folder and Path(folder, KEY_NAME).exists() else state / KEY_NAME
    )
    if not place.exists():
        _check_nothing_sealed(state, place)
        _create_key(place, Fernet.generate_key())
    try:
        return Seal(Fernet(place.read_bytes().strip()))
    except ValueError:
        raise StoreError(
            f"{place} is not a usable key; put back the one that belongs to this database, or "
            "remove it and set every secret again"
        ) from None
    except OSError as error:
        raise StoreError(f"{place} cannot be read: {error.strerror}") from error


def _check_nothing_sealed(state: Path, place: Path) -> None:
    """A new key would open none of the secrets that another one sealed."""
    if not (state / database.FILE_NAME).exists():
        return
    with database.reading(state) as transaction:
        sealed = any_sealed(transaction)
    if sealed:
        raise StoreError(
            f"{place} is missing, and the database holds secrets that were sealed with it; put it "
            "back (as a service it may be a systemd credential: then run this as the service does)"
        )


def _create_key(place: Path, key: bytes) -> None:
    """Complete or not there at all, also after a power cut in between."""
    draft = place.with_suffix(".new")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, key + b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)
    with contextlib.suppress(FileExistsError):
        os.link(draft, place)  # never replaces a key that somebody made meanwhile
    draft.unlink()
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def put(transaction: Transaction, owner: str, slot: Slot, sealed: bytes, now: int) -> None:
    """Set one slot; what the one before it proved is no longer counted."""
    transaction.execute(FORGET_USE, {"owner": owner, "slot": slot})
    transaction.execute(PUT, {"owner": owner, "slot": slot, "sealed": sealed, "now": now})


def rotate(transaction: Transaction, owner: str, sealed: bytes, now: int) -> None:
    """The current secret becomes the previous one, and this one current."""
    if transaction.execute(DEMOTE, {"owner": owner}).rowcount < 1:
        raise OperatorError(
            f"{owner} has no current secret to rotate; set one with: hookbox secret set"
        )
    transaction.execute(FORGET_USE, {"owner": owner, "slot": Slot.PREVIOUS})
    transaction.execute(MOVE_USE, {"owner": owner})
    put(transaction, owner, Slot.CURRENT, sealed, now)


def drop(transaction: Transaction, owner: str, slot: Slot) -> None:
    """Forget one slot. Raises OperatorError when it was empty."""
    if transaction.execute(DROP, {"owner": owner, "slot": slot}).rowcount < 1:
        raise OperatorError(f"{owner} has no {slot} secret in the sealed store")
    transaction.execute(FORGET_USE, {"owner": owner, "slot": slot})


def source_owner(name: str) -> str:
    """Under which name a source's secrets are kept."""
    return f"source.{name}"


def destination_owner(name: str) -> str:
    """Under which name a destination's secrets are kept."""
    return f"destination.{name}"


def opened(transaction: Transaction, seal: Seal, owner: str) -> dict[Slot, str]:
    """The secrets of one owner."""
    return {slot: seal.open(sealed) for slot, sealed in of_owner(transaction, owner).items()}


def of_owner(transaction: Transaction, owner: str) -> dict[Slot, bytes]:
    """The sealed secrets of one owner."""
    rows = transaction.execute(OF_OWNER, {"owner": owner})
    return {Slot(row["slot"]): row["sealed"] for row in rows}


def any_sealed(transaction: Transaction) -> bool:
    """Whether the sealed store holds anything, which takes its key to open."""
    return bool(transaction.execute(ANY).fetchone()[0])


def all_sealed(transaction: Transaction) -> list[bytes]:
    """Every sealed secret, whoever it belongs to."""
    return [row["sealed"] for row in transaction.execute(SEALED)]
