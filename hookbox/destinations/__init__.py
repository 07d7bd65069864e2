"""Floor 2, room: where applied events are handed on to."""
