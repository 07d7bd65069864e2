"""Svix: Standard Webhooks under its older header names, or under the new ones.

A customer of Svix can choose white-label headers, and then `webhook-*` is sent instead of `svix-*`
(docs.svix.com, svix-server's worker, 2026-08). All three headers are taken from one set. Many
senders sign through Svix; their own words are read plainly or by the source's map.
"""

from dataclasses import replace
from functools import partial

from hookbox.providers import standardwebhooks
from hookbox.providers.plain import PLAIN, with_map

PREFIXES = ("svix", "webhook")

PROVIDER = replace(
    standardwebhooks.PROVIDER,
    name="svix",
    title="Svix",
    retry_schedule_s=(5, 300, 1800, 7200, 18000, 36000, 36000),
    retry_horizon_s=99_305,  # 27 h 35 min 5 s in eight attempts
    patience_s=15.0,
    console_steps=(
        "In the sender's webhook settings (a Svix portal), add an endpoint with the address {url}",
        "Subscribe it to the email events: sent, delivered, delayed, bounced, complained and so on",
        "Open the endpoint, reveal its signing secret (whsec_...), and copy it into hookbox",
        "Send an example from the endpoint's Testing tab, and look for it in `hookbox events`",
    ),
    make_secret=None,
    recovery="in the portal, use Recover Failed Messages for the time of the outage",
    verify=partial(standardwebhooks.verify, PREFIXES),
    split=partial(standardwebhooks.split, PREFIXES, PLAIN),
    simulate=partial(standardwebhooks.simulate, PREFIXES, PLAIN),
    configure=partial(with_map, partial(standardwebhooks.mapped_by, PREFIXES)),
)
