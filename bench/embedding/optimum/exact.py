"""Compare embeddings with proven optima (CP-SAT, HiGHS).

    sublet bench embed FILE --mappings OUT
    python3 bench/embedding/optimum/exact.py FILE OUT --sample 70 --seed 1 --limit 60
    python3 bench/embedding/optimum/exact.py FILE OUT --solver both ...

Replays the mappings of OUT and, at random arrivals, solves the request on what
the substrate has left just then to proven optimality, by an integer program:
which host each virtual node goes to, which links each virtual link takes, the
sum of demand times hops minimal. It compares the engine's mapping, which was
made in the same state, or its refusal. Requests that the solver cannot decide
within the limit are counted and left out. CP-SAT (cpsat.py) decides far more
than HiGHS (highs.py); with both, each confirms the other where it decides, and the
program stops if they differ.

Prints a line per request and a summary. Needs ortools, and highspy for HiGHS
(pip install ortools highspy).
"""

import argparse
import collections
import concurrent.futures
import importlib
import json
import multiprocessing
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "vne"))
from check import loads, read_instance  # noqa: E402


def hops(request, mapping):
    """What a mapping costs: demand times hops."""
    return sum(d * len(path) for (_, _, d), path in zip(request["links"], mapping["links"]))


def states(substrate, requests, events, mappings):
    """Every arrival with what is left just before it."""
    cpu, left = list(substrate[0]), [capacity for _, _, capacity in substrate[1]]
    held = {}
    for kind, index, _ in events:
        if kind == 0:
            hosts, taken = held.pop(index, ({}, {}))
            sign = 1
        else:
            yield index, cpu, left
            if index not in mappings:
                continue
            hosts, taken, _ = loads(substrate, requests[index], mappings[index])
            held[index] = hosts, taken
            sign = -1
        for host, amount in hosts.items():
            cpu[host] += sign * amount
        for i, amount in taken.items():
            left[i] += sign * amount


def ask(solver, problem):
    """A solver's answer: the least cost, None for impossible, "?" for undecided."""
    return importlib.import_module(solver).answer(*problem)


class Panel:
    """Solvers, each in a process of its own: their libraries do not go together."""

    def __init__(self, names):
        spawn = multiprocessing.get_context("spawn")
        self.pools = {name: concurrent.futures.ProcessPoolExecutor(1, spawn) for name in names}

    def decide(self, *problem):
        """The answer, and of how many solvers; those that decide must agree."""
        answers = [pool.submit(ask, name, problem).result() for name, pool in self.pools.items()]
        answers = [a for a in answers if a != "?"]
        placed = problem[-2] is not None
        if len({a if placed else a is None for a in answers}) > 1:
            raise AssertionError(f"the solvers differ: {answers}")
        return (answers[0] if answers else "?"), len(answers)

    def close(self):
        """Ends the processes while their pipes are still there."""
        for pool in self.pools.values():
            pool.shutdown()


SOLVERS = {"cpsat": ["cpsat"], "highs": ["highs"], "both": ["cpsat", "highs"]}


class Tally:
    """What was found."""

    def __init__(self):
        self.count = collections.Counter()
        self.gaps = []

    def add(self, ours, best, answers):
        self.count["drawn"] += 1
        self.count["confirmed"] += answers > 1
        if best == "?":
            self.count["undecided"] += 1
        elif best is None:
            self.count["impossible"] += 1
            if ours is not None:
                raise AssertionError("the solver finds impossible what is mapped")
        elif ours is None:
            self.count["missed"] += 1
        else:
            self.count["placed"] += 1
            self.gaps.append((ours - best) / best if best else 0.0)

    def __str__(self):
        c = self.count
        placeable = c["placed"] + c["missed"]
        mean = sum(self.gaps) / len(self.gaps) if self.gaps else 0
        return (f"{c['drawn']} drawn, {c['undecided']} undecided, {c['confirmed']} decided by both solvers, {c['impossible']} proven impossible; "
                f"of {placeable} that can be placed {c['placed']} were ({100 * c['placed'] / max(1, placeable):.1f} %), "
                f"{sum(g == 0 for g in self.gaps)} of them at the optimum; above it: mean {100 * mean:.2f} %, most {100 * max(self.gaps, default=0):.2f} %, "
                f"{sum(g > 0.05 for g in self.gaps)} by more than 5 %")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("instance")
    parser.add_argument("mappings")
    parser.add_argument("--sample", type=int, default=70)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60, help="seconds for a request and solver")
    parser.add_argument("--solver", choices=SOLVERS, default="cpsat")
    parser.add_argument("--only", choices=["all", "refused", "accepted"], default="all")
    parser.add_argument("--quiet", action="store_true")
    opt = parser.parse_args()
    substrate, requests, events = read_instance(opt.instance)
    with open(opt.mappings) as file:
        mappings = {m["id"]: m for m in map(json.loads, file)}
    arrivals = [index for kind, index, _ in events if kind == 1 and
                (opt.only == "all" or (index in mappings) == (opt.only == "accepted"))]
    drawn = set(random.Random(opt.seed).sample(arrivals, min(opt.sample, len(arrivals))))
    tally, panel = Tally(), Panel(SOLVERS[opt.solver])
    for index, cpu, left in states(substrate, requests, events, mappings):
        if index not in drawn:
            continue
        request, mapping = requests[index], mappings.get(index)
        ours = hops(request, mapping) if mapping else None
        begun = time.monotonic()
        best, answers = panel.decide(cpu, substrate[1], left, request, mapping, ours, opt.limit)
        tally.add(ours, best, answers)
        if not opt.quiet:
            print(f"request {index}: {len(request['cpu'])} nodes, {len(request['links'])} links; "
                  f"ours {ours}, optimum {best}, {time.monotonic() - begun:.1f} s", flush=True)
    panel.close()
    print(tally)


if __name__ == "__main__":
    main()
