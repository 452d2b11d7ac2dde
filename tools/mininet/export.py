#!/usr/bin/env python3
"""Write a topology of Mininet as a file that `sublet import` and `sublet up` read.

    export.py FILE.py [TOPOLOGY[,ARGUMENT...]] [-o out.json]

FILE.py is what `mn --custom` takes: it is run, so run it only if you trust it.
TOPOLOGY is an entry of its dictionary `topos`, or a class of it that is made of
Topo; it can be left out where there is only one. Arguments are written as for
`mn --topo`: linear,3 or tree,depth=2. No network is started and root is not
needed. Where Mininet is not installed, a stand-in for its Topo class is used.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import os
import sys
import types


class Topo:
    """Stand-in for mininet.topo.Topo: what topologies are built with."""

    def __init__(self, *args, **params):
        self.hopts = params.pop("hopts", {})
        self.sopts = params.pop("sopts", {})
        self.lopts = params.pop("lopts", {})
        self._nodes, self._links, self._ports = {}, [], {}
        self.build(*args, **params)

    def build(self, *args, **params):
        pass

    def addNode(self, name, **opts):
        self._nodes[name] = opts
        return name

    def addHost(self, name, **opts):
        return self.addNode(name, **(opts or self.hopts))

    def addSwitch(self, name, **opts):
        return self.addNode(name, isSwitch=True, **(opts or self.sopts))

    def addLink(self, node1, node2, port1=None, port2=None, key=None, **opts):
        for node in (node1, node2):
            self._nodes.setdefault(node, {})
        opts = dict(opts or self.lopts)
        port1, port2 = self._port(node1, port1), self._port(node2, port2)
        self._links.append((node1, node2, dict(opts, node1=node1, node2=node2, port1=port1, port2=port2)))
        return len(self._links)

    def _port(self, node, port):
        taken = self._ports.setdefault(node, [])
        port = len(taken) + self.isSwitch(node) if port is None else port
        taken.append(port)
        return port

    def isSwitch(self, name):
        return self._nodes[name].get("isSwitch", False)

    def nodeInfo(self, name):
        return self._nodes[name]

    def nodes(self, sort=True):
        return sorted(self._nodes) if sort else list(self._nodes)

    def hosts(self, sort=True):
        return [n for n in self.nodes(sort) if not self.isSwitch(n)]

    def switches(self, sort=True):
        return [n for n in self.nodes(sort) if self.isSwitch(n)]

    def links(self, sort=False, withKeys=False, withInfo=False):
        found = [(a, b) + ((key,) if withKeys else ()) + ((info,) if withInfo else ())
                 for key, (a, b, info) in enumerate(self._links, 1)]
        return sorted(found, key=lambda link: link[:2]) if sort else found


class StandIn(types.ModuleType):
    """A module of Mininet whose every name is a class that does nothing."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name.endswith("Topo"):
            raise AttributeError("%s.%s needs Mininet: install it" % (self.__name__, name))
        setattr(self, name, type(name, (), {"__module__": self.__name__}))
        return getattr(self, name)


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for each module of Mininet."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "mininet":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = StandIn(spec.name)
        if spec.name == "mininet.topo":
            module.Topo = Topo
        if spec.name == "mininet.util":
            module.irange = lambda first, last: range(first, last + 1)
        return module

    def exec_module(self, module):
        pass


def topo_class():
    """Mininet's Topo, or the stand-in for it."""
    if importlib.util.find_spec("mininet") is None:
        sys.meta_path.append(StandInFinder())
        print("export.py: note: Mininet is not installed: its Topo class is stood in for", file=sys.stderr)
    from mininet.topo import Topo as found
    return found


def load(path):
    """The module that a file is, run under a name other than __main__."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("custom_topology", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def choices(module, base):
    """What a module registers as topologies, and its classes that are some."""
    classes = {name: value for name, value in vars(module).items()
               if inspect.isclass(value) and issubclass(value, base) and value.__module__ == module.__name__}
    return dict(getattr(module, "topos", {})), classes


def number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def make(module, base, wanted):
    """The topology that is wanted, by the name that it has."""
    registered, classes = choices(module, base)
    usual, known = registered or classes, {**classes, **registered}
    name, *words = wanted.split(",") if wanted else [next(iter(usual), "")]
    if name not in known or not wanted and len(usual) > 1:
        sys.exit("export.py: choose a topology: %s" % (", ".join(sorted(known)) or "the file has none, in topos or made of Topo"))
    named = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        return name, known[name](*[number(w) for w in words if "=" not in w], **{k: number(v) for k, v in named.items()})
    except TypeError as problem:
        sys.exit("export.py: %s: %s: state arguments as %s,ARGUMENT" % (name, problem, name))


def plain(value):
    """A value that JSON has: classes by name, what else there is as text."""
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return getattr(value, "__name__", None) or str(value)


def export(name, topo):
    """What a topology consists of, in Mininet's words."""
    def options(info, *known):
        return {key: plain(value) for key, value in info.items() if key not in known}
    return {
        "mininet": 1,
        "name": name,
        "nodes": [dict(options(topo.nodeInfo(n), "isSwitch"), name=n, switch=topo.isSwitch(n)) for n in topo.nodes(sort=False)],
        "links": [options(info) for *_, info in topo.links(withInfo=True)],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("topology", nargs="?", default="")
    parser.add_argument("-o", "--output", default="-")
    args = parser.parse_args()
    base = topo_class()
    name, topo = make(load(args.file), base, args.topology)
    text = json.dumps(export(name, topo), indent=1) + "\n"
    if args.output == "-":
        sys.stdout.write(text)
    else:
        with open(args.output, "w", encoding="utf-8") as out:
            out.write(text)


if __name__ == "__main__":
    main()
