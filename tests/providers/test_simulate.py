"""What `simulate` makes is what the provider itself would accept, split and read."""

import pytest

from hookbox.errors import ConfigError, OperatorError
from hookbox.model import BounceClass, Kind, Notification
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Provider, Signed, Simulation
from tests.providers.mutations import NOW_S
from tests.providers.requests import PLAINEST, delivery, events, provider_of, stored, trust
from tests.providers.senders import SENDERS

SECRETS = {sender.name: sender.secret for sender in SENDERS}
TO = "Ana.B+x@Example.com"


def _simulation(kind: Kind, secret: str) -> Simulation:
    return Simulation(kind=kind, to=TO, secret=secret, id="sim_0a1b", now=NOW_S * 1000 + 250)


def _read(provider: Provider, made: Signed, secret: str) -> Notification:
    """The made request through the whole provider, as the box would take it."""
    received = delivery(made.headers, made.body)
    verified = provider.verify(received, trust(provider, secret), NOW_S * 1000 + 500)
    (event,) = events(provider.split(verified))
    assert event.key == made.key
    (notification,) = provider.normalize(stored(provider, verified, event))
    return notification


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_every_kind_that_a_provider_simulates_reads_back_as_itself(name: str) -> None:
    provider = provider_of(name)
    assert provider.simulate
    assert provider.kinds
    for kind in provider.kinds:
        made = provider.simulate(_simulation(kind, SECRETS[name]))
        notification = _read(provider, made, SECRETS[name])
        assert notification.kind is kind
        if kind in (Kind.BOUNCED, Kind.DELIVERED, Kind.COMPLAINED):
            assert notification.recipient == TO


@pytest.mark.parametrize("name", ["standardwebhooks", "svix"])
def test_simulated_bounce_is_hard(name: str) -> None:
    provider = provider_of(name)
    assert provider.simulate
    made = provider.simulate(_simulation(Kind.BOUNCED, SECRETS[name]))
    assert _read(provider, made, SECRETS[name]).bounce_class is BounceClass.HARD


def test_simulation_follows_the_map_of_the_source() -> None:
    options = {
        "map": {
            "kind": "/what",
            "recipient": "/who/0",
            "message_id": "/id",
            "occurred_at": "header:X-When",
            "types": {"hardfail": "bounced", "*": "unknown"},
        }
    }
    provider = provider_of("standardwebhooks", options)
    assert provider.simulate
    made = provider.simulate(_simulation(Kind.BOUNCED, SECRETS["svix"]))
    notification = _read(provider, made, SECRETS["svix"])
    assert (notification.kind, notification.recipient) == (Kind.BOUNCED, TO)
    assert notification.occurred_at == NOW_S * 1000 + 250
    assert provider.kinds == (Kind.BOUNCED, Kind.UNKNOWN)


@pytest.mark.parametrize(
    "settings",
    [
        {"items": "/events"},
        {"items": ""},
        {"id": "header:X-Id"},
        {"id": "{header:X-Hook}:{/id}"},
        {"id_stable": False, "natural_key": ["/order", "/data/recipient"]},
        {"timestamp_unit": "ms"},
        {"timestamp_unit": "iso8601"},
        {"timestamp": "/sent/at", "signed": "{body}"},
        {"signature_pair": "v1", "timestamp": "pair:t"},
        {"signature_encoding": "base64url-unpadded", "algorithm": "hmac-sha512"},
        {"signed": "{url}|{query:none}|{ts}|{body}", "url": "https://hooks.example.com/x"},
        {"signed": "{header:X-Nonce}{ts}{body}"},
        {"signed": "{json:/sig/ts}{json:/sig/token}", "signature": "/sig/mac"}
        | {"timestamp": "/sig/ts"},
        {"body": "form", "signed": "{url}{form_sorted}", "url": "https://h.example.com/x"}
        | {"map": {"recipient": "/to", "message_id": "/mid"}, "timestamp": "/ts"},
    ],
    ids=str,
)
def test_declared_sender_is_simulated_as_it_is_verified(settings: dict[str, object]) -> None:
    provider = provider_of("hmac", {**PLAINEST, **settings})
    assert provider.simulate
    wanted = _simulation(Kind.DELIVERED, SECRETS["hmac"])
    if "{query" in str(settings):
        with pytest.raises(OperatorError):
            provider.simulate(wanted)
        return
    notification = _read(provider, provider.simulate(wanted), SECRETS["hmac"])
    assert (notification.kind, notification.recipient) == (Kind.DELIVERED, TO)


def test_public_key_cannot_simulate() -> None:
    provider = provider_of("standardwebhooks")
    assert provider.simulate
    public = "whpk_doInvlZoIgUXf8MWDlUo5EbmT1o/LUQLf9fvTRZaB9s="
    with pytest.raises(OperatorError):
        provider.simulate(_simulation(Kind.BOUNCED, public))


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_made_secret_is_readable_and_never_the_same_twice(name: str) -> None:
    provider = provider_of(name)
    if provider.make_secret is None:
        pytest.skip("the sender makes the secret")
    made = {provider.make_secret() for _ in range(20)}
    assert len(made) == 20
    for secret in made:
        key = provider.read_secret(secret)
        assert not isinstance(key, bytes) or len(key) >= 32


@pytest.mark.parametrize("name", sorted(PROVIDERS))
@pytest.mark.parametrize("secret", ["", "   ", "\n", "whsec_", "v1,", "v1,whsec_", "short"])
def test_secret_that_everybody_could_know_is_refused(name: str, secret: str) -> None:
    with pytest.raises(ConfigError) as refused:
        provider_of(name).read_secret(secret)
    assert refused.value.mend
