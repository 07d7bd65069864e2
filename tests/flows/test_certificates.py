"""Where signing certificates come from, what is asked of them, and what a failure costs."""

import asyncio
import functools
import logging
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from hookbox.clock import ManualClock
from hookbox.errors import CannotVerify, OperatorError
from hookbox.flows import certificates as flow
from hookbox.flows.certificates import Certificates, system_authorities
from hookbox.flows.signer import KEY_FILE, local_signer, make_local_signer
from hookbox.net import Net
from hookbox.rules.certificates import authorities
from tests.outbound import guarded
from tests.pki import BORN, Issued, authority, client_side, rsa_key, server, server_side
from tests.rules.hostile import GOOD, HOST, NAME
from tests.servers import Seen, http_server

NOW = round((BORN + timedelta(days=30)).timestamp() * 1000)
ISSUER_URL = "http://crt.r2m01.amazontrust.com/r2m01.cer"


@dataclass
class Amazon:
    """What Amazon publishes, and how often it was asked."""

    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    plain: Seen = field(default_factory=Seen)
    hold: asyncio.Event | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def paths(self) -> list[str]:
        return [head.split(b" ")[1].decode() for head in (*self.seen.heads, *self.plain.heads)]

    async def respond(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        self.asked.set()
        if self.hold is not None:
            await self.hold.wait()
        path = head.split(b" ")[1].decode()
        status, body = self.files.get(path, ("403 Forbidden", b"<Error/>"))
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


@functools.cache
def root() -> Issued:
    return authority("root")


@functools.cache
def intermediate() -> Issued:
    return authority("intermediate", root())


@functools.cache
def leaf_key() -> object:
    return rsa_key()


def leaf(issuer: Issued | None = None, *names: str, **more: object) -> Issued:
    """A signing certificate as Amazon's are: from an intermediate, and alone in its file."""
    issuer = issuer or intermediate()
    names = names or ("sns.amazonaws.com",)
    return server(issuer, *names, key=leaf_key(), **{"issuer_url": ISSUER_URL, **more})  # type: ignore[arg-type]


@dataclass
class Bench:
    """Certificates that are fetched from the Amazon at hand."""

    amazon: Amazon
    clock: ManualClock
    net: Net
    certificates: Certificates

    def publish(self, found: Issued, *chain: Issued, name: str = NAME) -> bytes:
        pem = b"".join(each.pem for each in (found, *chain))
        self.amazon.files[f"/{name}"] = ("200 OK", pem)
        return pem

    def publish_issuer(self, found: Issued) -> None:
        self.amazon.files["/r2m01.cer"] = ("200 OK", found.der)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with benched(tmp_path) as found:
        yield found


@asynccontextmanager
async def benched(folder: Path) -> AsyncIterator[Bench]:
    amazon, clock = Amazon(), ManualClock(NOW)
    tls = server_side([server(root(), HOST)], folder)
    async with (
        http_server(amazon.respond, tls) as amazon.seen,
        http_server(amazon.respond) as amazon.plain,
    ):

        async def resolve(host: str, port: int) -> Sequence[tuple[str, int]]:
            places = {(HOST, 443): amazon.seen.where, ("crt.r2m01.amazontrust.com", 80): None}
            found = places[host, port]
            return [found or amazon.plain.where]

        net = Net(loopback=True, resolve=resolve, tls=client_side(root()))
        certificates = Certificates(net, clock, lambda: [root().pem])
        with guarded(amazon.seen.where, amazon.plain.where):
            yield Bench(amazon, clock, net, certificates)
        await certificates.stop()


# -- what passes ---------------------------------------------------------------------------------


async def test_certificate_with_its_chain_is_taken(bench: Bench) -> None:
    pem = bench.publish(leaf(), intermediate())
    assert await bench.certificates.get(GOOD) == pem
    assert bench.amazon.paths == [f"/{NAME}"]


async def test_missing_link_of_the_chain_is_fetched_from_where_the_certificate_says(
    bench: Bench,
) -> None:
    """Amazon's files hold one certificate and not the one that signed it."""
    pem = bench.publish(leaf())
    bench.publish_issuer(intermediate())
    assert await bench.certificates.get(GOOD) == pem
    assert bench.amazon.paths == [f"/{NAME}", "/r2m01.cer"]


async def test_name_of_the_region_is_as_good_as_the_common_one(bench: Bench) -> None:
    bench.publish(leaf(None, "sns-signing.eu-west-1.amazonaws.com", HOST), intermediate())
    await bench.certificates.get(GOOD)


# -- what does not, and is our fault all the same ------------------------------------------------


@pytest.mark.parametrize(
    "found",
    [
        lambda: leaf(authority("stranger")),
        lambda: leaf(authority("intermediate", authority("root"))),
        lambda: leaf(None, "sns.us-east-1.amazonaws.com"),
        lambda: leaf(None, "sns-signing.us-east-1.amazonaws.com"),
        lambda: leaf(None, "evil.example"),
        lambda: leaf(None, "*.amazonaws.com"),
        lambda: leaf(start=BORN + timedelta(days=31), end=BORN + timedelta(days=60)),
        lambda: leaf(start=BORN, end=BORN + timedelta(days=29)),
        intermediate,
        lambda: server(intermediate(), "sns.amazonaws.com"),  # not RSA
    ],
    ids=[
        *("of a stranger", "of a stranger's namesake", "another region", "another region's own"),
        *("somebody else", "wildcard", "not yet valid", "expired", "an authority", "another key"),
    ],
)
async def test_certificate_that_nobody_vouches_for_is_not_used(bench: Bench, found: object) -> None:
    assert callable(found)
    bench.publish(found(), intermediate())
    bench.publish_issuer(intermediate())
    with pytest.raises(CannotVerify):
        await bench.certificates.get(GOOD)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        ("200 OK", b""),
        ("200 OK", b"<html>"),
        ("200 OK", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        ("200 OK", b"x" * 70_000),
        ("403 Forbidden", b"<Error/>"),
        ("404 Not Found", b""),
        ("500 Internal Server Error", b""),
        ("301 Moved", b""),
    ],
)
async def test_answer_that_is_no_certificate_is_not_used(
    bench: Bench, status: str, body: bytes
) -> None:
    bench.amazon.files[f"/{NAME}"] = (status, body)
    with pytest.raises(CannotVerify):
        await bench.certificates.get(GOOD)


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example/r2m01.cer",
        "http://amazontrust.com.evil.example/r2m01.cer",
        "http://evilamazontrust.com/r2m01.cer",
        "http://crt.amazontrust.com@evil.example/r2m01.cer",
        "http://169.254.169.254/r2m01.cer",
        "http://crt.amazontrust.com:8080/r2m01.cer",
        "http://crt.amazontrust.com/../x?y",
        "https://crt.amazontrust.com/r2m01.cer",
        "ldap://crt.amazontrust.com/r2m01.cer",
        "file:///etc/passwd",
    ],
)
async def test_issuer_is_fetched_from_known_authorities_only(bench: Bench, url: str) -> None:
    bench.publish(leaf(issuer_url=url))
    with pytest.raises(CannotVerify):
        await bench.certificates.get(GOOD)
    assert bench.amazon.paths == [f"/{NAME}"]


