"""Reading form bodies and query strings: `application/x-www-form-urlencoded`, as bytes."""

from urllib.parse import parse_qsl

# Senders post a dozen fields. A body of a million `&` would make a million pairs.
FIELDS_MAX = 1000


def fields(text: bytes) -> list[tuple[bytes, bytes]]:
    """Names and values in order, percent and plus signs undone; ValueError for too many of them.

    Read as latin-1 and written back, so that the bytes come through whatever they encode.
    """
    found = parse_qsl(
        text.decode("latin-1"),
        keep_blank_values=True,
        encoding="latin-1",
        max_num_fields=FIELDS_MAX,
    )
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in found]
