"""Floor 2, room: what each sender really does.

Adding a provider is one file and one line in `PROVIDERS`.
"""

from hookbox.providers import efa, emaildigit, standardwebhooks, svix
from hookbox.providers.contract import Provider

PROVIDERS: dict[str, Provider] = {
    module.PROVIDER.name: module.PROVIDER for module in (efa, standardwebhooks, svix, emaildigit)
}
