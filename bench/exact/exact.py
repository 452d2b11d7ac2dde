"""Compare embeddings with proven optima (HiGHS).

    sublet bench embed FILE --mappings OUT
    python3 bench/exact/exact.py FILE OUT --sample 70 --seed 1 --limit 300

Replays the mappings of OUT and, at random arrivals, solves the request on what
the substrate has left just then to proven optimality, by an integer program:
which host each virtual node goes to, which links each virtual link takes, the
sum of demand times hops minimal. It compares the engine's mapping, which was
made in the same state, or its refusal. Requests that the solver cannot decide
within the limit are counted and left out.

Prints a line per request and a summary. Needs highspy (pip install highspy).
"""

import argparse
import collections
import json
import os
import random
import sys
import time

import highspy

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "vne"))
from check import loads, read_instance  # noqa: E402

EPS = 1e-6


class Program:
    """The integer program of one request on a residual substrate."""

    def __init__(self, cpu, links, left, request):
        self.solver = highspy.Highs()
        self.solver.silent()
        self.columns = 0
        self.demands = [(a, b, d) for a, b, d in request["links"] if d > 0]
        self.leaving = collections.defaultdict(list)
        for i, (a, b, _) in enumerate(links):
            self.leaving[a].append((i, 0, b))
            self.leaving[b].append((i, 1, a))
        around = [sum(max(0, left[i]) for i, _, _ in self.leaving[h]) for h in range(len(cpu))]
        self.place = []
        for v, c in enumerate(request["cpu"]):
            need = sum(d for a, b, d in self.demands if v in (a, b))
            hosts = [h for h in range(len(cpu)) if cpu[h] + EPS >= c and around[h] + EPS >= need]
            self.place.append({h: self.column(0) for h in hosts})
        self.flow = [{(i, way): self.column(d) for i in range(len(links)) for way in (0, 1) if left[i] + EPS >= d}
                     for _, _, d in self.demands]
        self.constraints(cpu, links, left)

    def column(self, cost):
        """A binary variable."""
        self.solver.addVar(0, 1)
        self.solver.changeColCost(self.columns, cost)
        self.solver.changeColIntegrality(self.columns, highspy.HighsVarType.kInteger)
        self.columns += 1
        return self.columns - 1

    def row(self, low, high, terms):
        terms = [(c, x) for c, x in terms if c is not None]
        self.solver.addRow(low, high, len(terms), [c for c, _ in terms], [float(x) for _, x in terms])

    def constraints(self, cpu, links, left):
        inf = highspy.kHighsInf
        for hosts in self.place:
            self.row(1, 1, [(c, 1) for c in hosts.values()])
        for h in range(len(cpu)):
            self.row(0, 1, [(hosts.get(h), 1) for hosts in self.place])
        for (a, b, _), flow in zip(self.demands, self.flow):
            for h in range(len(cpu)):
                out = [(flow.get((i, way)), 1) for i, way, _ in self.leaving[h]]
                into = [(flow.get((i, 1 - way)), 1) for i, way, _ in self.leaving[h]]
                ends = [(self.place[a].get(h), -1), (self.place[b].get(h), 1)]
                self.row(0, 0, out + [(c, -1) for c, _ in into] + ends)
                # Implied, because ends are apart and no walk comes back, but
                # not by the relaxation: what is at h sends over its links.
                self.row(0, inf, out + ends[:1])
                self.row(0, inf, into + [(ends[1][0], -1)])
                self.row(0, 1, out + [ends[1]])
            self.row(1, inf, [(c, 1) for c in flow.values()])
        for i in range(len(links)):
            self.row(0, max(0, left[i]) + EPS, [(flow.get((i, way)), d) for (_, _, d), flow in zip(self.demands, self.flow) for way in (0, 1)])

    def start(self, mapping, links, request):
        """Hand the engine's mapping to the solver as a first solution."""
        values = [0.0] * self.columns
        for v, h in enumerate(mapping["nodes"]):
            values[self.place[v][h]] = 1.0
        k = 0
        for (a, _, d), path in zip(request["links"], mapping["links"]):
            if d <= 0:
                continue
            at = mapping["nodes"][a]
            for i in path:
                way = 0 if links[i][0] == at else 1
                values[self.flow[k][i, way]] = 1.0
                at = links[i][1 - way]
            k += 1
        solution = highspy.HighsSolution()
        solution.col_value = values
        self.solver.setSolution(solution)

    def solve(self, limit):
        """The least cost, None if there is no embedding; "?" past the limit."""
        if any(not hosts for hosts in self.place) or any(not flow for flow in self.flow):
            return None
        self.solver.setOptionValue("time_limit", float(limit))
        self.solver.setOptionValue("threads", 1)
        self.solver.setOptionValue("mip_rel_gap", 0.0)
        self.solver.setOptionValue("mip_abs_gap", 0.5)  # demands are whole numbers
        self.solver.run()
        status = self.solver.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            return round(self.solver.getInfo().objective_function_value)
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        return "?"


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


class Tally:
    """What was found."""

    def __init__(self):
        self.count = collections.Counter()
        self.gaps = []

    def add(self, ours, best):
        self.count["drawn"] += 1
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
        return (f"{c['drawn']} drawn, {c['undecided']} undecided, {c['impossible']} proven impossible; "
                f"of {placeable} that can be placed {c['placed']} were ({100 * c['placed'] / max(1, placeable):.1f} %), "
                f"{sum(g == 0 for g in self.gaps)} of them at the optimum; above it: mean {100 * mean:.2f} %, most {100 * max(self.gaps, default=0):.2f} %")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("instance")
    parser.add_argument("mappings")
    parser.add_argument("--sample", type=int, default=70)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300, help="seconds for a request")
    parser.add_argument("--only", choices=["all", "refused", "accepted"], default="all")
    parser.add_argument("--quiet", action="store_true")
    opt = parser.parse_args()
    substrate, requests, events = read_instance(opt.instance)
    with open(opt.mappings) as file:
        mappings = {m["id"]: m for m in map(json.loads, file)}
    arrivals = [index for kind, index, _ in events if kind == 1 and
                (opt.only == "all" or (index in mappings) == (opt.only == "accepted"))]
    drawn = set(random.Random(opt.seed).sample(arrivals, min(opt.sample, len(arrivals))))
    tally = Tally()
    for index, cpu, left in states(substrate, requests, events, mappings):
        if index not in drawn:
            continue
        request, mapping = requests[index], mappings.get(index)
        begun = time.monotonic()
        program = Program(cpu, substrate[1], left, request)
        if mapping:
            program.start(mapping, substrate[1], request)
        best = program.solve(opt.limit)
        ours = hops(request, mapping) if mapping else None
        tally.add(ours, best)
        if not opt.quiet:
            print(f"request {index}: {len(request['cpu'])} nodes, {len(request['links'])} links; "
                  f"ours {ours}, optimum {best}, {time.monotonic() - begun:.1f} s", flush=True)
    print(tally)


if __name__ == "__main__":
    main()
