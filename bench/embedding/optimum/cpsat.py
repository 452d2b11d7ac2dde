"""The integer program of exact.py as a constraint program, for CP-SAT.

It decides more than HiGHS does: the relaxation of the program is weak, but its
combinatorics are tight once the cost is bounded by that of a known embedding.
Every virtual link takes one hop at least, so what is left above that bounds the
hops of each; and how far two ends may be apart bounds where they can be. The
two solvers share nothing but the numbers of the problem, so each confirms the
other (exact.py --solver both). Needs ortools (pip install ortools).
"""

import collections

from ortools.sat.python import cp_model

FAR = 1 << 20


def answer(cpu, links, left, request, _mapping, ours, limit):
    """The least cost, None if there is no embedding, "?" past the limit. Where
    nothing was found before, any embedding answers.
    """
    best = Constraints(cpu, links, left, request, ours).solve(limit)
    return ours if best is None else best


class Constraints:
    """One request on a residual substrate: what costs less than bound."""

    def __init__(self, cpu, links, left, request, bound=None):
        self.hosts = range(len(cpu))
        self.links = links
        self.left = [int(max(0, x)) for x in left]
        self.demands = [(a, b, int(d)) for a, b, d in request["links"] if d > 0]
        self.floor = sum(d for _, _, d in self.demands)
        self.spare = None if bound is None else int(bound) - 1 - self.floor
        self.impossible = self.spare is not None and self.spare < 0
        self.arcs = [(i, a, b) for i, (a, b, _) in enumerate(links)] + [(i, b, a) for i, (a, b, _) in enumerate(links)]
        self.most = [len(cpu) - 1 if self.spare is None else min(len(cpu) - 1, 1 + self.spare // d) for _, _, d in self.demands]
        if not self.impossible:
            self.distances()
            self.place(cpu, request)
        if not self.impossible:
            self.build()

    def distances(self):
        """Hops between all hosts, over links that have room for a demand."""
        rooms, self.hops = {}, []
        for _, _, d in self.demands:
            if d not in rooms:
                near = collections.defaultdict(list)
                for i, a, b in self.arcs:
                    if self.left[i] >= d:
                        near[a].append(b)
                rooms[d] = [self.breadth(near, h) for h in self.hosts]
            self.hops.append(rooms[d])

    def breadth(self, near, start):
        hops = [FAR] * len(self.hosts)
        hops[start], queue = 0, collections.deque([start])
        while queue:
            at = queue.popleft()
            for to in near[at]:
                if hops[to] == FAR:
                    hops[to] = hops[at] + 1
                    queue.append(to)
        return hops

    def place(self, cpu, request):
        """Hosts of each node, made consistent along each link."""
        around = [0] * len(cpu)
        for i, a, _ in self.arcs:
            around[a] += self.left[i]
        need = [sum(d for a, b, d in self.demands if v in (a, b)) for v in range(len(request["cpu"]))]
        self.can = [{h for h in self.hosts if cpu[h] >= c and around[h] >= need[v]} for v, c in enumerate(request["cpu"])]
        changed = True
        while changed:
            changed = False
            for (a, b, _), hops, most in zip(self.demands, self.hops, self.most):
                for v, u in ((a, b), (b, a)):
                    kept = {h for h in self.can[v] if any(0 < hops[h][g] <= most for g in self.can[u])}
                    changed |= kept != self.can[v]
                    self.can[v] = kept
        self.impossible = any(not can for can in self.can)

    def build(self):
        m = self.model = cp_model.CpModel()
        self.at = [{h: m.new_bool_var("") for h in can} for can in self.can]
        for at in self.at:
            m.add_exactly_one(at.values())
        for h in self.hosts:
            m.add_at_most_one(at[h] for at in self.at if h in at)
        self.count, self.used = [], []
        load = collections.defaultdict(list)
        for k, (a, b, d) in enumerate(self.demands):
            self.route(k, a, b)
            for (i, _, _), x in self.used[k].items():
                load[i].append(d * x)
        for i, terms in load.items():
            m.add(sum(terms) <= self.left[i])
        self.cost = sum(d * n for (_, _, d), n in zip(self.demands, self.count))
        if self.spare is not None:
            m.add(self.cost <= self.floor + self.spare)
        m.minimize(self.cost)

    def route(self, k, a, b):
        """The walk of a link, and how many hops it has."""
        m, hops, most, d = self.model, self.hops[k], self.most[k], self.demands[k][2]
        near = [min((hops[h][u] for h in self.can[a]), default=FAR) for u in self.hosts]
        rest = [min((hops[h][u] for h in self.can[b]), default=FAR) for u in self.hosts]
        used = {(i, u, w): m.new_bool_var("") for i, u, w in self.arcs
                if self.left[i] >= d and near[u] + 1 + rest[w] <= most}
        out, into = collections.defaultdict(list), collections.defaultdict(list)
        for (_, u, w), x in used.items():
            out[u].append(x)
            into[w].append(x)
        for h in self.hosts:
            start, end = self.at[a].get(h, 0), self.at[b].get(h, 0)
            if out[h] or into[h] or h in self.at[a] or h in self.at[b]:
                m.add(sum(out[h]) - sum(into[h]) == start - end)
                m.add(sum(out[h]) + end <= 1)
                m.add(sum(into[h]) + start <= 1)
        n = m.new_int_var(1, most, "")
        m.add(n == sum(used.values()))
        self.used.append(used)
        self.count.append(n)
        self.balls(k, a, b, n)

    def balls(self, k, a, b, n):
        """Ends are no farther apart than the walk has hops."""
        m, hops, most = self.model, self.hops[k], self.most[k]
        within = {}
        farthest = min(most, max(hops[h][g] for h in self.can[a] for g in self.can[b] if hops[h][g] < FAR))
        for j in range(1, farthest):
            within[j] = m.new_bool_var("")
            m.add(n <= j).only_enforce_if(within[j])
            m.add(n > j).only_enforce_if(~within[j])
        for v, u in ((a, b), (b, a)):
            for h, x in self.at[v].items():
                for j in range(1, farthest + 1):
                    ball = [self.at[u][g] for g in self.can[u] if 0 < hops[h][g] <= j]
                    if len(ball) < len(self.can[u]):
                        m.add_bool_or([~x, *ball] + ([~within[j]] if j in within else []))

    def solve(self, limit, workers=1):
        """The least cost below the bound, None if there is none, "?" past the limit."""
        if self.impossible:
            return None
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = limit
        solver.parameters.num_workers = workers
        if self.spare is None:
            solver.parameters.stop_after_first_solution = True
        status = solver.solve(self.model)
        if status == cp_model.INFEASIBLE:
            return None
        if status == cp_model.OPTIMAL or status == cp_model.FEASIBLE and self.spare is None:
            return round(solver.objective_value)
        return "?"
