"""Floor 2, room: what each sender really does.

Adding a provider is one file and one line in `PROVIDERS`.
"""

from hookbox.providers import (
    efa,
    emaildigit,
    hmac,
    mailgun,
    postmark,
    resend,
    sendgrid,
    ses,
    standardwebhooks,
    svix,
)
from hookbox.providers.contract import Provider
from hookbox.providers.presets import PRESETS

PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        efa.PROVIDER,
        standardwebhooks.PROVIDER,
        svix.PROVIDER,
        resend.PROVIDER,
        emaildigit.PROVIDER,
        sendgrid.PROVIDER,
        mailgun.PROVIDER,
        postmark.PROVIDER,
        ses.PROVIDER,
        hmac.PROVIDER,
        *PRESETS,
    )
}
