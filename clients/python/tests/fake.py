"""A server without a lab: it answers what a test says, and keeps what it was asked."""

from __future__ import annotations

import json
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol


class Speaker:
    """The server's side of a session."""

    def __init__(self, handler: Handler):
        self._handler = handler
        self._protocol = ServerProtocol(subprotocols=[Subprotocol("sublet.session")])
        lines = [handler.requestline, *(f"{name}: {value}" for name, value in handler.headers.items())]
        self._protocol.receive_data("\r\n".join([*lines, "", ""]).encode())
        asked = self._protocol.events_received()[0]
        assert isinstance(asked, Request)
        self._protocol.send_response(self._protocol.accept(asked))
        self._flush()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            self._handler.wfile.write(data)

    def messages(self) -> Iterator[bytes]:
        while not self._protocol.close_rcvd and (data := self._handler.rfile.read1(1 << 16)):
            self._protocol.receive_data(data)
            for event in self._protocol.events_received():
                if isinstance(event, Frame) and event.opcode in (Opcode.TEXT, Opcode.BINARY):
                    yield bytes(event.data)
            self._flush()

    def send(self, kind: int, data: bytes) -> None:
        self._protocol.send_binary(bytes([kind]) + data)
        self._flush()

    def end(self, kind: int, data: bytes) -> None:
        """The last message; then it waits for the other side to close, as RFC 6455 wants it."""
        self.send(kind, data)
        self._protocol.send_close(1000 if kind == 8 else 1011)
        self._flush()
        for _ in self.messages():
            pass

    def exit(self, code: int) -> None:
        self.end(8, code.to_bytes(4, "big"))


@dataclass
class Fake:
    """What it answers by "METHOD /path", and what it was asked."""

    answers: dict[str, Any] = field(default_factory=dict)
    speak: Callable[[Speaker], None] | None = None
    token: str | None = None
    asked: list[tuple[str, Any]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    fake: Fake
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
        self.fake.asked.append((f"{self.command} {self.path}", body))
        shown = self.headers.get("Authorization")
        if self.fake.token and shown != f"Bearer {self.fake.token}":
            self.say(401, {"type": "urn:sublet:unauthorized", "detail": "show a token"})
        elif self.headers.get("Upgrade") == "websocket" and self.fake.speak:
            self.fake.speak(Speaker(self))
            self.close_connection = True
        else:
            self.say(*self.fake.answers.get(f"{self.command} {self.path.partition('?')[0]}",
                                            (404, {"type": "urn:sublet:not-found", "detail": "nothing there"})))

    do_GET = do_PUT = do_POST = do_DELETE = answer

    def say(self, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def address_string(self) -> str:
        return "somebody"


class OfSocket(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class OfPort(socketserver.ThreadingTCPServer):
    daemon_threads = True


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def handler(fake: Fake) -> type[Handler]:
    return type("HandlerOfOne", (Handler,), {"fake": fake})


@contextmanager
def by_socket(fake: Fake, run: Path) -> Iterator[None]:
    with serving(OfSocket(str(run / "api.sock"), handler(fake))):
        yield


@contextmanager
def by_tls(fake: Fake, context: ssl.SSLContext) -> Iterator[str]:
    """Gives HOST:PORT."""
    server = OfPort(("127.0.0.1", 0), handler(fake))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server):
        yield f"localhost:{server.server_address[1]}"
