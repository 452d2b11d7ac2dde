"""Where a server is, and who calls it: a socket or TLS, a certificate or a token."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path

import httpx

MOST_TOKEN = 4096  # bytes of a file that holds a token


def token_of(token: str | None = None, token_file: str | os.PathLike[str] | None = None) -> str | None:
    """The token as stated, or of the environment. ValueError: it is none."""
    if token and token_file:
        raise ValueError("state either token or token_file")
    if not token:
        token = _of_file(token_file or os.environ.get("SUBLET_TOKEN_FILE")) or os.environ.get("SUBLET_TOKEN")
    if token and not all("!" <= c <= "~" for c in token):
        raise ValueError("the token has a character that no token has: write it as sublet token create printed it")
    return token or None


def _of_file(name: str | os.PathLike[str] | None) -> str | None:
    if not name:
        return None
    with Path(name).open(encoding="ascii", errors="replace") as file:
        text = file.read(MOST_TOKEN + 1)
    if not text.strip() or len(text) > MOST_TOKEN:
        raise ValueError(f"{os.fspath(name)} holds no token")
    return text.strip()


@dataclass(frozen=True)
class Place:
    """A server, and what one shows to it: by the path of its socket, or by HOST:PORT.

    Several that share a store are tried in order; whichever answers is used.
    """

    uds: str | None = None
    servers: tuple[str, ...] = ()
    context: ssl.SSLContext | None = None
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def find(cls, run: str | None, server: str | None, cert: str | None, key: str | None, ca: str | None,
             token: str | None) -> Place:
        """As stated, or as the environment says, by the variables of the command line."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        server = server or (None if run else os.environ.get("SUBLET_SERVER"))
        if not server:
            run = run or os.environ.get("SUBLET_RUN") or "/run/sublet"
            return cls(uds=os.path.join(run, "api.sock"), headers=headers)
        servers = tuple(server.split(","))
        if wrong := [one for one in servers if not re.fullmatch(r"[^\s/]+:[0-9]+", one)]:
            raise ValueError(f"server {wrong[0]!r} is not HOST:PORT; several are separated by commas, without spaces")
        ca, cert, key = (stated or os.environ.get(name) or None for stated, name in
                         ((ca, "SUBLET_CA"), (cert, "SUBLET_CERT"), (key, "SUBLET_KEY")))
        return cls(servers=servers, context=_context(ca, cert, key, token), headers=headers)

    @property
    def base(self) -> str:
        return f"https://{self.servers[0]}" if self.servers else "http://sublet"

    def transport(self) -> httpx.BaseTransport:
        if self.context is None:
            return httpx.HTTPTransport(uds=self.uds)
        return _AnyOf(self.servers, httpx.HTTPTransport(verify=self.context))


class _AnyOf(httpx.BaseTransport):
    """Sends to the first server that takes connections: what was sent is not sent again."""

    def __init__(self, servers: tuple[str, ...], transport: httpx.HTTPTransport):
        self._urls = [httpx.URL(f"https://{one}") for one in servers]
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for url in self._urls[:-1]:
            try:
                return self._send(request, url)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                pass
        return self._send(request, self._urls[-1])

    def _send(self, request: httpx.Request, url: httpx.URL) -> httpx.Response:
        request.url = request.url.copy_with(host=url.host, port=url.port)
        request.headers["Host"] = url.netloc.decode("ascii")
        return self._transport.handle_request(request)

    def close(self) -> None:
        self._transport.close()


def _context(ca: str | None, cert: str | None, key: str | None, token: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    if cert:
        context.load_cert_chain(cert, key)
    elif not token:
        raise ValueError("a server elsewhere is called by a token, or by cert and key")
    return context
