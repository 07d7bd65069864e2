"""An answer in one write."""

import asyncio


class OneWrite:
    """A connection's transport for one answer: its head waits for the first piece of the body, so
    that a short answer is one system call and one packet. To uvicorn's request cycle it is the
    transport.
    """

    __slots__ = ("_begun", "_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""
        self._begun = False

    def write(self, piece: bytes) -> None:
        """`100 Continue` is not the answer's head; it goes at once."""
        if not self._begun and not piece.startswith(b"HTTP/1.1 100"):
            self._begun, self._head = True, piece
        else:
            self._transport.write(self._head + piece)
            self._head = b""

    def flush(self) -> None:
        """An answer without a body."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()
