"""Sessions over WebSocket: commands, captures and logs, without the program sublet."""

from __future__ import annotations

import json
from typing import Any, Iterator

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.http11 import Response
from websockets.sync.client import ClientConnection, connect, unix_connect

from .errors import Error, error_of

SPEC, STDIN, STDOUT, STDERR, RESIZE, SIGNAL, CREDIT, EXIT, FAILURE = range(1, 10)
SUBPROTOCOL = "sublet.session"
WINDOW = 256 << 10  # bytes of input that may be on their way
CHUNK = 32 << 10


def problem_of(response: Response) -> Error:
    """Why the server opens no session."""
    try:
        return error_of(json.loads(response.body or b""))
    except ValueError:
        return Error({"detail": response.reason_phrase, "status": response.status_code})


class Session:
    """A session. Iterating gives pairs of STDOUT or STDERR and bytes, until its end."""

    def __init__(self, socket: ClientConnection, spec: dict[str, Any] | None = None):
        self._socket, self._credit = socket, WINDOW
        self._early: list[bytes] = []
        self.exit: int | None = None  # the exit code, once there is one
        if spec is not None:
            socket.send(json.dumps(spec))

    @classmethod
    def open(cls, path: str, *, uds: str | None = None, server: str | None = None,
             ssl: Any = None, spec: dict[str, Any] | None = None) -> Session:
        options: dict[str, Any] = {"subprotocols": [SUBPROTOCOL], "max_size": 1 << 20, "compression": None}
        try:
            if uds:
                return cls(unix_connect(uds, uri="ws://sublet" + path, **options), spec)
            return cls(connect(f"wss://{server}{path}", ssl=ssl, **options), spec)
        except InvalidStatus as refused:
            raise problem_of(refused.response) from None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        while (message := self._next()) is not None:
            if message[0] in (STDOUT, STDERR):
                yield message[0], message[1:]

    def _next(self) -> bytes | None:
        if self._early:
            return self._early.pop(0)
        return self._receive()

    def _receive(self) -> bytes | None:
        if self.exit is not None:
            return None
        try:
            message = self._socket.recv()
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
            self._socket.send(bytes([STDIN]) + part)
            self._credit -= len(part)
            data = data[len(part):]

    def end_input(self) -> None:
        self._socket.send(bytes([STDIN]))

    def signal(self, number: int) -> None:
        self._socket.send(bytes([SIGNAL, number]))

    def resize(self, rows: int, columns: int) -> None:
        """The size of its terminal."""
        self._socket.send(bytes([RESIZE]) + rows.to_bytes(2, "big") + columns.to_bytes(2, "big"))

    def read(self) -> bytes:
        """All that is left of standard output."""
        return b"".join(data for kind, data in self if kind == STDOUT)

    def close(self) -> None:
        """Ends it, and a command with it."""
        self._socket.close()
