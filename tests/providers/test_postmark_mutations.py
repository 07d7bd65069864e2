"""No wrong credentials are believed, however near they are."""

import base64
from collections.abc import Iterator

from hookbox.errors import Refused
from tests.providers import changes
from tests.providers.requests import Headers, delivery, provider_of, trust

PROVIDER = provider_of("postmark")
SECRET, OTHER_SECRET = "hookbox:not-a-real-password-1", "hookbox:not-a-real-password-2"
MUTATIONS_MIN = 80


def _basic(credentials: bytes) -> str:
    return f"Basic {base64.b64encode(credentials).decode()}"


def _requests() -> Iterator[tuple[str, Headers]]:
    right = SECRET.encode()
    good = {"Authorization": _basic(right)}
    yield from changes.headers(good, ["Authorization"])
    for name, credentials in changes.flips(right):
        yield name, {"Authorization": _basic(credentials)}
    user, password = right.split(b":")
    for name, credentials in {
        "another secret": OTHER_SECRET.encode(),
        "nothing": b"",
        "the user alone": user,
        "no password": user + b":",
        "no user": b":" + password,
        "the password twice": right + password,
        "swapped": password + b":" + user,
        "in upper case": right.upper(),
        "and a newline": right + b"\n",
        "and a NUL": right + b"\0",
        "cut by one": right[:-1],
        "as UTF-16": SECRET.encode("utf-16"),
        "encoded twice": base64.b64encode(right),
    }.items():
        yield f"credentials {name}", {"Authorization": _basic(credentials)}
    token = base64.b64encode(right).decode()
    for value in (
        *(token, f"Bearer {token}", f"Basic{token}", f"Basic:{token}", f"Basic\t{token}"),
        *(f"Basic {SECRET}", f"Basic {right.hex()}", f"Basic {token}=", f"Basic {token[:-1]}"),
        *(f"Basic {token}, Basic {token}", f"Basic realm=x {token}", f"Digest {token}", "Basic"),
        *(f"Basic {token.replace('=', '')}x", f"Basic\n {token}", "Basic ====", f"asic {token}"),
    ):
        yield f"header `{value[:40]}`", {"Authorization": value}
    yield "in another header", {"X-Authorization": good["Authorization"]}
    yield "in the proxy's header", {"Proxy-Authorization": good["Authorization"]}


def test_no_mutation_is_accepted() -> None:
    """An error other than Refused would be a crash on demand, and ends the test."""
    keys, accepted, every = trust(PROVIDER, SECRET), [], list(_requests())
    for name, headers in every:
        try:
            PROVIDER.verify(delivery(headers, b"{}"), keys, 0)
        except Refused:
            continue
        accepted.append(name)
    assert accepted == []
    assert len(every) >= MUTATIONS_MIN


def test_word_basic_may_be_written_in_any_case() -> None:
    token = base64.b64encode(SECRET.encode()).decode()
    for value in (f"Basic {token}", f"basic {token}", f"BASIC   {token}", f"Basic {token} "):
        PROVIDER.verify(delivery({"Authorization": value}, b"{}"), trust(PROVIDER, SECRET), 0)
