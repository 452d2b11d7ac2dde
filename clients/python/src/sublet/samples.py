"""Counters over time, as lists: for a notebook, or numpy.array(...)."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

Key = tuple[str, str, str, str]  # link, node where it is entered, counter, unit


class Samples:
    """The counters of a network's links, as they were read once a second."""

    def __init__(self, links: dict[str, list[str]]):
        self._ends = links
        self._series: dict[Key, list[tuple[datetime, int]]] = defaultdict(list)

    def add(self, sample: dict[str, Any]) -> None:
        labels = sample.get("labels", {})
        ends = self._ends.get(labels.get("link", ""))
        if sample.get("kind") != "vxlink" or ends is None or labels.get("enters") != "true":
            return
        at = datetime.fromisoformat(sample["at"])
        for c in sample.get("counters", []):
            key = labels["link"], ends[int(labels["direction"])], c["name"], c["unit"]
            series = self._series[key]
            if series and series[-1][0] == at:  # of another cause
                series[-1] = at, series[-1][1] + c["value"]
            else:
                series.append((at, c["value"]))

    def at(self, link: str, node: str, counter: str = "entered", unit: str = "bytes") -> list[datetime]:
        return [at for at, _ in self._series[link, node, counter, unit]]

    def values(self, link: str, node: str, counter: str = "entered", unit: str = "bytes") -> list[int]:
        """What was counted since the link was built, in the direction from node."""
        return [value for _, value in self._series[link, node, counter, unit]]

    def rate(self, link: str, node: str) -> list[float]:
        """What entered between two readings, in bit/s of frames."""
        series = self._series[link, node, "entered", "bytes"]
        return [
            8 * (after - before) / (then - since).total_seconds()
            for (since, before), (then, after) in zip(series, series[1:])
        ]
