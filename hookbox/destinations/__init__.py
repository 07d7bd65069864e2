"""Floor 2, room: where applied events are handed on to.

Adding a type of destination is one file and one line in `DESTINATIONS`.
"""

from hookbox.destinations import exec as command
from hookbox.destinations import http, jsonl
from hookbox.destinations.contract import DestinationType

DESTINATIONS: dict[str, DestinationType] = {
    each.name: each for each in (http.TYPE, command.TYPE, jsonl.TYPE)
}
