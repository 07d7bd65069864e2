"""Floor 2, room: what each sender really does. Adding a provider is one file and one line in `PROVIDERS`."""

from hookbox.providers.contract import Provider

PROVIDERS: dict[str, Provider] = {}
