"""Did we lose anything? The verdict over one outage."""

import pytest

from hookbox.rules.losses import Followed, Loss, Patience, loss

HOUR = 3_600
AGENT = Patience(horizon_s=74_170, schedule_s=(10, 60, 300, 1800, 7200, 21600, 43200))
UNKNOWN = Patience(horizon_s=None)
NONE = Patience(horizon_s=0)
READ = Followed(caught_up_at=10**15, expired=False)
BEHIND = Followed(caught_up_at=None, expired=False)
EXPIRED = Followed(caught_up_at=10**15, expired=True)

CASES = [
    ("short", 4 * HOUR, AGENT, None, 0, Loss.SAFE),
    ("one attempt left", 10 * HOUR, AGENT, None, 0, Loss.AT_RISK),
    ("one attempt was left, and was made", 10 * HOUR, AGENT, None, 30 * HOUR, Loss.SAFE),
    ("one attempt left, but read since", 10 * HOUR, AGENT, READ, 0, Loss.RECOVERED),
    ("longer than it tries", 30 * HOUR, AGENT, None, 0, Loss.LOST),
    ("longer, and not read yet", 30 * HOUR, AGENT, BEHIND, 0, Loss.AT_RISK),
    ("longer, but read since", 30 * HOUR, AGENT, READ, 0, Loss.RECOVERED),
    ("longer, and the list has dropped it", 30 * HOUR, AGENT, EXPIRED, 0, Loss.LOST),
    ("nobody knows", 60, UNKNOWN, None, 0, Loss.AT_RISK),
    ("nobody knows, but read since", 60, UNKNOWN, READ, 0, Loss.RECOVERED),
    ("never tried again", 60, NONE, None, 0, Loss.LOST),
]


@pytest.mark.parametrize(
    ("outage_s", "patience", "followed", "passed_s", "expected"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_verdict(
    outage_s: int, patience: Patience, followed: Followed | None, passed_s: int, expected: Loss
) -> None:
    to_at = 1_700_000_000_000
    from_at, now = to_at - outage_s * 1000, to_at + passed_s * 1000
    assert loss(from_at, to_at, patience, followed, now) is expected
