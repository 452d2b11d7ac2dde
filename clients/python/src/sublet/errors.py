"""What the server says no with: problems of RFC 9457, by their type."""

from __future__ import annotations

import json
from typing import Any


class Error(Exception):
    """A problem; what says which, in words, and problem has all its members."""

    def __init__(self, problem: dict[str, Any]):
        super().__init__(problem.get("detail", "the server failed"))
        self.problem = problem


class BadInput(Error):
    """The request says something wrong, at path."""

    @property
    def path(self) -> str:
        return str(self.problem.get("path", ""))


class NotFound(Error):
    """There is nothing of that name that the caller may see."""


class Conflict(Error):
    """With what is there already, or with a change of somebody else's."""


class Refused(Error):
    """By admission: there is no room. offers would be accepted."""

    @property
    def reasons(self) -> list[str]:
        return list(self.problem.get("reasons", []))

    @property
    def offers(self) -> list[dict[str, Any]]:
        return list(self.problem.get("offers", []))


KINDS = {
    "urn:sublet:bad-input": BadInput,
    "urn:sublet:not-found": NotFound,
    "urn:sublet:conflict": Conflict,
    "urn:sublet:changed": Conflict,
    "urn:sublet:refused": Refused,
}


def error_of(problem: dict[str, Any]) -> Error:
    return KINDS.get(problem.get("type", ""), Error)(problem)


def error_of_body(body: bytes, status: int, reason: str) -> Error:
    """Of an answer that is no success, whoever gave it: a proxy writes no problems."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"detail": body.decode(errors="replace").strip() or reason, "status": status}
    return error_of(problem)
