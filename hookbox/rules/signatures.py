"""Signature checks: bytes in, True or False out, never an exception for what a stranger sent."""

from typing import Protocol


class PublicKey(Protocol):
    """A public key that can say whether it made a signature. Never raises."""

    def verify(self, signature: bytes, message: bytes) -> bool: ...
