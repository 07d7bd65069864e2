"""HTTP/1.1 on one connection, for senders that may be slow, greedy or up to something.

uvicorn's own httptools protocol has no deadline for receiving, no cap on heads, and drops callers
when it stops. This subclass gives every phase of a connection a deadline, every head and body a
cap, and refuses what can be read in two ways. It serves one request at a time: what a sender pushes
before its answer is dropped, and the connection ends with that answer, so that a request hidden
behind another never reaches the app.

It leans on uvicorn's internals (`cycle`, `flow`, the parser's events), which is why uvicorn is
pinned and the abuse and restart witnesses stand beside it.
"""

import asyncio
from typing import Any, Literal, cast

from httptools import HttpParserError
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from hookbox.web.connections import Registry
from hookbox.web.framing import BODILESS, framing_of, refusal_of
from hookbox.web.one_write import OneWrite

# Whom a connection waits for.
Phase = Literal[
    "head",  # the sender, for the rest of a head (or, on a new connection, for all of it)
    "body",  # the sender, for the rest of a body
    "answer",  # the app
    "idle",  # the sender, who may ask again
    "parting",  # the sender, to take the last answer and hang up
]
_RECEIVING = frozenset({"head", "body", "idle"})


class _Refusal(Exception):
    """Raised inside a parser event: nothing behind this point is read."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Hurry(Exception):
    """A second request began before the first was answered."""


class GuardedProtocol(HttpToolsProtocol):
    """One connection of a door, bound to that door's registry."""

    def __init__(
        self,
        registry: Registry,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.held_bytes = self.due = 0
        self._registry = registry
        self._limits = limits = registry.limits
        self._phase: Phase = "head"
        self._settled: Phase = "head"
        self._patience: dict[Phase, int] = {
            "head": registry.beats(limits.head_s),
            "body": registry.beats(limits.body_s),
            "answer": registry.beats(limits.answer_s),
            "idle": registry.beats(limits.idle_s),
            "parting": registry.beats(limits.linger_s),
        }
        self._reading = self._patience["answer"]  # for each piece of a long answer
        self._requests = 0
        self._answer: OneWrite
        self._body_bytes = 0
        # Bytes taken since something came of them: half a head, chunk extensions, trailers.
        self._framing_bytes = 0
        self._dropped_bytes = 0

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self.due = self._registry.beat + self._patience["head"]
        if self._registry.draining:
            self.shutdown()
        self._registry.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._registry.leave(self)
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn answers nobody who has finished sending
        """A sender that closes its side after a whole request may still get the answer."""
        if self._phase != "answer" or not self._limits.half_closed:
            return False
        self.cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        while data and self._phase in _RECEIVING:
            piece = data[: self._limits.head_bytes_max - self._framing_bytes]
            data = data[len(piece) :]
            self._feed(piece)
        if data and self._phase == "answer":
            self.cycle.keep_alive = False
        elif data:
            self._drop(data)
        self._settle()

    def _drop(self, data: bytes) -> None:
        """What still arrives behind a refusal."""
        self._dropped_bytes += len(data)
        if self._dropped_bytes > self._limits.linger_bytes_max:
            self.transport.abort()

    def _feed(self, piece: bytes) -> None:
        self._framing_bytes += len(piece)
        try:
            self.parser.feed_data(piece)
        except HttpParserError as error:
            self._stumble(error.__context__)
        else:
            if self._framing_bytes >= self._limits.head_bytes_max and self._phase in _RECEIVING:
                self._refuse(431)

    def _stumble(self, cause: BaseException | None) -> None:
        """The parser can go no further on this connection."""
        if self._phase == "answer":
            self.cycle.keep_alive = False
        elif isinstance(cause, _Refusal):
            self._refuse(cause.status)
        elif cause is None or isinstance(cause, HttpParserError | UnicodeError):
            self._refuse(400)
        else:
            raise cause  # a fault of ours must be heard of, not be blamed on the sender

    # What the parser reads

    def on_message_begin(self) -> None:
        if self._phase == "answer":
            raise _Hurry
        self._phase = "head"
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if len(self.headers) > self._limits.fields_max:
            raise _Refusal(431)
        method, version = self.parser.get_method(), self.parser.get_http_version()
        framing = framing_of(self.headers)
        status = refusal_of(method, version, self.url, framing, self._limits.body_bytes_max)
        if status is not None:
            raise _Refusal(status)
        if version == "1.0":
            self.expect_100_continue = False  # it does not know the answer 100
        super().on_headers_complete()
        self._answer = OneWrite(self.transport)
        self.cycle.transport = cast(asyncio.Transport, self._answer)
        self._phase = "body"
        self._requests += 1
        self._body_bytes = self._framing_bytes = 0
        # Bytes after a body of unsaid length, or one that the sender was not told to send, could be
        # that body or the next head.
        clear = not self.expect_100_continue and (framing.says_length or method in BODILESS)
        if not clear or self._requests >= self._limits.requests_max or self._registry.draining:
            self.cycle.keep_alive = False
        # The app has the list of fields; trailers end up in this one, which nobody reads.
        self.headers = []

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes > self._limits.body_bytes_max:
            raise _Refusal(413)
        if not self.cycle.response_complete and not self._registry.hold(self, len(body)):
            raise _Refusal(503)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._framing_bytes = 0
        if not self.cycle.response_complete:
            self._phase = "answer"
        elif self._registry.draining:
            self._part()
        else:
            self._phase = "idle"

    # What the app and the server do

    def on_response_complete(self) -> None:
        # Instead of uvicorn's own, which starts a timer for the next request and looks for one that
        # it has let wait. Here the registry keeps the time, and no request waits behind another.
        self._answer.flush()
        self.server_state.total_requests += 1
        self._registry.release(self)
        if self.transport.is_closing():
            self._phase = "parting"
            self._settle()
            return
        self.flow.resume_reading()
        if self._phase == "answer":
            self._phase = "idle"
        # Answered before the body's end, the rest is read and dropped, under its deadline and cap.
        self._settle()

    def resume_writing(self) -> None:
        """The reader of a long answer has taken a piece of it."""
        super().resume_writing()
        if self._phase == "answer":
            self.due = self._registry.beat + self._reading

    def shutdown(self) -> None:
        """The door closes: who has not asked yet, or reads on, gets a moment; the others finish."""
        self._reading = self._registry.beats(self._limits.drain_s)
        if self._is_silent() or self._is_streaming():
            self.due = self._registry.beat + self._reading
        if self._phase in ("body", "answer"):
            self.cycle.keep_alive = False

    def evict(self) -> None:
        self._phase = self._settled = "parting"
        if self.cycle is not None:
            self.cycle.body.clear()  # the app lets go of it a turn later, when others have come
        self.transport.abort()

    # Deadlines and refusals

    def _is_silent(self) -> bool:
        """No byte of a request has come, so that no answer is owed."""
        return self._phase == "idle" or (self._phase == "head" and not self._framing_bytes)

    def _is_streaming(self) -> bool:
        """An answer has begun that may go on for as long as it is read."""
        return self._phase == "answer" and self.cycle.response_started

    def _settle(self) -> None:
        """The phase may have changed, even several times: tell the registry, renew the deadline."""
        if self._phase == self._settled:
            return
        self._settled = self._phase
        if self._phase == "answer":
            self._registry.serve(self)
        elif self._phase != "body":  # a body is awaited since its head began
            self._registry.await_sender(self)
        self.due = self._registry.beat + self._patience[self._phase]

    def expire(self) -> None:
        if self._is_silent():
            self._part()
        elif self._is_streaming() and not self.flow.write_paused:
            self.due = self._registry.beat + self._reading
        elif self._phase in ("answer", "parting") or self.transport.is_closing():
            self._registry.expired += 1
            self.transport.abort()
        else:
            self._registry.expired += 1
            self._expire_request()
        self._settle()

    def _expire_request(self) -> None:
        if self.flow.read_paused:  # the app did not take what has come: not the sender's fault
            self._refuse(503)
        elif self._phase == "body":
            # To some senders any 4xx means "never again". No answer means "again" to all of them.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._part()
        else:
            self._refuse(408)

    def _refuse(self, status: int) -> None:
        """Answer, and read nothing more. In the phase BODY the app has the request: call it off."""
        self._registry.refused_by_status[status] += 1
        cycle = self.cycle if self._phase == "body" else None
        self._phase = "parting"
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self._answer.close()
                return
        self.transport.write(self._plain_answer(status))
        # Closing with bytes unread would reset the connection and take the answer away from the
        # sender: finish our side only, read and drop the rest.
        self.transport.write_eof()
        self.flow.resume_reading()

    def _plain_answer(self, status: int) -> bytes:
        lines = [STATUS_LINE[status], b"connection: close\r\ncontent-length: 0\r\n"]
        usual = self.server_state.default_headers
        lines += [name + b": " + value + b"\r\n" for name, value in usual]
        if status == 503:
            lines.append(b"retry-after: 2\r\n")
        return b"".join(lines) + b"\r\n"

    def _part(self) -> None:
        self._phase = "parting"
        self.transport.close()
