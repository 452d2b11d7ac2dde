"""Sessions over WebSocket: commands, captures and logs, without the program sublet."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from types import TracebackType
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect, unix_connect
from websockets.typing import Subprotocol

from .errors import Error, error_of_body
from .place import Place

SPEC, STDIN, STDOUT, STDERR, RESIZE, SIGNAL, CREDIT, EXIT, FAILURE = range(1, 10)
SUBPROTOCOL = Subprotocol("sublet.session")
WINDOW = 256 << 10  # bytes of input that may be on their way
CHUNK = 32 << 10


class Session:
    """A session. Iterating gives pairs of STDOUT or STDERR and bytes, until its end."""

    def __init__(self, socket: AbstractContextManager[ClientConnection], spec: dict[str, Any] | None = None):
        self._closing = ExitStack()
        self._socket, self._credit = self._closing.enter_context(socket), WINDOW
        self._early: list[bytes] = []
        self._until: float | None = None
        self.exit: int | None = None  # the exit code, once there is one
        if spec is not None:
            self._send(json.dumps(spec))

    @classmethod
    def open(cls, place: Place, path: str, spec: dict[str, Any] | None = None) -> Session:
        # Who does not read for a while does not see that pings are answered.
        options: dict[str, Any] = {"subprotocols": [SUBPROTOCOL], "max_size": 1 << 20, "compression": None,
                                   "additional_headers": place.headers, "proxy": None, "ping_timeout": None}
        try:
            if place.uds:
                return cls(unix_connect(place.uds, uri="ws://sublet" + path, **options), spec)
            for server in place.servers[:-1]:
                with suppress(OSError):
                    return cls(connect(f"wss://{server}{path}", ssl=place.context, **options), spec)
            return cls(connect(f"wss://{place.servers[-1]}{path}", ssl=place.context, **options), spec)
        except InvalidStatus as refused:
            answer = refused.response
            raise error_of_body(bytes(answer.body or b""), answer.status_code, answer.reason_phrase) from None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        while (message := self._next()) is not None:
            if message[0] in (STDOUT, STDERR):
                yield message[0], message[1:]

    def _send(self, message: str | bytes) -> None:
        # A command that is over takes nothing: what became of it is still to be read.
        with suppress(ConnectionClosed):
            self._socket.send(message)

    def _next(self) -> bytes | None:
        if self._early:
            return self._early.pop(0)
        return self._receive()

    def _receive(self) -> bytes | None:
        if self.exit is not None:
            return None
        try:
            left = None if self._until is None else self._until - time.monotonic()
            message = self._socket.recv(left, decode=False)
        except ConnectionClosed as closed:
            raise Error({"detail": f"the session broke off: {closed}"}) from None
        if message[0] == FAILURE:
            raise Error({"detail": message[1:].decode(errors="replace")})
        if message[0] == EXIT:
            self.exit = int.from_bytes(message[1:], "big")
            return None
        if message[0] == CREDIT:
            self._credit += int.from_bytes(message[1:], "big")
        return message

    def write(self, data: bytes) -> None:
        """Standard input; waits while the command does not read it."""
        while data:
            while self._credit <= 0:
                message = self._receive()
                if message is None:
                    return
                self._early.append(message)
            part = data[:min(CHUNK, self._credit)]
            self._send(bytes([STDIN]) + part)
            self._credit -= len(part)
            data = data[len(part):]

    def end_input(self) -> None:
        self._send(bytes([STDIN]))

    def signal(self, number: int) -> None:
        self._send(bytes([SIGNAL, number]))

    def resize(self, rows: int, columns: int) -> None:
        """The size of its terminal."""
        self._send(bytes([RESIZE]) + rows.to_bytes(2, "big") + columns.to_bytes(2, "big"))

    def read(self) -> bytes:
        """All that is left of standard output."""
        return b"".join(data for kind, data in self if kind == STDOUT)

    def communicate(self, input: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Writes all of standard input, and reads both outputs to their end.

        TimeoutError: that is not over after timeout seconds. The session goes on then,
        without what was read.
        """
        self._until = None if timeout is None else time.monotonic() + timeout
        found: dict[int, list[bytes]] = {STDOUT: [], STDERR: []}
        try:
            self.write(input)
            if self.exit is None:
                self.end_input()
            for kind, data in self:
                found[kind].append(data)
        finally:
            self._until = None
        return b"".join(found[STDOUT]), b"".join(found[STDERR])

    def close(self) -> None:
        """Ends it, and a command with it."""
        self._closing.close()
