"""A server, and the networks that are leased of it."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
from typing import Any, Iterator

import httpx

from .api.client import Client
from .api.models import Lease, Verdict
from .errors import Error, NotFound, error_of
from .request import Request
from .samples import Samples
from .session import Session


class Sublet:
    """A server: of this machine by its socket, or elsewhere by TLS."""

    def __init__(self, run: str | None = None, *, server: str | None = None,
                 cert: str | None = None, key: str | None = None, ca: str | None = None):
        self._flags = ["--server", server, "--cert", cert, "--key", key, "--ca", ca] if server else []
        if server:
            context = ssl.create_default_context(cafile=ca)
            context.load_cert_chain(cert, key)
            transport, base = httpx.HTTPTransport(verify=context), f"https://{server}"
            self._socket = {"server": server, "ssl": context}
        else:
            run = run or os.environ.get("SUBLET_RUN", "/run/sublet")
            self._flags = ["--run", run]
            uds = os.path.join(run, "api.sock")
            transport, base = httpx.HTTPTransport(uds=uds), "http://sublet"
            self._socket = {"uds": uds}
        # Checks take half a minute and more, and long polls wait for minutes.
        self.http = httpx.Client(base_url=base, transport=transport, timeout=httpx.Timeout(10, read=600))
        self.api = Client(base_url=base).set_httpx_client(self.http)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """One request; what the server answers, or an Error."""
        answer = self.http.request(method, path, json=body, headers=headers)
        if answer.is_success:
            return answer.json() if answer.content else None
        try:
            raise error_of(answer.json())
        except ValueError:
            raise Error({"detail": answer.text or answer.reason_phrase, "status": answer.status_code}) from None

    def leases(self) -> list[Lease]:
        return [Lease.from_dict(one) for one in self.call("GET", "/v1/leases")]

    def lease(self, tenant: str, network: str) -> Lease:
        return Lease.from_dict(self.call("GET", f"/v1/leases/{tenant}/{network}"))

    def network(self, request: Request | dict[str, Any], accept: bool = False) -> Network:
        """Asks for a network and waits until it runs; accept takes an offer."""
        body = request.json() if isinstance(request, Request) else request
        admission = self.call("POST", "/v1/leases", {"request": body, "accept": accept})
        net = Network(self, admission["lease"]["request"])
        try:
            net.wait()
        except BaseException:
            net.release()
            raise
        return net

    def session(self, path: str, spec: dict[str, Any] | None = None) -> Session:
        """A session at a route of the API that has them, by WebSocket."""
        return Session.open(path, spec=spec, **self._socket)

    def program(self, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """The program sublet on this machine, for the same server."""
        return subprocess.run(["sublet", *self._flags, *args], text=True, capture_output=True, check=False, **options)


class Network:
    """A network that is leased. As a context it is released at its end."""

    def __init__(self, server: Sublet, request: dict[str, Any]):
        self.server, self.request = server, request
        self.tenant, self.name = request["tenant"], request["network"]
        self.path = f"/v1/leases/{self.tenant}/{self.name}"

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def lease(self) -> Lease:
        return self.server.lease(self.tenant, self.name)

    def wait(self, timeout: float = 300) -> Lease:
        """Until it runs, or cannot; Error says why, also after timeout seconds."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            answer = self.server.call("GET", f"{self.path}?until=settled&wait={max(1, min(60, int(left)))}s")
            if answer["state"] == "running":
                return Lease.from_dict(answer)
            if answer["state"] in ("failed", "ended") or left <= 0:
                raise Error({"detail": f"{self.name} is {answer['state']}: {answer.get('message', '')}"})

    def release(self) -> None:
        """Gives it back and waits until nothing of it is left."""
        try:
            self.server.call("DELETE", self.path)
            self.server.call("GET", f"{self.path}?until=gone&wait=60s")
        except NotFound:
            pass

    def check(self, seconds: float | None = None) -> Verdict:
        """Measures every promise."""
        body = {} if seconds is None else {"duration_ns": round(seconds * 1e9)}
        return Verdict.from_dict(self.server.call("POST", f"{self.path}/check", body))

    def link_down(self, link: str, down: bool = True) -> None:
        """Takes a link down, or up again, and waits until its hosts have done it."""
        self.server.call("PUT", f"{self.path}/links/{link}/state", {"down": down})
        self.server.call("GET", f"{self.path}?until=applied&wait=10s")

    def exec(self, node: str, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs a command in a node; its exit code is returncode."""
        return self.server.program("exec", f"{self.tenant}/{self.name}/{node}", "--", *command, **options)

    def session(self, node: str, *command: str, **spec: Any) -> Session:
        """A command in a node with which one speaks; tty=True, rows, cols: on a terminal."""
        return self.server.session(f"{self.path}/nodes/{node}/exec", {"argv": command, **spec})

    def log(self, node: str, follow: bool = False) -> Session:
        """What programs of a node wrote."""
        return self.server.session(f"{self.path}/nodes/{node}/log?follow={str(follow).lower()}")

    def capture(self, link: str, end: int = 0, count: int | None = None, seconds: float | None = None) -> Session:
        """Packets of a link as pcapng, as they come."""
        bounds = {"end": end, "count": count, "for": seconds and f"{seconds}s"}
        query = "&".join(f"{key}={value}" for key, value in bounds.items() if value is not None)
        return self.server.session(f"{self.path}/links/{link}/capture?{query}")

    def events(self) -> Iterator[tuple[str, Any]]:
        """States and samples as they come (docs/watch.md): pairs of event and data."""
        with self.server.http.stream("GET", "/v1/watch", timeout=httpx.Timeout(10, read=60)) as answer:
            name = ""
            for line in answer.iter_lines():
                key, _, value = line.partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    yield name, json.loads(value)

    def samples(self, seconds: float = 5) -> Samples:
        """What its links carry, for some seconds."""
        found = Samples({link["name"]: link["ends"] for link in self.request["links"]})
        end = time.monotonic() + seconds
        mine = {"tenant": self.tenant, "network": self.name}
        for name, data in self.events():
            for sample in data if name == "samples" else []:
                if sample.get("lease") == mine:
                    found.add(sample)
            if time.monotonic() > end:
                break
        return found
