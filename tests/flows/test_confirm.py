"""How an offer to subscribe is answered: once, by the topic's own host, never by its own URL."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from hookbox.flows.confirm import SCHEDULE_S, confirm
from hookbox.model import Attempt, StoredEvent, Verdict
from hookbox.net import Net
from hookbox.store.jobs import Job
from tests.outbound import guarded
from tests.pki import authority, client_side, server, server_side
from tests.providers.topics import ARN, FAREWELL, HOST, NOTIFICATION, OFFER, TOKEN, posted
from tests.rules.hostile import SUBSCRIBE_URLS
from tests.servers import Respond, answering, http_server

JOB = Job(id=1, event_id=1, attempts=0, replay=0)
ERROR = (
    b"<ErrorResponse><Error><Type>Sender</Type><Code>%b</Code><Message>%b</Message></Error>"
    b"</ErrorResponse>"
)


def event(**changed: str) -> StoredEvent:
    return StoredEvent(
        id=1,
        source="test",
        key="k",
        raw_kind="SubscriptionConfirmation",
        content=posted({**OFFER, **changed}).body,
        headers={},
        received_at=0,
    )


async def tried(respond: Respond, folder: Path, found: StoredEvent) -> tuple[Attempt, list[bytes]]:
    """One attempt against a host that answers so."""
    root = authority("root")
    tls = server_side([server(root, HOST)], folder)
    async with http_server(respond, tls) as seen:

        async def resolve(host: str, port: int) -> Sequence[tuple[str, int]]:
            assert (host, port) == (HOST, 443)
            return [seen.where]

        net = Net(loopback=True, resolve=resolve, tls=client_side(root))
        with guarded(seen.where):
            return await confirm(net, found, JOB), seen.heads


async def test_offer_is_confirmed_with_topic_and_token(tmp_path: Path) -> None:
    offer = event(SubscribeURL=f"https://{HOST}/?Action=DeleteTopic&TopicArn=x")
    attempt, heads = await tried(answering("200 OK", b"<ok/>"), tmp_path, offer)
    assert (attempt.verdict, attempt.status) == (Verdict.DONE, 200)
    method, path, _ = heads[0].decode().split("\r\n")[0].split(" ")
    assert (method, urlsplit(path).path) == ("GET", "/")
    assert parse_qs(urlsplit(path).query) == {
        "Action": ["ConfirmSubscription"],
        "TopicArn": [ARN],
        "Token": [TOKEN],
    }


@pytest.mark.parametrize(
    ("status", "code", "verdict"),
    [
        ("400 Bad Request", b"InvalidParameter", Verdict.NEVER),
        ("403 Forbidden", b"AuthorizationError", Verdict.NEVER),
        ("404 Not Found", b"NotFound", Verdict.NEVER),
        ("400 Bad Request", b"Throttling", Verdict.LATER),
        ("400 Bad Request", b"ThrottlingException", Verdict.LATER),
        ("429 Too Many Requests", b"Throttled", Verdict.LATER),
        ("408 Request Timeout", b"x", Verdict.LATER),
        ("500 Internal Server Error", b"InternalError", Verdict.LATER),
        ("503 Service Unavailable", b"x", Verdict.LATER),
        ("301 Moved", b"x", Verdict.LATER),
    ],
)
async def test_answer_decides_whether_to_ask_again(
    status: str, code: bytes, verdict: Verdict, tmp_path: Path
) -> None:
    body = ERROR % (code, b"Invalid\x00 token")
    attempt, heads = await tried(answering(status, body), tmp_path, event())
    assert (attempt.verdict, attempt.status) == (verdict, int(status[:3]))
    assert attempt.excerpt == "Invalid\ufffd token"
    assert len(heads) == 1


async def test_host_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    async with http_server(answering("200 OK")) as dead:
        pass

    async def resolve(host: str, port: int) -> Sequence[tuple[str, int]]:
        return [dead.where]

    with guarded(dead.where):
        attempt = await confirm(Net(loopback=True, resolve=resolve), event(), JOB)
    assert (attempt.verdict, attempt.status) == (Verdict.LATER, None)


@pytest.mark.parametrize("url", SUBSCRIBE_URLS, ids=lambda url: repr(url[:90]))
async def test_offer_that_leads_elsewhere_asks_nobody(url: str) -> None:
    """It is refused when it arrives, and once more here."""
    with guarded() as guard:
        attempt = await confirm(Net(), event(SubscribeURL=url), JOB)
    assert attempt.verdict is Verdict.NEVER
    assert (guard.connects, guard.lookups) == ([], [])


@pytest.mark.parametrize("message", [NOTIFICATION, FAREWELL], ids=lambda message: message["Type"])
async def test_nothing_else_is_ever_confirmed(message: dict[str, str]) -> None:
    with guarded() as guard:
        attempt = await confirm(Net(), event(**message), JOB)
    assert attempt.verdict is Verdict.NEVER
    assert (guard.connects, guard.lookups) == ([], [])


def test_tries_last_as_long_as_the_token() -> None:
    assert 2 * 86_400 >= sum(SCHEDULE_S) >= 86_400
