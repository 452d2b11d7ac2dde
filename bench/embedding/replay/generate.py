"""Generate an unseen instance of the benchmark's kind.

    python3 bench/embedding/replay/generate.py --seed 7 > wx100_7.txt
    python3 bench/embedding/replay/generate.py --seed 7 --like geant_0.txt --rate 0.016 > geant_7.txt
    python3 bench/embedding/replay/generate.py --seed 7 --like brain_0.txt --rate 0.004 > brain_7.txt

The substrate is a connected Waxman graph of 100 nodes (alpha 0.5, beta 0.2,
about 500 links), or the graph of another instance with fresh capacities.
Processors and bandwidth are integers in 50..100. Requests arrive as a Poisson
process, have 2..10 nodes joined with probability 0.5 (drawn again until
connected), processors 0..20, bandwidth 0..50 and an exponential lifetime of
mean 500.
"""

import argparse
import math
import random


def connected(nodes, links):
    """Whether links join all nodes."""
    parent = list(range(nodes))

    def root(a):
        while parent[a] != a:
            a = parent[a]
        return a

    for a, b in links:
        parent[root(a)] = root(b)
    return len({root(a) for a in range(nodes)}) == 1


def waxman(rng, nodes, alpha, beta):
    """The links of a connected Waxman graph in the unit square."""
    while True:
        place = [(rng.random(), rng.random()) for _ in range(nodes)]
        far = max(math.dist(a, b) for a in place for b in place)
        links = [(a, b) for a in range(nodes) for b in range(a + 1, nodes)
                 if rng.random() < alpha * math.exp(-math.dist(place[a], place[b]) / (beta * far))]
        if connected(nodes, links):
            return links


def graph_of(name):
    """Nodes and links of an instance's substrate."""
    with open(name) as file:
        words = file.read().split()
    nodes, count = int(words[1]), int(words[2])
    rest = words[3 + nodes:3 + nodes + 3 * count]
    return nodes, [(int(rest[i]), int(rest[i + 1])) for i in range(0, len(rest), 3)]


def topology(rng):
    """Nodes and links of a request."""
    nodes = rng.randint(2, 10)
    while True:
        links = [(a, b) for a in range(nodes) for b in range(a + 1, nodes) if rng.random() < 0.5]
        if connected(nodes, links):
            return nodes, links


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--like", help="take the substrate's graph from this instance")
    parser.add_argument("--nodes", type=int, default=100, help="of the Waxman substrate")
    parser.add_argument("--rate", type=float, default=0.16, help="of arrivals")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--lifetime", type=float, default=500, help="mean")
    opt = parser.parse_args()
    rng = random.Random(opt.seed)

    if opt.like:
        nodes, links = graph_of(opt.like)
    else:
        nodes, links = opt.nodes, waxman(rng, opt.nodes, 0.5, 0.2)
    print("P", nodes, len(links))
    for _ in range(nodes):
        print(rng.randint(50, 100))
    for a, b in links:
        print(a, b, rng.randint(50, 100))

    print("V", opt.requests)
    time, events = 0.0, []
    for request in range(opt.requests):
        time += rng.expovariate(opt.rate)
        lifetime = rng.expovariate(1 / opt.lifetime)
        nodes, links = topology(rng)
        print(nodes, len(links), time, lifetime)
        for _ in range(nodes):
            print(rng.randint(0, 20))
        for a, b in links:
            print(a, b, rng.randint(0, 50))
        events += [(time, 1, request), (time + lifetime, 0, request)]

    print("E", len(events))
    for time, kind, request in sorted(events, key=lambda e: (e[0], -e[1])):
        print(kind, request, time)


if __name__ == "__main__":
    main()
