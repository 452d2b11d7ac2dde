"""Requests as objects. Rates are bit/s of Ethernet frames, or text: "10Mbit"."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

UNITS = {"": 1, "bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}
SIZES = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def _number(text: str | int, units: dict[str, int]) -> int:
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2] not in units:
        raise ValueError(f"{text!r}: write a number with one of {', '.join(filter(None, units))}")
    return round(float(match[1]) * units[match[2]])


def bits(rate: str | int) -> int:
    """bits("10Mbit") is 10000000. ValueError: no such unit."""
    return _number(rate, UNITS)


def nanoseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1) * 1000


@dataclass
class Node:
    """A node. cpu is in cores; run are commands, each a list of arguments."""

    name: str
    cpu: float | None = None
    memory: str | int | None = None
    host: str | None = None
    image: str | None = None
    run: list[list[str]] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)  # members as the API has them

    def json(self) -> dict[str, Any]:
        all_of = {
            "name": self.name,
            "cpu_milli": None if self.cpu is None else round(1000 * self.cpu),
            "memory_bytes": None if self.memory is None else _number(self.memory, SIZES),
            "host": self.host,
            "image": self.image,
            "run": [{"cmd": cmd} for cmd in self.run],
            "env": self.env,
        }
        return {k: v for k, v in all_of.items() if v} | self.more


@dataclass
class Link:
    """A link; min is guaranteed, max never exceeded, rate is both, each way.

    Without any of them it is best effort.
    """

    a: str
    b: str
    min: str | int = 0
    max: str | int = 0
    rate: str | int = 0
    name: str | None = None
    latency: timedelta | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        least, most = bits(self.rate or self.min), bits(self.rate or self.max)
        all_of = {
            "name": self.name or f"{self.a}-{self.b}",
            "ends": [self.a, self.b],
            "bandwidth": [{"min_bps": least, "max_bps": most or least}] * 2,
            "latency_ns": None if self.latency is None else nanoseconds(self.latency),
        }
        return {k: v for k, v in all_of.items() if v is not None} | self.more


@dataclass
class Request:
    """What is asked for. duration: until released, if none is stated."""

    network: str
    nodes: list[Node] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    routers: list[Node] = field(default_factory=list)
    switches: list[dict[str, Any]] = field(default_factory=list)
    start: datetime | None = None
    duration: timedelta | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        all_of = {
            "network": self.network,
            "nodes": [n.json() for n in self.nodes],
            "routers": [n.json() for n in self.routers],
            "switches": self.switches,
            "links": [link.json() for link in self.links],
            "start": None if self.start is None else self.start.astimezone().isoformat(),
            "for_ns": None if self.duration is None else nanoseconds(self.duration),
        }
        return {k: v for k, v in all_of.items() if v} | self.more
