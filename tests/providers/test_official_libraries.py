"""The senders' own packages sign, and hookbox accepts; they sign nothing that it refuses."""

import base64
from datetime import UTC, datetime

import pytest
import standardwebhooks
import svix.webhooks
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from hookbox.errors import Refused
from hookbox.model import Kind
from hookbox.providers.contract import Provider, Signed, Simulation
from tests.providers.mutations import BODY, ID, NOW_S, TIME
from tests.providers.requests import delivery, provider_of, trust
from tests.providers.senders import STANDARD

NOW = datetime.fromtimestamp(NOW_S, UTC)
SECRETS = st.binary(min_size=16, max_size=64).map(
    lambda key: "whsec_" + base64.b64encode(key).decode()
)
IDS = st.from_regex(r"\A[!-\-/-~]{1,64}\Z")
BODIES = st.text(st.characters(codec="utf-8"), max_size=200)


@given(secret=SECRETS, event_id=IDS, body=BODIES)
def test_standardwebhooks_package_signs_and_hookbox_accepts(
    secret: str, event_id: str, body: str
) -> None:
    signature = standardwebhooks.Webhook(secret).sign(event_id, NOW, body)
    headers = {
        "webhook-id": event_id,
        "webhook-timestamp": TIME,
        "webhook-signature": signature,
    }
    provider = provider_of("standardwebhooks")
    provider.verify(delivery(headers, body.encode()), trust(provider, secret), NOW_S * 1000)


@given(secret=SECRETS, event_id=IDS, body=BODIES, prefix=st.sampled_from(["svix", "webhook"]))
def test_svix_package_signs_and_hookbox_accepts(
    secret: str, event_id: str, body: str, prefix: str
) -> None:
    signature = svix.webhooks.Webhook(secret).sign(event_id, NOW, body)
    headers = {
        f"{prefix}-id": event_id,
        f"{prefix}-timestamp": TIME,
        f"{prefix}-signature": signature,
    }
    provider = provider_of("svix")
    provider.verify(delivery(headers, body.encode()), trust(provider, secret), NOW_S * 1000)


@pytest.mark.parametrize("name", ["standardwebhooks", "svix"])
def test_packages_accept_what_hookbox_simulates(name: str) -> None:
    """Their verifiers read the machine's clock, so the simulation is made for this moment."""
    now = datetime.now(UTC)
    provider = provider_of(name)
    assert provider.simulate
    made: Signed = provider.simulate(
        Simulation(
            kind=Kind.BOUNCED,
            to="ana@example.com",
            secret=STANDARD.secret,
            id="sim_1",
            now=round(now.timestamp() * 1000),
        )
    )
    package = standardwebhooks if name == "standardwebhooks" else svix.webhooks
    package.Webhook(STANDARD.secret).verify(made.body, dict(made.headers))


def test_ed25519_signature_is_accepted_under_v1a_only() -> None:
    private = Ed25519PrivateKey.generate()
    public = "whpk_" + base64.b64encode(private.public_key().public_bytes_raw()).decode()
    signed = base64.b64encode(private.sign(STANDARD.message(ID, TIME, BODY))).decode()
    provider = provider_of("standardwebhooks")
    for form, right in (
        (f"v1a,{signed}", True),
        (f"v1,AAAA v1a,AAAA v1a,{signed}", True),
        (f"v1,{signed}", False),
        (f"v1a,{signed[:-1]}", False),
        ("v1a,", False),
        (f"v1a,{STANDARD.mac(STANDARD.message(ID, TIME, BODY))}", False),
    ):
        headers = {**STANDARD.headers(ID, TIME, ""), STANDARD.signature: form}
        assert _accepted(provider, headers, public) is right


def _accepted(provider: Provider, headers: dict[str, str], secret: str) -> bool:
    try:
        provider.verify(delivery(headers, BODY), trust(provider, secret), NOW_S * 1000)
    except Refused:
        return False
    return True
