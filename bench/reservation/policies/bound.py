"""Upper bounds for instances of bench/reservation/policies, by linear programs (HiGHS).

    pip install highspy
    python3 bench/reservation/policies/bound.py [-o bounds.json] FILE...

Nobody who serves a request whole or not at all, at one time, on paths of the
substrate, can accept more than the relaxation that is solved here: it knows
all requests beforehand, may serve any part of a request, in pieces at any
times between its earliest start and its latest end, and may split every link
over any number of paths at any shares.

For each request r a part x in [0, 1]; for each bin of time i, the time
y[r,i] <= x[r] * (overlap of i with r's window) for which r is served in it,
sum over i of y[r,i] = x[r] * duration. In each bin the demands make a
multi-commodity flow, one commodity per source site, over links of capacity
(length of the bin) in each direction. Bins wider than the finest merge
constraints, which relaxes further; so the bound holds for any number of them.
"""

import json
import os
import sys

import highspy

BINS = int(os.environ.get("BINS", "48"))


def read(name):
    """Sites, wires (a, b, Mbit/s) and requests of an instance."""
    sites, wires, requests = [], [], []
    with open(name) as file:
        for line in file:
            words = line.split()
            if not words or words[0] == "#":
                continue
            kind, rest = words[0], words[1:]
            if kind == "site":
                sites.append(rest[0])
            elif kind == "wire":
                wires.append((rest[0], rest[1], int(rest[2])))
            elif kind == "request":
                _, earliest, latest, duration, _ = map(int, rest)
                requests.append({"from": earliest, "to": latest + duration, "duration": duration, "nodes": [], "links": []})
            elif kind == "node":
                requests[-1]["nodes"].append(rest[0])
            elif kind == "link":
                requests[-1]["links"].append(tuple(map(int, rest)))
    return sites, wires, requests


class Program:
    """A linear program that grows column by column and row by row."""

    def __init__(self):
        self.lower, self.upper, self.cost = [], [], []
        self.rows = []

    def column(self, upper, cost=0.0):
        self.lower.append(0.0)
        self.upper.append(upper)
        self.cost.append(cost)
        return len(self.cost) - 1

    def row(self, low, high, terms):
        self.rows.append((low, high, terms))

    def maximum(self, cost):
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.rows)
        lp.col_cost_ = [-c for c in cost]
        lp.col_lower_, lp.col_upper_ = self.lower, self.upper
        lp.row_lower_ = [r[0] for r in self.rows]
        lp.row_upper_ = [r[1] for r in self.rows]
        start, index, value = [0], [], []
        for _, _, terms in self.rows:
            for column, factor in terms:
                index.append(column)
                value.append(factor)
            start.append(len(index))
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = start, index, value
        solver.passModel(lp)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SystemExit("not solved to the optimum: " + str(solver.getModelStatus()))
        # The dual objective bounds from above whatever the tolerance left.
        return max(-solver.getObjectiveValue(), -solver.getInfo().objective_function_value)


def bins_of(requests):
    """Bins of equal numbers of the windows' ends."""
    moments = sorted({r["from"] for r in requests} | {r["to"] for r in requests})
    count = min(BINS, len(moments) - 1)
    cuts = sorted({moments[round(i * (len(moments) - 1) / count)] for i in range(count + 1)})
    return list(zip(cuts, cuts[1:]))


def bound(name):
    sites, wires, requests = read(name)
    program, bins = Program(), bins_of(requests)
    volume, count = {}, {}
    demands = [{} for _ in bins]  # by source and target: terms
    for r in requests:
        x = program.column(1.0)
        count[x] = 1.0
        volume[x] = sum(f + b for _, _, f, b in r["links"]) * r["duration"] / 1000
        terms = [(x, -float(r["duration"]))]
        for i, (begin, end) in enumerate(bins):
            overlap = min(end, r["to"]) - max(begin, r["from"])
            if overlap <= 0:
                continue
            y = program.column(float(overlap))
            program.row(-highspy.kHighsInf, 0.0, [(y, 1.0), (x, -float(overlap))])
            terms.append((y, 1.0))
            for a, b, forward, back in r["links"]:
                for s, t, rate in ((a, b, forward), (b, a, back)):
                    pair = r["nodes"][s], r["nodes"][t]
                    if rate and pair[0] != pair[1]:
                        demands[i].setdefault(pair, []).append((y, rate / 1000))
        program.row(0.0, 0.0, terms)
    for i, (begin, end) in enumerate(bins):
        flow(program, sites, wires, demands[i], end - begin)
    columns = len(program.cost)
    return {
        "requests": program.maximum([count.get(c, 0.0) for c in range(columns)]),
        "volume_gbit": program.maximum([volume.get(c, 0.0) for c in range(columns)]),
    }


def flow(program, sites, wires, demands, length):
    """Carry demands (in Gbit) in a bin: one commodity for each source."""
    arcs = [(a, b, c) for a, b, c in wires] + [(b, a, c) for a, b, c in wires]
    load = [[] for _ in arcs]
    for source in sorted({s for s, _ in demands}):
        columns = [program.column(highspy.kHighsInf) for _ in arcs]
        for k, column in enumerate(columns):
            load[k].append((column, 1.0))
        for site in sites:
            if site == source:
                continue
            terms = [(columns[k], 1.0) for k, a in enumerate(arcs) if a[1] == site]
            terms += [(columns[k], -1.0) for k, a in enumerate(arcs) if a[0] == site]
            terms += [(y, -rate) for y, rate in demands.get((source, site), [])]
            program.row(0.0, highspy.kHighsInf, terms)
    for k, terms in enumerate(load):
        if terms:
            program.row(-highspy.kHighsInf, arcs[k][2] / 1000 * length, terms)


def main(arguments):
    out = None
    if arguments[:1] == ["-o"]:
        out, arguments = arguments[1], arguments[2:]
    if not arguments:
        raise SystemExit(__doc__)
    bounds = {}
    for name in arguments:
        bounds[os.path.splitext(os.path.basename(name))[0]] = bound(name)
        print(name, bounds, file=sys.stderr)
    text = json.dumps(bounds, indent=2) + "\n"
    if out:
        with open(out, "w") as file:
            file.write(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
