"""Compare rate allocations with a linear programming solver (HiGHS).

    go run ./tools/lpcheck -n 20000 | python3 tools/lpcheck/check.py

Reads one case a line: capacity, demands (min_bps, max_bps), rates (null when
embed/rate found the case infeasible). For each it checks

  * every constraint of the optimisation, in exact integers;
  * that the sum of the rates is the solver's optimum, less at most what
    rounding down to whole bit/s takes (under 1 bit/s for each demand);
  * that the smallest rate is as large as any optimum allows, the first step of
    max-min fairness;
  * that in infeasible cases the minima exceed the capacity (in exact integers:
    by 1 bit/s in some, which is below a solver's tolerance).

Exits 1 if a case disagrees. Needs highspy (pip install highspy).
"""

import json
import sys

import highspy

INFINITY = highspy.kHighsInf


def solve(capacity, demands, total=None):
    """Maximise the sum of rates or, under a given sum, the smallest rate.

    Works in parts of the capacity. Returns None when infeasible.
    """
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
    solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
    n = len(demands)
    for low, high in demands:
        solver.addVar(low / capacity, high / capacity)
        solver.changeColCost(solver.getNumCol() - 1, -1 if total is None else 0)
    for i, (low, _) in enumerate(demands):
        others = [j for j in range(n) if j != i]
        solver.addRow(-INFINITY, (capacity - low) / capacity, n - 1, others, [1.0] * (n - 1))
    solver.addRow(-INFINITY, (capacity - sum(low for low, _ in demands)) / capacity, 0, [], [])
    if total is not None:
        solver.addVar(0, 1)
        solver.changeColCost(n, -1)
        solver.addRow(total / capacity, INFINITY, n, list(range(n)), [1.0] * n)
        for i in range(n):
            solver.addRow(0, INFINITY, 2, [i, n], [1.0, -1.0])
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return -solver.getInfo().objective_function_value * capacity


def violations(capacity, demands, rates):
    """Constraints that rates break, in exact integers."""
    total = sum(rates)
    for (low, high), rate in zip(demands, rates):
        if not low <= rate <= high:
            yield f"{rate} is not in [{low}, {high}]"
        if low > capacity - (total - rate):
            yield f"the others leave less than {low}"


def check(case):
    """What is wrong with one case."""
    capacity = case["capacity"]
    everyone = [(d["min_bps"], d["max_bps"]) for d in case["demands"]]
    if case["rates"] is None:
        least = sum(low for low, _ in everyone)
        return [] if least > capacity else ["found infeasible, but the minima fit"]
    wrong = [f"best effort has {r}" for d, r in zip(everyone, case["rates"]) if d == (0, 0) and r]
    pairs = [(d, r) for d, r in zip(everyone, case["rates"]) if d != (0, 0)]
    demands, rates = [d for d, _ in pairs], [r for _, r in pairs]
    wrong += violations(capacity, demands, rates)
    if not demands:
        return wrong
    # The solver's own tolerance is about 1e-10 of the capacity in each row.
    slack = len(demands) * (1 + 1e-9 * capacity)
    best = solve(capacity, demands)
    if best is None:
        return wrong + ["the solver finds it infeasible"]
    if abs(best - sum(rates)) > slack:
        wrong.append(f"the rates sum to {sum(rates)}, the solver's to {best}")
    fairest = solve(capacity, demands, total=sum(rates))
    if fairest is None or abs(fairest - min(rates)) > slack:
        wrong.append(f"the smallest rate is {min(rates)}, the solver's {fairest}")
    return wrong


def main():
    counts = {"cases": 0, "infeasible": 0, "wrong": 0}
    for line in sys.stdin:
        case = json.loads(line)
        counts["cases"] += 1
        counts["infeasible"] += case["rates"] is None
        wrong = check(case)
        if wrong:
            counts["wrong"] += 1
            print(line.strip(), *wrong, sep="\n  ")
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    sys.exit(1 if counts["wrong"] or not counts["cases"] else 0)


if __name__ == "__main__":
    main()
