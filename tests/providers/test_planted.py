"""The test of the test: each planted mistake of a verifier is caught by some mutation."""

import pytest

from hookbox.errors import Refused
from tests.providers.mutations import BODY, ID, NOW_S, TIME, Mutation, mutations
from tests.providers.planted import Bug, verify
from tests.providers.requests import delivery
from tests.providers.senders import STANDARD

MUTATIONS = list(mutations(STANDARD))


def _caught(bug: Bug | None, mutation: Mutation) -> bool:
    """Whether the mutation is accepted or makes the verifier trip; either would fail a provider."""
    key = STANDARD.key(mutation.secrets[0]) if mutation.secrets else None
    try:
        verify(bug, mutation.delivery, key, mutation.now / 1000)
    except Refused:
        return False
    except Exception:  # noqa: BLE001  # a 500 on demand is what the mutation was looking for
        return True
    return True


def test_right_verifier_passes() -> None:
    good = delivery(STANDARD.sign(ID, TIME, BODY), BODY)
    verify(None, good, STANDARD.key(STANDARD.secret), NOW_S)
    assert [m.name for m in MUTATIONS if _caught(None, m)] == []


@pytest.mark.parametrize("bug", list(Bug), ids=lambda bug: bug.name.lower())
def test_planted_bug_is_caught(bug: Bug) -> None:
    assert any(_caught(bug, mutation) for mutation in MUTATIONS)


def test_enough_bugs_are_planted() -> None:
    assert len(Bug) >= 12
