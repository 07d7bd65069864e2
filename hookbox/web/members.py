"""The members of a JSON object that a program sends."""

from collections.abc import Sequence
from typing import Any

from litestar.exceptions import ValidationException


def known_members(body: object, names: Sequence[str]) -> dict[str, Any]:
    """The object, when it has no other members: what a misspelt one asks for would be left out
    without a word. Raises ValidationException.
    """
    known = ", ".join(names)
    if not isinstance(body, dict):
        raise ValidationException(f"send a JSON object; its members are {known}")
    for name in body:
        if name not in names:
            raise ValidationException(f"{name!r} is no member here; there are {known}")
    return body
