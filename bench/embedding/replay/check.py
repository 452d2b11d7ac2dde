"""Check the mappings of `sublet bench embed` against the instance alone.

    sublet bench embed FILE --mappings OUT -o json > FIGURES
    python3 bench/embedding/replay/check.py FILE OUT [FIGURES]

Replays the events with the mappings of OUT and checks that the nodes of each
request are on different hosts, that each link's path (or, with shares, each of
its paths) is a walk between its ends' hosts, and that no host's processor and
no link's bandwidth is ever exceeded; a link has one capacity for both
directions together. Then it computes all measures anew and compares them with
FIGURES. Prints the measures; exits 1 and says what is wrong otherwise.

Shares nothing with the program but the formats. Needs nothing but Python.
"""

import json
import sys

TOLERANCE = 1e-6


class Wrong(Exception):
    """What is wrong with the mappings or the figures."""


def read_instance(name):
    """Substrate, requests and events of an instance file."""
    with open(name) as file:
        words = iter(file.read().split())

    def number():
        return float(next(words))

    def integer():
        return int(next(words))

    def links(count):
        return [(integer(), integer(), number()) for _ in range(count)]

    assert next(words) == "P"
    nodes, count = integer(), integer()
    cpu = [number() for _ in range(nodes)]
    substrate = (cpu, links(count))
    assert next(words) == "V"
    requests = []
    for _ in range(integer()):
        nodes, count = integer(), integer()
        arrival, lifetime = number(), number()
        requests.append({"arrival": arrival, "lifetime": lifetime,
                         "cpu": [number() for _ in range(nodes)], "links": links(count)})
    assert next(words) == "E"
    events = [(integer(), integer(), number()) for _ in range(integer())]
    return substrate, requests, events


def walk(links, start, path):
    """Where a path of links that begins at start ends."""
    at, used = start, set()
    for index in path:
        a, b, _ = links[index]
        if at not in (a, b):
            raise Wrong(f"link {index} does not touch node {at} in path {path}")
        if index in used:
            raise Wrong(f"path {path} takes link {index} twice")
        used.add(index)
        at = b if at == a else a
    return at


def parts(link):
    """A link's paths with their shares; a plain path has all."""
    if link and isinstance(link[0], dict):
        return [(part["path"], part["share"]) for part in link]
    return [(link, 1.0)]


def loads(substrate, request, mapping):
    """What a mapping takes of hosts and of links, and its cost."""
    cpu, links = substrate
    nodes = mapping["nodes"]
    if len(nodes) != len(request["cpu"]) or len(mapping["links"]) != len(request["links"]):
        raise Wrong("not as many nodes or links as were asked for")
    if len(set(nodes)) != len(nodes) or not all(0 <= n < len(cpu) for n in nodes):
        raise Wrong(f"nodes {nodes} are not different hosts")
    hosts = dict(zip(nodes, request["cpu"]))
    cost, taken = sum(request["cpu"]), {}
    for (a, b, demand), link in zip(request["links"], mapping["links"]):
        total = 0.0
        for path, share in parts(link):
            if share <= 0 or not path:
                raise Wrong(f"a path {path} has the share {share}")
            if walk(links, nodes[a], path) != nodes[b]:
                raise Wrong(f"path {path} does not lead from {nodes[a]} to {nodes[b]}")
            total += share
            cost += demand * share * len(path)
            for index in path:
                taken[index] = taken.get(index, 0.0) + demand * share
        if abs(total - 1) > TOLERANCE:
            raise Wrong(f"the shares of a link sum to {total}")
    return hosts, taken, cost


def replay(substrate, requests, events, mappings):
    """Replay the events; returns the measures."""
    cpu, link = list(substrate[0]), [capacity for _, _, capacity in substrate[1]]
    held, accepted, arrivals, last = {}, 0, 0, 0.0
    revenue = total_cost = long_term = 0.0
    for kind, index, time in events:
        if kind == 0:
            hosts, taken = held.pop(index, ({}, {}))
            for host, amount in hosts.items():
                cpu[host] += amount
            for i, amount in taken.items():
                link[i] += amount
            continue
        arrivals, last = arrivals + 1, time
        if index not in mappings:
            continue
        request = requests[index]
        try:
            hosts, taken, cost = loads(substrate, request, mappings[index])
            for host, amount in hosts.items():
                cpu[host] -= amount
                if cpu[host] < -TOLERANCE:
                    raise Wrong(f"host {host} is over-booked by {-cpu[host]}")
            for i, amount in taken.items():
                link[i] -= amount
                if link[i] < -TOLERANCE:
                    raise Wrong(f"link {i} is over-booked by {-link[i]}")
        except Wrong as wrong:
            raise Wrong(f"request {index}: {wrong}") from None
        held[index] = hosts, taken
        accepted += 1
        own = sum(request["cpu"]) + sum(demand for _, _, demand in request["links"])
        revenue, total_cost = revenue + own, total_cost + cost
        long_term += own * request["lifetime"]
    if accepted != len(mappings):
        raise Wrong(f"{len(mappings)} mappings, of which {accepted} are of requests that arrive")
    return {"accepted": accepted, "requests": arrivals,
            "acceptance": accepted / arrivals if arrivals else 0,
            "revenue_cost": revenue / total_cost if total_cost else 0,
            "long_term_revenue": long_term / last if last else 0}


def main():
    substrate, requests, events = read_instance(sys.argv[1])
    mappings = {}
    with open(sys.argv[2]) as file:
        for line in file:
            mapping = json.loads(line)
            if mapping["id"] in mappings:
                raise Wrong(f"request {mapping['id']} has two mappings")
            mappings[mapping["id"]] = mapping
    measures = replay(substrate, requests, events, mappings)
    if len(sys.argv) > 3:
        with open(sys.argv[3]) as file:
            printed = json.load(file)
        for name, value in measures.items():
            if abs(printed[name] - value) > TOLERANCE * max(1, abs(value)):
                raise Wrong(f"{name} is printed as {printed[name]}, but is {value}")
    print(json.dumps(measures))


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"check: {wrong}")
