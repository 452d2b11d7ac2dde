"""Compare split links with a linear programming solver (HiGHS).

    go run ./tools/flowcheck -n 1000 | python3 tools/flowcheck/check.py

Reads one case a line (see main.go). The solver gets the program by arcs, not
by paths: a share 0..1 of every link on every arc, conserved at every node. For
each case it checks

  * that the two agree whether the links fit, and on the least cost;
  * that the rounded shares, if there are any, keep every capacity in exact
    integers and add up to 256, and what rounding costs above the optimum.

Exits 1 if a case disagrees. Needs highspy (pip install highspy).
"""

import json
import sys

import highspy
import numpy as np


def optimum(case):
    """The least cost, or None."""
    arcs, links = case["arcs"], case["links"]
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    inf = highspy.kHighsInf
    unit = 1e6
    for _ in links:
        for a in arcs:
            # An arc without room for the least share is closed to both, as
            # shares could not be rounded onto it.
            h.addVar(0, 1)
    n = len(arcs)
    for l, (source, target, forward, back, cost) in enumerate(links):
        for i, (_, _, left) in enumerate(arcs):
            h.changeColCost(l * n + i, cost / unit)
            if left * 256 < forward or arcs[i ^ 1][2] * 256 < back:
                h.changeColBounds(l * n + i, 0, 0)
        for v in range(case["nodes"]):
            index = [l * n + i for i, a in enumerate(arcs) if v in (a[0], a[1])]
            value = [1.0 if arcs[i - l * n][0] == v else -1.0 for i in index]
            out = (v == source) - (v == target)
            h.addRow(out, out, len(index), np.array(index, dtype=np.int32), np.array(value))
    for i, (_, _, left) in enumerate(arcs):
        index, value = [], []
        for l, (_, _, forward, back, _) in enumerate(links):
            for j, need in ((i, forward), (i ^ 1, back)):
                if need:
                    index.append(l * n + j)
                    value.append(need / unit)
        h.addRow(-inf, left / unit, len(index), np.array(index, dtype=np.int32), np.array(value))
    h.run()
    if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return h.getObjectiveValue() * unit


def rounded(case):
    """Check the shares; their cost."""
    taken = [0] * len(case["arcs"])
    cost = 0
    for (source, target, forward, back, price), shares in zip(case["links"], case["shares"]):
        assert sum(s["units"] for s in shares) == 256, "shares do not add up"
        for s in shares:
            at = source
            for a in s["walk"]:
                assert case["arcs"][a][0] == at, "a path is broken"
                at = case["arcs"][a][1]
                taken[a] += -(-forward * s["units"] // 256)
                taken[a ^ 1] += -(-back * s["units"] // 256)
            assert at == target, "a path leads elsewhere"
            cost += price * s["units"] / 256 * len(s["walk"])
    for (_, _, left), t in zip(case["arcs"], taken):
        assert t <= left, "%d of %d are taken" % (t, left)
    return cost


def main():
    cases = feasible = split = 0
    excess = []
    for line in sys.stdin:
        case = json.loads(line)
        cases += 1
        best, got = optimum(case), case["cost"]
        if (best is None) != (got is None):
            sys.exit("case %d: cost %s, of the solver %s" % (cases, got, best))
        if best is None:
            continue
        feasible += 1
        if abs(got - best) > 1e-6 * max(best, 1):
            sys.exit("case %d: cost %g, of the solver %g" % (cases, got, best))
        if case["shares"]:
            split += 1
            excess.append(rounded(case) / max(best, 1) - 1)
    print("%d cases, %d feasible, all as the solver says; %d of those rounded, costing %.4f %% more on average, %.3f %% at most"
          % (cases, feasible, split, 100 * sum(excess) / max(len(excess), 1), 100 * max(excess, default=0)))


if __name__ == "__main__":
    main()
