"""SendGrid's Inbound Parse: one received mail, as the fields of a multipart form.

Signed like the events where a security policy says so; hookbox takes no other. There is no id and
no time in it: the mail's own Message-ID and its envelope recipients make the key. What is kept as
the event are the fields, with each file by its name, type and digest; the files themselves stay in
the delivery's body.
https://www.twilio.com/docs/sendgrid/for-developers/parsing-email (2026-09)
"""

import json
from collections.abc import Mapping

from hookbox.errors import Unintelligible
from hookbox.model import Kind, Notification, Split, SplitEvent, TimeSource
from hookbox.providers.notices import message_id_of, present, without_brackets
from hookbox.rules.digest import Unreadable, digest_of, read_value, synthesised_key
from hookbox.rules.multipart import form_object
from hookbox.rules.reading import addresses, at, plain_text

RAW_KIND = "inbound"

Fields = Mapping[str, object]


def split(body: bytes) -> Split:
    try:
        fields = form_object(body)
    except Unreadable as error:
        raise Unintelligible(str(error)) from error
    digest = digest_of(fields)
    message_id, recipients = _message_id(fields), _recipients(fields)
    if message_id and recipients:
        key = synthesised_key("inbound", message_id, ",".join(recipients).lower())
    else:  # the fields and not the body: every post has another boundary
        key = synthesised_key("inbound", digest.hex())
    event = SplitEvent(
        key=key,
        digest=digest,
        raw_kind=RAW_KIND,
        content=json.dumps(fields).encode(),
        synthesised=True,
    )
    return Split(events=(event,))


def read(fields: Fields) -> tuple[Notification, ...]:
    """One notification for each address that the mail was for; it carries no time of its own."""
    extras = present(
        **{"from": plain_text(fields.get("from"))},
        subject=plain_text(fields.get("subject")),
        ip=plain_text(fields.get("sender_ip"), 100),
        rfc_message_id=without_brackets(_message_id(fields)),
    )
    return tuple(
        Notification(
            kind=Kind.INBOUND,
            recipient=recipient,
            time_source=TimeSource.RECEIVED,
            extras=extras,
        )
        for recipient in _recipients(fields) or (None,)
    )


def _recipients(fields: Fields) -> tuple[str, ...]:
    """The envelope's recipients, which `to` in the mail need not name."""
    envelope = fields.get("envelope")
    try:
        found = read_value(envelope.encode()) if isinstance(envelope, str) else None
    except (Unreadable, UnicodeEncodeError):
        found = None
    return addresses(at(found, ("to",))) or addresses(fields.get("to"))


def _message_id(fields: Fields) -> str | None:
    """From the head of the mail, or from all of it where the raw message is posted."""
    return message_id_of(fields.get("headers")) or message_id_of(fields.get("email"))
