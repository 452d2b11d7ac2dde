"""A network that is leased: what one does with it and in it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx

from .api.models import Lease, Verdict
from .errors import Error, NotFound, error_of_body
from .samples import Samples
from .session import Session

if TYPE_CHECKING:
    from .client import Sublet


class Network:
    """A network that is leased. As a context it is released at its end."""

    def __init__(self, server: Sublet, request: dict[str, Any]):
        self.server, self.request = server, request
        self.tenant, self.name = str(request["tenant"]), str(request["network"])
        self.path = f"/v1/leases/{self.tenant}/{self.name}"

    def __enter__(self) -> Network:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
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

    def exec(self, node: str, *command: str, input: str | bytes = b"", timeout: float | None = None,
             check: bool = False, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a command in a node; its exit code is returncode.

        As of subprocess.run: what is not over after timeout seconds is ended and
        TimeoutExpired, and with check another exit code than 0 is CalledProcessError.
        """
        with self.session(node, *command, **({"user": user} if user else {})) as session:
            data = input.encode() if isinstance(input, str) else input
            try:
                out, err = session.communicate(data, timeout)
            except TimeoutError:
                raise subprocess.TimeoutExpired(list(command), timeout or 0) from None
        done = subprocess.CompletedProcess(list(command), session.exit or 0, _text(out), _text(err))
        if check:
            done.check_returncode()
        return done

    def session(self, node: str, *command: str, **spec: Any) -> Session:
        """A command in a node with which one speaks; tty=True, rows, cols: on a terminal."""
        return self.server.session(f"{self.path}/nodes/{node}/exec", {"argv": command, **spec})

    def log(self, node: str, follow: bool = False) -> Session:
        """What programs of a node wrote."""
        return self.server.session(f"{self.path}/nodes/{node}/log?follow={str(follow).lower()}")

    def capture(self, link: str, end: int = 0, count: int | None = None, seconds: float | None = None) -> Session:
        """Packets of a link as pcapng, as they come."""
        bounds = {"end": end, "count": count, "for": seconds and f"{seconds}s"}
        query = urlencode({key: value for key, value in bounds.items() if value is not None})
        return self.server.session(f"{self.path}/links/{link}/capture?{query}")

    def events(self) -> Iterator[tuple[str, Any]]:
        """States and samples as they come (docs/watch.md): pairs of event and data."""
        with self.server.http.stream("GET", "/v1/watch", timeout=httpx.Timeout(10, read=60)) as answer:
            if not answer.is_success:
                raise error_of_body(answer.read(), answer.status_code, answer.reason_phrase)
            name = ""
            for line in answer.iter_lines():
                key, _, value = line.partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    yield name, json.loads(value)

    def samples(self, seconds: float = 5) -> Samples:
        """What its links carry, for some seconds."""
        found = Samples({link["name"]: link["ends"] for link in self.request.get("links", [])})
        end = time.monotonic() + seconds
        mine = {"tenant": self.tenant, "network": self.name}
        for name, data in self.events():
            for sample in data if name == "samples" else []:
                if sample.get("lease") == mine:
                    found.add(sample)
            if time.monotonic() > end:
                break
        return found


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
