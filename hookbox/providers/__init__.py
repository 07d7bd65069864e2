"""Floor 2, room: what each sender really does.

Adding a provider is one file and one line in `PROVIDERS`.
"""

from hookbox.providers import standardwebhooks, svix
from hookbox.providers.contract import Provider

PROVIDERS: dict[str, Provider] = {
    provider.name: provider for provider in (standardwebhooks.PROVIDER, svix.PROVIDER)
}
