"""A server, and the networks that are leased of it."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlencode

import httpx

from .api.client import Client
from .api.models import Admission, Lease, Maintenance, Notify, Version, Waiting
from .errors import error_of_body
from .network import Network
from .place import Place, token_of
from .request import Request, nanoseconds
from .session import Session


class Sublet:
    """A server: of this machine by its socket, or elsewhere by TLS.

    What is not stated is taken of the variables of the command line: SUBLET_RUN,
    SUBLET_SERVER, SUBLET_CA, SUBLET_CERT, SUBLET_KEY, SUBLET_TOKEN_FILE, SUBLET_TOKEN.
    """

    def __init__(self, run: str | None = None, *, server: str | None = None,
                 cert: str | None = None, key: str | None = None, ca: str | None = None,
                 token: str | None = None, token_file: str | os.PathLike[str] | None = None):
        self._place = Place.find(run, server, cert, key, ca, token_of(token, token_file))
        # Checks take half a minute and more, and long polls wait for minutes.
        self.http = httpx.Client(base_url=self._place.base, transport=self._place.transport(),
                                 headers=self._place.headers, timeout=httpx.Timeout(10, read=600))
        self.api = Client(base_url=self._place.base).set_httpx_client(self.http)

    def __enter__(self) -> Sublet:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends its connections. Networks stay as they are."""
        self.http.close()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """One request; what the server answers, or an Error."""
        answer = self.http.request(method, path, json=body, headers=headers)
        if not answer.is_success:
            raise error_of_body(answer.content, answer.status_code, answer.reason_phrase)
        return answer.json() if answer.content else None

    def version(self) -> str:
        """Which version of the API the server speaks: MAJOR.MINOR."""
        return Version.from_dict(self.call("GET", "/v1/version")).api_version

    def leases(self) -> list[Lease]:
        return [Lease.from_dict(one) for one in self.call("GET", "/v1/leases")]

    def lease(self, tenant: str, network: str) -> Lease:
        return Lease.from_dict(self.call("GET", f"/v1/leases/{tenant}/{network}"))

    def ask(self, request: Request | dict[str, Any], accept: bool = False,
            waiting: Literal["offer", "admit"] | None = None) -> Admission:
        """Asks for a network; accept takes an offer.

        With waiting, what is refused waits for room: the answer has waiting in place
        of lease, and one is told when it fits (offer), or it is admitted then (admit).
        """
        return Admission.from_dict(self._ask(request, accept, waiting))

    def _ask(self, request: Request | dict[str, Any], accept: bool, waiting: str | None = None) -> Any:
        body = request.json() if isinstance(request, Request) else request
        ask = {"request": body, "accept": accept} | ({"waiting": waiting} if waiting else {})
        return self.call("POST", "/v1/leases", ask)

    def network(self, request: Request | dict[str, Any], accept: bool = False) -> Network:
        """Asks for a network and waits until it runs; accept takes an offer."""
        net = Network(self, self._ask(request, accept)["lease"]["request"])
        try:
            net.wait()
        except BaseException:
            net.release()
            raise
        return net

    def waiting(self) -> list[Waiting]:
        """Requests that wait for room, the oldest first."""
        return [Waiting.from_dict(one) for one in self.call("GET", "/v1/waiting")]

    def end_waiting(self, tenant: str, network: str) -> Waiting:
        return Waiting.from_dict(self.call("DELETE", f"/v1/waiting/{tenant}/{network}"))

    def notify(self, tenant: str | None = None) -> Notify:
        """Where events are told; tenant: another's, for the operator."""
        return Notify.from_dict(self.call("GET", _notify(tenant)))

    def set_notify(self, url: str | None = None, mail: str | None = None, tenant: str | None = None) -> Notify:
        """Tells events by HTTP, by mail or both; the answer has the secret, this once."""
        body = {key: value for key, value in (("url", url), ("mail", mail)) if value}
        return Notify.from_dict(self.call("PUT", _notify(tenant), body))

    def remove_notify(self, tenant: str | None = None) -> Notify:
        return Notify.from_dict(self.call("DELETE", _notify(tenant)))

    def maintenance(self) -> list[Maintenance]:
        """What is planned or under way."""
        return [Maintenance.from_dict(one) for one in self.call("GET", "/v1/maintenance")]

    def add_maintenance(self, of: str, duration: timedelta, start: datetime | None = None,
                        note: str | None = None, dry_run: bool = False) -> Maintenance:
        """Plans work on a host or link, from now on or from start; for the operator."""
        body = {"of": of, "for_ns": nanoseconds(duration), "start": start and start.astimezone().isoformat(),
                "note": note, "dry_run": dry_run}
        ask = {key: value for key, value in body.items() if value}
        return Maintenance.from_dict(self.call("POST", "/v1/maintenance", ask))

    def remove_maintenance(self, identifier: str) -> Maintenance:
        return Maintenance.from_dict(self.call("DELETE", f"/v1/maintenance/{identifier}"))

    def session(self, path: str, spec: dict[str, Any] | None = None) -> Session:
        """A session at a route of the API that has them, by WebSocket."""
        return Session.open(self._place, path, spec)


def _notify(tenant: str | None) -> str:
    return "/v1/notify" + (f"?{urlencode({'tenant': tenant})}" if tenant else "")
