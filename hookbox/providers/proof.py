"""What every signing provider does with its keys, so that none of them does it differently."""

from collections.abc import Callable, Iterable

from hookbox.errors import Reason, Refused
from hookbox.model import Delivery
from hookbox.providers.contract import Trust, VerifiedDelivery
from hookbox.rules.freshness import skew
from hookbox.rules.headers import one
from hookbox.rules.signatures import PublicKey

# Two signatures during a rotation, a few more at a sender that renews its keys often. Whoever sends
# hundreds makes us compare, or run a curve operation, for each of them.
SIGNATURES_MAX = 16


def proved(
    delivery: Delivery,
    trust: Trust,
    now: int,
    proves: Callable[[bytes | PublicKey], bool],
    signed_at: int | None = None,
) -> VerifiedDelivery:
    """The delivery, once one key `proves` it and then the signed time is near enough.

    Every key is tried, so that the time taken does not tell which of them is in use.
    """
    if not trust.keys:
        raise Refused(Reason.NO_SECRET)
    proving = [key.slot for key in trust.keys if proves(key.material)]
    if not proving:
        raise Refused(Reason.SIGNATURE_WRONG)
    skew_s = None if signed_at is None else skew(signed_at, now, trust.tolerance_s)
    return VerifiedDelivery(delivery=delivery, slot=proving[0], signed_at=signed_at, skew_s=skew_s)


Verify = Callable[[Delivery, Trust, int], VerifiedDelivery]


def refusing_ambiguous(names: Iterable[str], verify: Verify) -> Verify:
    """`verify` for a source that also reads headers which nobody signs: each at most once."""
    wanted = tuple(names)

    def checked(delivery: Delivery, trust: Trust, now: int) -> VerifiedDelivery:
        verified = verify(delivery, trust, now)
        for name in wanted:
            one(delivery.headers, name)
        return verified

    return checked if wanted else verify
