"""Counters over time: as lists, and as arrays of numpy where it is installed."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

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

    def _of(self, link: str, node: str, counter: str = "entered", unit: str = "bytes") -> list[tuple[datetime, int]]:
        if node not in self._ends.get(link, []):
            raise KeyError(f"no link {link!r} with the end {node!r}")
        return self._series.get((link, node, counter, unit), [])

    def at(self, link: str, node: str, counter: str = "entered", unit: str = "bytes") -> list[datetime]:
        return [at for at, _ in self._of(link, node, counter, unit)]

    def values(self, link: str, node: str, counter: str = "entered", unit: str = "bytes") -> list[int]:
        """What was counted since the link was built, in the direction from node."""
        return [value for _, value in self._of(link, node, counter, unit)]

    def rate(self, link: str, node: str) -> list[float]:
        """What entered between two readings, in bit/s of frames."""
        series = self._of(link, node, "entered", "bytes")
        return [
            8 * (after - before) / (then - since).total_seconds()
            for (since, before), (then, after) in zip(series, series[1:])
        ]

    def array(self, link: str, node: str) -> numpy.ndarray[Any, Any]:
        """All counters in the direction from node, as a structured array of numpy.

        Its fields are at (datetime64, UTC), bps (what entered since the row before, in
        bit/s; NaN in the first) and each counter, as entered_bytes. Without numpy
        ImportError: at, values and rate are lists.
        """
        import numpy

        self._of(link, node)
        series = {key[2:]: dict(found) for key, found in self._series.items() if key[:2] == (link, node)}
        times = sorted(set().union(*series.values()))
        fields = [("at", "M8[us]"), ("bps", "f8"), *((f"{name}_{unit}", "i8") for name, unit in series)]
        table = numpy.full(len(times), 0, fields)
        table["at"] = [at.astimezone(UTC).replace(tzinfo=None) for at in times]
        table["bps"] = numpy.nan
        for (name, unit), found in series.items():
            table[f"{name}_{unit}"] = [found.get(at, 0) for at in times]
        if ("entered", "bytes") in series:
            seconds = numpy.diff(table["at"]) / numpy.timedelta64(1, "s")
            table["bps"][1:] = 8 * numpy.diff(table["entered_bytes"]) / seconds
        return table
