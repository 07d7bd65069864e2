"""Reading form bodies and query strings: `application/x-www-form-urlencoded`, as bytes."""

from urllib.parse import parse_qsl

from hookbox.rules.digest import Unreadable

# Senders post a dozen fields. A body of a million `&` would make a million pairs.
FIELDS_MAX = 1000


def fields(text: bytes) -> list[tuple[bytes, bytes]]:
    """Names and values in order, percent and plus signs undone; Unreadable for too many of them.

    Read as latin-1 and written back, so that the bytes come through whatever they encode.
    """
    try:
        found = parse_qsl(
            text.decode("latin-1"),
            keep_blank_values=True,
            encoding="latin-1",
            max_num_fields=FIELDS_MAX,
        )
    except ValueError as error:
        raise Unreadable(f"a form of more than {FIELDS_MAX} fields") from error
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in found]


def flat_object(text: bytes) -> dict[str, object]:
    """A form as one flat object of texts."""
    try:
        found = [(name.decode(), value.decode()) for name, value in fields(text)]
    except UnicodeDecodeError as error:
        raise Unreadable("a form that is not UTF-8") from error
    if len(dict(found)) != len(found):
        raise Unreadable("two fields of the form have the same name")
    return dict(found)
