"""The most that any splitting over any paths gets, by linear programs (HiGHS).

    go run ./bench/multipath/upperbound | python3 bench/multipath/upperbound/bound.py

Columns are gains over single shortest paths, means of all draws: what the
model says of each method, then the most that all connections can get together
(sum), and the same where all get equally much (equal). Needs scipy.
"""
import json
import sys

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, hstack, vstack


def program(graph, targets):
    """Flows of all connections over all directed links, then their rates."""
    hosts = graph["hosts"]
    arcs = [tuple(l) for l in graph["links"]] + [(b, a) for a, b in graph["links"]]
    nodes, links, n = 1 + max(max(a) for a in arcs), len(arcs), len(hosts)
    at, column, value, row = [], [], [], 0
    for k, target in enumerate(targets):
        for v in range(nodes):
            for j, (a, b) in enumerate(arcs):
                if v in (a, b):
                    at.append(row), column.append(k * links + j), value.append(1 if v == a else -1)
            here = (hosts[k] == v) - (hosts[target] == v)
            if here:
                at.append(row), column.append(n * links + k), value.append(-here)
            row += 1
    kept = coo_matrix((value, (at, column)), shape=(row, n * links + n)).tocsr()
    full = coo_matrix((np.ones(n * links), (np.tile(np.arange(links), n), np.arange(n * links))), shape=(links, n * links + n)).tocsr()
    return kept, full, n, links


def bounds(graph, targets):
    kept, full, n, links = program(graph, targets)
    limits = [(0, None)] * (n * links) + [(0, 1)] * n
    cost = np.r_[np.zeros(n * links), -np.ones(n)]
    most = linprog(cost, full, np.ones(links), kept, np.zeros(kept.shape[0]), limits, method="highs")
    each = coo_matrix((np.r_[-np.ones(n), np.ones(n)], (np.tile(np.arange(n), 2), np.r_[n * links + np.arange(n), np.full(n, n * links + n)])), shape=(n, n * links + n + 1))
    wide = vstack([hstack([full, coo_matrix((links, 1))]), each]).tocsr()
    cost = np.r_[np.zeros(n * links + n), -1]
    same = linprog(cost, wide, np.r_[np.ones(links), np.zeros(n)], hstack([kept, coo_matrix((kept.shape[0], 1))]).tocsr(), np.zeros(kept.shape[0]), limits + [(0, 1)], method="highs")
    if most.status or same.status:
        sys.exit(f"{graph['topology']}: {most.message} {same.message}")
    return -most.fun, -same.fun * n


def main():
    graphs = json.load(sys.stdin)
    methods = [m for m in graphs[0]["got"] if m != "single"]
    print("\t".join(["topology", *methods, "sum", "equal"]))
    every = []
    for g in graphs:
        rows = [[*(g["got"][m][d] for m in methods), *bounds(g, t)] / np.float64(g["got"]["single"][d]) for d, t in enumerate(g["draws"])]
        every += rows
        print("\t".join([g["topology"], *(f"{x:.3f}" for x in np.mean(rows, axis=0))]), flush=True)
    print("\t".join(["all", *(f"{x:.3f}" for x in np.mean(every, axis=0))]))


main()