async def test_chain_without_end_is_given_up(bench: Bench) -> None:
    bench.publish(leaf())
    bench.publish_issuer(authority("another", authority("root"), ISSUER_URL))
    with pytest.raises(CannotVerify):
        await bench.certificates.get(GOOD)
    assert bench.amazon.paths.count("/r2m01.cer") == flow.ISSUERS_MAX


async def test_server_that_is_not_amazons_is_not_believed(bench: Bench) -> None:
    other = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-01.pem"
    bench.amazon.files["/SimpleNotificationService-01.pem"] = ("200 OK", leaf().pem)

    async def resolve(host: str, port: int) -> Sequence[tuple[str, int]]:
        return [bench.amazon.seen.where]

    net = Net(loopback=True, resolve=resolve, tls=client_side(root()))
    certificates = Certificates(net, bench.clock, lambda: [root().pem])
    with pytest.raises(CannotVerify):
        await certificates.get(other)
    assert bench.amazon.paths == []


async def test_machine_that_trusts_nobody_says_how_to_mend_that(bench: Bench) -> None:
    bench.publish(leaf(), intermediate())
    bench.certificates._trusted = list
    with pytest.raises(CannotVerify, match="ca-certificates"):
        await bench.certificates.get(GOOD)


async def test_wrong_clock_is_our_fault(bench: Bench) -> None:
    """In 1970 no certificate is valid yet: the sender is told to come back, and is not refused."""
    bench.publish(leaf(), intermediate())
    bench.clock.step(-50 * 365 * 86_400)
    with pytest.raises(CannotVerify):
        await bench.certificates.get(GOOD)
    bench.clock.step(50 * 365 * 86_400)
    await bench.certificates.get(GOOD)


