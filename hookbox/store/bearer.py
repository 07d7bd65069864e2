"""The bearer token of the private door's port: a file in the state directory, for its owner only.

On a port one cannot see who asks, so whoever does shows the token. Through the Unix socket nobody
needs one.
"""

import contextlib
import os
import secrets
from pathlib import Path

from hookbox.errors import StoreError

FILE_NAME = "token"
BYTES = 32
MARK = "hbx_"  # so that one recognises it where it should not be


def ensured(state: Path) -> str:
    """The token of this state directory, made where there is none. Raises StoreError."""
    place = state / FILE_NAME
    return read(state) if place.exists() else renew(state)


def read(state: Path) -> str:
    """The token as it is. Raises StoreError where there is none that can be used."""
    place = state / FILE_NAME
    try:
        token = place.read_text().strip()
    except FileNotFoundError:
        raise StoreError(f"no token at {place} yet; start the box once") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{place} cannot be read ({error}); make another with: hookbox token --new"
        ) from error
    if len(token) < BYTES:
        raise StoreError(f"{place} holds no token; make another with: hookbox token --new")
    return token


def renew(state: Path) -> str:
    """A new token in the place of the old one: complete, or not there at all."""
    token = MARK + secrets.token_urlsafe(BYTES)
    place = state / FILE_NAME
    draft = place.with_suffix(".new")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, f"{token}\n".encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    draft.replace(place)
    return token
