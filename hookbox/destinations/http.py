"""POST to a program of one's own, signed by Standard Webhooks.

2xx is done. Everything else is tried again, 404 and 410 too: a program that is being deployed
answers anything for a moment, and nothing may be lost by that. The signature is renewed for every
attempt; `webhook-id` and `Idempotency-Key` stay the same.
"""

from dataclasses import dataclass, field

from hookbox.destinations.contract import Answer, Destination, DestinationType, Outfit, Reading, Way
from hookbox.destinations.excerpt import beginning
from hookbox.errors import AddressRefused, ConfigError, NetError
from hookbox.model import Attempt, Parcel, Verdict
from hookbox.rules.retry_after import retry_after_s
from hookbox.rules.signatures import webhook_signature

TIMEOUT_S = 15.0  # what Standard Webhooks recommends at least
LEAD_MAX = 100  # characters of where a redirect points


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A program behind a URL."""

    way: Way
    keys: tuple[bytes, ...] = field(repr=False)
    timeout_s: float = TIMEOUT_S

    async def deliver(self, parcel: Parcel) -> Attempt:
        headers = signed_headers(parcel, self.keys)
        try:
            answer = await self.way.post(
                headers=headers, body=parcel.body, deadline_s=self.timeout_s
            )
        except AddressRefused as error:
            return Attempt(verdict=Verdict.LATER, outcome="address refused", excerpt=str(error))
        except NetError as error:
            excerpt = beginning(str(error).encode())
            return Attempt(verdict=Verdict.LATER, outcome="no answer", excerpt=excerpt)
        return judged(answer, parcel.sent_at)

    async def close(self) -> None:
        await self.way.close()


def signed_headers(parcel: Parcel, keys: tuple[bytes, ...]) -> dict[str, str]:
    """The headers of one attempt. During a change of keys there is a signature by each."""
    key, stamp = parcel.idempotency_key, str(parcel.sent_at // 1000)
    signatures = (webhook_signature(each, key, stamp, parcel.body) for each in keys)
    return {
        "content-type": "application/json",
        "idempotency-key": key,
        "webhook-id": key,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(signatures),
    }


def judged(answer: Answer, now: int) -> Attempt:
    """What an answer says about the attempt."""
    status, excerpt = answer.status, beginning(answer.body)
    if 200 <= status < 300:
        return Attempt(verdict=Verdict.DONE, outcome="accepted", status=status, excerpt=excerpt)
    outcome = "not accepted"
    if 300 <= status < 400:
        lead = beginning(answer.headers.get("location", "nowhere").encode())[:LEAD_MAX]
        outcome = f"redirected to {lead}, which is not followed"
    return Attempt(
        verdict=Verdict.LATER,
        outcome=outcome,
        status=status,
        excerpt=excerpt,
        retry_after_s=retry_after_s(answer.headers.get("retry-after", ""), now),
    )


def opened(outfit: Outfit) -> Destination:
    assert outfit.way is not None, "this type needs_net"
    assert outfit.keys, "this type needs_secret"
    try:
        way = outfit.way(outfit.options["url"])
    except AddressRefused as error:
        raise ConfigError(
            str(error),
            where="url",
            mend="https goes anywhere public, http to this machine; "
            'an address of your own network is listed first, as networks = ["10.0.0.0/8"]',
        ) from None
    timeout_s = outfit.options.get("timeout", TIMEOUT_S)
    return Http(way=way, keys=outfit.keys, timeout_s=timeout_s)


TYPE = DestinationType(
    name="http",
    title="POST to a URL, signed by Standard Webhooks",
    options={"url": Reading.URL, "timeout": Reading.DURATION, "networks": Reading.NETWORKS},
    required=frozenset({"url"}),
    concurrency=4,
    needs_secret=True,
    needs_net=True,
    open=opened,
)
