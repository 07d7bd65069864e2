"""Where a secret lies. The configuration never holds one itself, so it can be shown and shared."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from hookbox.errors import ConfigError

ReferenceKind = Literal["env", "file", "credential"]

_NAMES = {
    "env": re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
    "file": re.compile(r"/[^\0\n]+"),
    "credential": re.compile(r"(?!\.\.?$)[^/\s\0]+"),
}
_MEND = (
    'write "env:NAME", "file:/full/path" or "credential:NAME", '
    "or leave the line out and keep the secret in the sealed store: hookbox secret set SOURCE"
)
# The longest key fits many times; a log or a device named by mistake does not.
_TEXT_MAX_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An environment variable, a file, or a credential that systemd hands over."""

    kind: ReferenceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, value: object) -> "Reference":
        """Read "env:NAME", "file:/path" or "credential:NAME". A refusal never repeats the text."""
        kind, colon, name = value.partition(":") if isinstance(value, str) else ("", "", "")
        if not value:
            raise ConfigError("is empty", mend=_MEND)
        if not colon or kind not in get_args(ReferenceKind):
            raise ConfigError(
                "is not a reference; a secret itself does not belong here", mend=_MEND
            )
        if not _NAMES[kind].fullmatch(name):
            raise ConfigError(f"does not name {_WHAT[kind]}", mend=_MEND)
        return cls(kind=cast(ReferenceKind, kind), name=name)

    def read(self) -> str:
        """The text it leads to, exactly as it stands there."""
        text = os.environ.get(self.name) if self.kind == "env" else _contents(self._path())
        if text is None:
            raise ConfigError(
                f"the environment variable {self.name} is not set",
                mend="set it where hookbox is started, as with EnvironmentFile= in the unit",
            )
        if not text.strip():
            raise ConfigError(f"{self} is empty", mend="put the secret there")
        return text

    def _path(self) -> Path:
        if self.kind == "file":
            return Path(self.name)
        folder = os.environ.get("CREDENTIALS_DIRECTORY")
        if not folder:
            raise ConfigError(
                f"{self} cannot be read: systemd has handed no credentials to this program",
                mend=f"add LoadCredential={self.name}:/path to the unit, or use file:/path",
            )
        return Path(folder) / self.name


_WHAT = {
    "env": "an environment variable (letters, digits and _)",
    "file": "a file by its full path",
    "credential": "a credential (a file name without /)",
}


def _contents(path: Path) -> str:
    try:
        # Not to wait for whoever should write into a pipe: the running box would wait, too.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{path} is no file", mend="name a file that holds the secret")
            raw = file.read(_TEXT_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}",
            mend="create it, readable for the user that runs hookbox and nobody else",
        ) from None
    if len(raw) > _TEXT_MAX_BYTES:
        raise ConfigError(
            f"{path} is too long for a secret", mend="check that it is the right file"
        )
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8", mend="store it as text") from None