async def test_slow_server_is_given_up_in_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "FETCH_S", 0.1)
    bench.amazon.hold = asyncio.Event()
    with pytest.raises(CannotVerify, match="within"):
        await bench.certificates.get(GOOD)


# -- keeping -------------------------------------------------------------------------------------


async def test_certificate_is_fetched_once_and_kept(bench: Bench) -> None:
    bench.publish(leaf(), intermediate())
    for _ in range(5):
        await bench.certificates.get(GOOD)
        bench.clock.advance(3600)
    assert len(bench.amazon.paths) == 1


async def test_kept_certificate_is_looked_at_again_after_a_day(bench: Bench) -> None:
    bench.publish(leaf(), intermediate())
    await bench.certificates.get(GOOD)
    bench.clock.advance(flow.KEEP_S + 1)
    renewed = bench.publish(leaf(), intermediate())
    assert await bench.certificates.get(GOOD) == renewed
    assert len(bench.amazon.paths) == 2


async def test_kept_certificate_is_used_while_its_source_fails(bench: Bench) -> None:
    """And that is not asked again for every message."""
    pem = bench.publish(leaf(), intermediate())
    await bench.certificates.get(GOOD)
    bench.clock.advance(flow.KEEP_S + 1)
    bench.amazon.files.clear()
    for _ in range(5):
        assert await bench.certificates.get(GOOD) == pem
    assert len(bench.amazon.paths) == 2
    bench.clock.advance(flow.TRY_AGAIN_S + 1)
    assert await bench.certificates.get(GOOD) == pem
    assert len(bench.amazon.paths) == 3


async def test_kept_certificate_ends_with_its_own_date(bench: Bench) -> None:
    bench.publish(leaf(end=BORN + timedelta(days=30, hours=1)), intermediate())
    await bench.certificates.get(GOOD)
    bench.clock.advance(7200)
    with pytest.raises(CannotVerify):
        await bench.certificates.get(GOOD)
    fresh = bench.publish(leaf(), intermediate())
    assert await bench.certificates.get(GOOD) == fresh


async def test_so_many_are_kept_and_no_more(bench: Bench) -> None:
    names = [f"SimpleNotificationService-{number:x}.pem" for number in range(flow.KEPT_MAX + 1)]
    found = leaf()
    for name in (*names, names[-1], names[0]):
        bench.publish(found, intermediate(), name=name)
        await bench.certificates.get(f"https://{HOST}/{name}")
    asked = bench.amazon.paths
    assert (asked.count(f"/{names[0]}"), asked.count(f"/{names[-1]}")) == (2, 1)


# -- many at once --------------------------------------------------------------------------------


async def test_everybody_who_needs_one_certificate_waits_for_one_fetch(bench: Bench) -> None:
    pem = bench.publish(leaf(), intermediate())
    bench.amazon.hold = asyncio.Event()
    waiting = [asyncio.ensure_future(bench.certificates.get(GOOD)) for _ in range(50)]
    await bench.amazon.asked.wait()
    bench.amazon.hold.set()
    assert await asyncio.gather(*waiting) == [pem] * 50
    assert len(bench.amazon.paths) == 1


async def test_who_goes_away_does_not_take_the_fetch_along(bench: Bench) -> None:
    pem = bench.publish(leaf(), intermediate())
    bench.amazon.hold = asyncio.Event()
    first, second = (asyncio.ensure_future(bench.certificates.get(GOOD)) for _ in range(2))
    await bench.amazon.asked.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    bench.amazon.hold.set()
    assert await second == pem
    assert len(bench.amazon.paths) == 1


async def test_failure_is_told_to_everybody_and_logged_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    found = await asyncio.gather(
        *(bench.certificates.get(GOOD) for _ in range(10)), return_exceptions=True
    )
    assert {type(each) for each in found} == {CannotVerify}
    assert len(caplog.records) == 1
    assert len(bench.amazon.paths) == 1


