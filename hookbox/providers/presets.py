"""Senders that are settings of the declarative provider and nothing else.

A source may add to a preset or change it, as in `natural_key = ["/order", "/status"]`.

courier   A courier's parcel events, signed by a common WordPress scheme; the prefix is optional.
          Its retries go on for 12 to 72 hours. Without an id in the body a natural key is needed.
github    X-GitHub-Delivery names the event: a redelivery keeps it, and so do the deliveries of all
          hooks that saw the event. To tell hooks apart: id =
          "{header:X-GitHub-Hook-ID}:{header:X-GitHub-Delivery}". Nothing signs a time, and nothing
          is retried by itself. (docs.github.com, 2026-08)
stripe    Several `v1` while a secret is rolled; `v0` is for tests. The secret is used whole, the
          letters `whsec_` included. (stripe-python, 2026-08)
shopify   X-Shopify-Event-Id is shared by all topics of one action: it is not the event's id.
          (shopify.dev, 2024-09)
slack     Events API only. The handshake is signed, too. (python-slack-sdk, 2026-08)
"""

from collections.abc import Mapping
from dataclasses import replace

from hookbox.providers import hmac
from hookbox.providers.contract import Answers, Provider, Table

DAY_S = 86_400


def _preset(base: Provider, settings: Table) -> Provider:
    """The provider with these settings under those of the source."""

    def configure(provider: Provider, table: Table) -> Provider:
        return hmac.configure(provider, _over(settings, table))

    return replace(hmac.configure(base, settings), configure=configure)


def _over(settings: Table, table: Table) -> Table:
    """The source's settings over the preset's; tables are joined, anything else is replaced."""
    joined = {**settings, **table}
    for name, own in settings.items():
        theirs = joined[name]
        if isinstance(own, Mapping) and isinstance(theirs, Mapping):
            joined[name] = _over(own, theirs)
    return joined


COURIER = _preset(
    replace(
        hmac.PROVIDER,
        name="courier",
        title="Courier",
        retry_horizon_s=3 * DAY_S,
        console_steps=(
            "In the courier's tracking settings, enter {url} as the webhook address",
            "Enter {secret} as the signing secret, or copy the courier's own into hookbox",
            "Have it send an event, and look for it in `hookbox events`",
            "See that a retry keeps the event's id; if it does not, set id_stable = false",
        ),
    ),
    {
        "signed": "{ts}.{body}",
        "signature": "header:x-wps-signature",
        "signature_pattern": ["sha256={sig}", "{sig}"],
        "secret_encoding": "utf8",
        "timestamp": "header:x-wps-timestamp",
        "id": "/id",
        "map": {"occurred_at": "/occurred_at", "types": {"*": "unknown"}},
    },
)

GITHUB = _preset(
    replace(
        hmac.PROVIDER,
        name="github",
        title="GitHub",
        answers=Answers(),
        retry_horizon_s=0,
        recovery="redeliver under Recent Deliveries within three days",
        patience_s=10.0,
        console_steps=(
            "In the repository's or organisation's settings, open Webhooks and press Add webhook",
            "Payload URL: {url}",
            "Content type: application/json",
            "Secret: {secret}",
            "Choose the events and save; GitHub sends a ping, shown by `hookbox events`",
            "Nothing is retried by itself: redeliver under Recent Deliveries within three days",
        ),
    ),
    {
        "signed": "{body}",
        "signature": "header:x-hub-signature-256",
        "signature_pattern": "sha256={sig}",
        "secret_encoding": "utf8",
        "id": "header:x-github-delivery",
        "map": {"kind": "header:x-github-event", "types": {"ping": "control", "*": "unknown"}},
    },
)

STRIPE = _preset(
    replace(
        hmac.PROVIDER,
        name="stripe",
        title="Stripe",
        recovery="resend the events from the dashboard, or with `stripe events resend`",
        answers=Answers(),
        retry_horizon_s=3 * DAY_S,
        make_secret=None,
        console_steps=(
            "In the Stripe dashboard, open Developers, Webhooks, and add the endpoint {url}",
            "Select the events",
            "Reveal the signing secret (whsec_...), and copy all of it into hookbox",
            "Send a test event, and look for it in `hookbox events`",
        ),
    ),
    {
        "signed": "{ts}.{body}",
        "signature": "header:stripe-signature",
        "signature_pair": "v1",
        "secret_encoding": "utf8",
        "timestamp": "pair:t",
        "id": "/id",
        "map": {"occurred_at": "/created", "types": {"*": "unknown"}},
    },
)

SHOPIFY = _preset(
    replace(
        hmac.PROVIDER,
        name="shopify",
        title="Shopify",
        answers=Answers(),
        retry_horizon_s=4 * 3600,  # 8 retries
        patience_s=5.0,
        make_secret=None,
        console_steps=(
            "Subscribe the app to its topics with the address {url}, format JSON",
            "Copy the app's client secret into hookbox",
            "Have Shopify send a test notification, and look for it in `hookbox events`",
            "Failing for hours removes the subscription: look at it after every outage",
        ),
    ),
    {
        "signed": "{body}",
        "signature": "header:x-shopify-hmac-sha256",
        "signature_encoding": "base64",
        "secret_encoding": "utf8",
        "id": "header:x-shopify-webhook-id",
        "map": {
            "kind": "header:x-shopify-topic",
            "occurred_at": "header:x-shopify-triggered-at",
            "types": {"*": "unknown"},
        },
    },
)

SLACK = _preset(
    replace(
        hmac.PROVIDER,
        name="slack",
        title="Slack Events API",
        answers=Answers(),
        retry_schedule_s=(0, 60, 300),
        retry_horizon_s=360,
        patience_s=3.0,
        make_secret=None,
        console_steps=(
            "In the app's Basic Information, copy the signing secret into hookbox first",
            "Under Event Subscriptions, enter {url}; Slack checks it at once and shows Verified",
            "Subscribe to the events, save, and reinstall the app if Slack asks for it",
        ),
    ),
    {
        "signed": "v0:{ts}:{body}",
        "signature": "header:x-slack-signature",
        "signature_pattern": "v0={sig}",
        "secret_encoding": "utf8",
        "timestamp": "header:x-slack-request-timestamp",
        "id": "/event_id",
        "challenge": {"when": "/type", "equals": "url_verification", "echo": "/challenge"},
        "map": {
            "kind": ["/event/type", "/type"],
            "occurred_at": "/event_time",
            "types": {"*": "unknown"},
        },
    },
)

PRESETS = (COURIER, GITHUB, STRIPE, SHOPIFY, SLACK)
