"""The integer program of exact.py for HiGHS. Needs highspy (pip install highspy)."""

import collections

import highspy

EPS = 1e-6


def answer(cpu, links, left, request, mapping, _ours, limit):
    """The least cost, None if there is no embedding, "?" past the limit."""
    program = Program(cpu, links, left, request)
    if mapping:
        program.start(mapping, links, request)
    return program.solve(limit)


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