async def test_made_up_urls_cost_only_so_many_fetches(bench: Bench) -> None:
    """A stranger who knows a topic's name can make up as many as there are hashes."""
    pem = bench.publish(leaf(), intermediate())
    await bench.certificates.get(GOOD)
    made_up = [f"https://{HOST}/SimpleNotificationService-{n:032x}.pem" for n in range(100)]
    for url in made_up:
        with pytest.raises(CannotVerify):
            await bench.certificates.get(url)
    assert len(bench.amazon.paths) == 1 + flow.FAILURES_MAX
    assert await bench.certificates.get(GOOD) == pem
    bench.clock.advance(flow.FAILURES_WINDOW_S + 1)
    with pytest.raises(CannotVerify):
        await bench.certificates.get(made_up[0])
    assert len(bench.amazon.paths) == 2 + flow.FAILURES_MAX


async def test_only_so_many_fetches_run_at_once(bench: Bench) -> None:
    bench.amazon.hold = asyncio.Event()
    urls = [f"https://{HOST}/SimpleNotificationService-{n:x}.pem" for n in range(20)]
    waiting = [asyncio.ensure_future(bench.certificates.get(url)) for url in urls]
    await bench.amazon.asked.wait()
    bench.amazon.hold.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(each) for each in found} == {CannotVerify}
    assert len(bench.amazon.paths) == flow.FETCHES_MAX


async def test_stopping_leaves_no_fetch_behind(bench: Bench) -> None:
    bench.amazon.hold = asyncio.Event()
    waiting = asyncio.ensure_future(bench.certificates.get(GOOD))
    await bench.amazon.asked.wait()
    await bench.certificates.stop()
    with pytest.raises(asyncio.CancelledError):
        await waiting


# -- from a directory ----------------------------------------------------------------------------


async def test_directory_is_used_instead_of_the_network(tmp_path: Path) -> None:
    """And whoever put a certificate there is believed: this one vouches for itself."""
    pem = server(authority("own"), "sns.amazonaws.com", key=rsa_key()).pem
    (tmp_path / NAME).write_bytes(pem)
    with guarded() as guard:
        assert await Certificates(Net(), ManualClock(0)).get(GOOD, tmp_path) == pem
    assert (guard.connects, guard.lookups) == ([], [])


@pytest.mark.parametrize("content", [None, b"", b"text", "folder"])
async def test_file_that_cannot_be_used_is_our_fault(
    tmp_path: Path, content: bytes | str | None
) -> None:
    if content == "folder":
        (tmp_path / NAME).mkdir()
    elif isinstance(content, bytes):
        (tmp_path / NAME).write_bytes(content)
    with guarded(), pytest.raises(CannotVerify, match=NAME):
        await Certificates(Net(), ManualClock(0)).get(GOOD, tmp_path)


async def test_certificate_may_be_replaced_while_the_server_runs(tmp_path: Path) -> None:
    certificates = Certificates(Net(), ManualClock(0))
    for _ in range(2):
        pem = server(authority("own"), "sns.amazonaws.com", key=leaf_key()).pem  # type: ignore[arg-type]
        (tmp_path / NAME).write_bytes(pem)
        assert await certificates.get(GOOD, tmp_path) == pem


# -- the system's authorities --------------------------------------------------------------------


def test_authorities_of_this_machine_can_be_read() -> None:
    if ssl.get_default_verify_paths().cafile is None:
        pytest.skip("no CA certificates on this machine")
    authorities(system_authorities())


@pytest.mark.parametrize("layout", ["file", "folder", "nothing"])
def test_authorities_are_read_from_where_openssl_has_them(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, folder = tmp_path / "ca.pem", tmp_path / "certs"
    folder.mkdir()
    if layout == "file":
        file.write_bytes(root().pem)
    elif layout == "folder":
        (folder / "0a1b2c3d.0").write_bytes(root().pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    found = system_authorities()
    assert found == ([] if layout == "nothing" else [root().pem])


# -- a signer of our own -------------------------------------------------------------------------


async def test_local_signer_is_found_by_its_own_certificate(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    assert local_signer(folder) == ""
    made = make_local_signer(folder, NOW)
    key = local_signer(folder)
    assert key.startswith("-----BEGIN PRIVATE KEY-----")
    assert (folder / KEY_FILE).stat().st_mode & 0o777 == 0o600
    with guarded():
        url = f"https://{HOST}/{made.name}"
        assert await Certificates(Net(), ManualClock(0)).get(url, folder) == made.read_bytes()


def test_second_local_signer_replaces_the_first(tmp_path: Path) -> None:
    make_local_signer(tmp_path, NOW)
    first = local_signer(tmp_path)
    make_local_signer(tmp_path, NOW)
    assert local_signer(tmp_path) != first


def test_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OperatorError, match="file"):
        make_local_signer(tmp_path / "file", NOW)
