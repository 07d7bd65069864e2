"""Certificates: what a sender's signature is checked with, from a directory or from the sender.

A provider has judged the URL before anybody comes here. What is fetched must be valid today, carry
the sender's name and lead to an authority that this machine trusts; then it is kept. Whatever goes
wrong is our fault and passes: CannotVerify, so that the sender comes back, and never a refusal.

Amazon publishes its certificates without the intermediate one that signed them, so that one is
fetched, too, from where the certificate says (RFC 5280, section 4.2.2.1). By http, as everybody
does: it proves itself, or the chain does not hold.
"""

import asyncio
import logging
import re
import ssl
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from hookbox.clock import Clock
from hookbox.errors import CannotVerify, NetError
from hookbox.net import Net
from hookbox.rules.certificates import (
    Authorities,
    authorities,
    certificate_key,
    check,
    issuer_urls,
    valid_until,
)
from hookbox.rules.sns import certificate_place, signer_names

log = logging.getLogger("hookbox.certificates")

FETCH_S = 3.0  # the sender waits meanwhile, and a commit must fit behind it
CERTIFICATE_MAX = 65_536  # a chain of four is 8 KB
ISSUERS_MAX = 3
KEPT_MAX = 64  # one for each region in use, and a second while it is changed
KEEP_S = 86_400.0
TRY_AGAIN_S = 60.0
# A stranger who knows a topic's name can make up URLs that pass the rule. These bounds are what it
# costs: a kept certificate is never affected, only the first one after a start has to wait.
FETCHES_MAX = 8
FAILURES_MAX = 20
FAILURES_WINDOW_S = 60.0

ISSUER_URL = re.compile(r"http://[a-z0-9.-]+\.(?:amazontrust|digicert)\.com/[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A certificate that passed, until when it is valid, and when to look again (monotonic)."""

    pem: bytes
    valid_until: int
    look_again: float


def system_authorities() -> list[bytes]:
    """The certificates of the authorities that this machine trusts, from where OpenSSL has them."""
    paths = ssl.get_default_verify_paths()
    file: str | None = paths.cafile
    folder: str | None = paths.capath
    if file is not None:
        return [Path(file).read_bytes()]
    files = sorted(Path(folder).iterdir()) if folder is not None else []
    return [each.read_bytes() for each in files if each.is_file()]


class Certificates:
    """Gets certificates by their URL, and keeps those that were fetched. Ended by `stop`."""

    def __init__(
        self,
        net: Net,
        clock: Clock,
        trusted: Callable[[], Iterable[bytes]] = system_authorities,
    ) -> None:
        self._net, self._clock, self._trusted = net, clock, trusted
        self._authorities: Authorities | None = None
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._fetching: dict[str, asyncio.Task[bytes | CannotVerify]] = {}
        self._failures: deque[float] = deque(maxlen=FAILURES_MAX)

    async def get(self, url: str, directory: Path | None = None) -> bytes:
        """The certificate as PEM, from the directory where there is one. Raises CannotVerify."""
        if directory is not None:
            return from_directory(url, directory)
        kept = self._kept.get(url)
        valid = kept is not None and self._clock.now() <= kept.valid_until
        if kept is not None and valid and self._clock.monotonic() < kept.look_again:
            return kept.pem
        try:
            return await self._fetched(url)
        except CannotVerify:
            if kept is None or not valid:
                raise
            # What was right yesterday is right today: its date says so, and its name never changes.
            again = self._clock.monotonic() + TRY_AGAIN_S
            self._kept[url] = replace(kept, look_again=again)
            return kept.pem

    async def stop(self) -> None:
        """Leave no fetch behind."""
        tasks = list(self._fetching.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetched(self, url: str) -> bytes:
        """Everybody who waits for one URL waits for one fetch, which goes on when they go away."""
        task = self._fetching.get(url)
        if task is None:
            self._check_budget()
            task = asyncio.create_task(self._fetch(url), name="certificate")
            self._fetching[url] = task
            task.add_done_callback(lambda _: self._fetching.pop(url, None))
        found = await asyncio.shield(task)
        if isinstance(found, CannotVerify):
            raise CannotVerify(str(found))
        return found

    def _check_budget(self) -> None:
        since = self._clock.monotonic() - FAILURES_WINDOW_S
        spent = len(self._failures) == FAILURES_MAX and self._failures[0] > since
        if spent or len(self._fetching) >= FETCHES_MAX:
            raise CannotVerify("too many certificates could not be fetched lately")

    async def _fetch(self, url: str) -> bytes | CannotVerify:
        """One fetch and its outcome, logged once. Who waited may be gone, so nothing is raised."""
        try:
            async with asyncio.timeout(FETCH_S):
                pem, until = await self._proved(url)
        except (NetError, ValueError, OSError) as error:
            self._failures.append(self._clock.monotonic())
            why = str(error) or f"nothing came within {FETCH_S:g} s"
            log.warning("certificate cannot be used url=%s error=%s", url, why)
            return CannotVerify(f"{url} cannot be used: {why}")
        again = self._clock.monotonic() + KEEP_S
        self._kept[url] = _Kept(pem=pem, valid_until=until, look_again=again)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        log.info("certificate fetched url=%s", url)
        return pem

    async def _proved(self, url: str) -> tuple[bytes, int]:
        """Fetch, and have an authority vouch for it; each missing link of the chain is fetched."""
        place = certificate_place(url)
        assert place is not None, "the provider has judged the URL"
        pem = await self._content(url)
        certificate_key(pem)
        issuers: list[bytes] = []
        while True:
            try:
                check(pem, signer_names(place[0]), self._clock.now(), self._trust(), issuers)
            except ValueError:
                missing = issuer_urls(issuers[-1] if issuers else pem)
                known = [each for each in missing if ISSUER_URL.fullmatch(each)]
                if not known or len(issuers) == ISSUERS_MAX:
                    raise
                issuers.append(await self._content(known[0], plain=True))
            else:
                return pem, valid_until(pem)

    async def _content(self, url: str, *, plain: bool = False) -> bytes:
        answer = await self._net.request("GET", url, answer_max=CERTIFICATE_MAX, plain=plain)
        if answer.status != 200:
            raise NetError(f"{url} answers {answer.status}")
        return answer.body

    def _trust(self) -> Authorities:
        """Read when the first certificate was fetched, and never again."""
        if self._authorities is None:
            try:
                self._authorities = authorities(self._trusted())
            except (ValueError, OSError) as error:
                raise NetError(
                    "this machine trusts no authority; install its CA certificates "
                    "(Debian: apt install ca-certificates)"
                ) from error
        return self._authorities


def from_directory(url: str, directory: Path) -> bytes:
    """The certificate that a person put there under the name in the URL: trusted as it is."""
    place = certificate_place(url)
    assert place is not None, "the provider has judged the URL"
    file = directory / place[1]
    try:
        pem = file.read_bytes()
        certificate_key(pem)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotVerify(f"{file} cannot be used: {why}") from error
    return pem
