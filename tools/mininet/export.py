#!/usr/bin/env python3
"""Write a topology of Mininet as a file that `sublet import` and `sublet up` read.

    export.py FILE.py [TOPOLOGY[,ARGUMENT...]] [-o out.json]
    export.py --run FILE.py [-o out.json] [-- ARGUMENT...]

FILE.py is what `mn --custom` takes: it is run, so run it only if you trust it.
TOPOLOGY is an entry of its dictionary `topos`, or a class of it that is made of
Topo; it can be left out where there is only one. Arguments are written as for
`mn --topo`: linear,3 or tree,depth=2. No network is started and root is not
needed. Where Mininet is not installed, a stand-in for its Topo class is used.

--run is for scripts that make a network by themselves (net = Mininet(...)): the
script is run up to where it would start the network, as it is then.
"""

import argparse
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import os
import runpy
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
        if spec.name == "mininet.net":
            module.Mininet = Network
        if spec.name == "mininet.util":
            module.irange = lambda first, last: range(first, last + 1)
        return module

    def exec_module(self, module):
        pass


def topo_class():
    """Mininet's Topo, or the stand-in for it."""
    if importlib.util.find_spec("mininet") is None:
        sys.meta_path.append(StandInFinder())
        told("Mininet is not installed: its classes are stood in for")
    from mininet.topo import Topo as found
    return found


class Started(BaseException):
    """Raised where a script would start its network; no script handles it."""


class Machine:
    """Stand-in for a node that a script has made: it takes commands and does nothing."""

    def __init__(self, network, name):
        self.network, self.name = network, name

    def __str__(self):
        return self.name

    def setIP(self, ip, prefixLen=8, **_):
        info = self.network._nodes.get(self.name, {})
        info["ip"] = ip if "/" in ip else "%s/%s" % (ip, prefixLen)

    def start(self, *_args, **_params):
        raise Started(self.network)

    def __getattr__(self, word):
        if word.startswith("__"):
            raise AttributeError(word)
        def left_out(*args, **_params):
            told("%s: %s is left out" % (self.name, " ".join([word] + [str(a) for a in args])))
            return ""
        return left_out


def kind(given):
    """Options that a class given to a network stands for, also one with arguments bound."""
    if isinstance(given, functools.partial):
        return {**given.keywords, "cls": given.func}
    return {"cls": given} if given else {}


class Network(Topo):
    """Stand-in for mininet.net.Mininet that takes down what a script makes."""

    def __init__(self, topo=None, switch=None, host=None, link=None, controller=None, **_):
        super().__init__(hopts=kind(host))
        self.lopts = kind(link)
        for name in topo.nodes(sort=False) if topo else ():
            info = dict(topo.nodeInfo(name))
            (self.addSwitch if info.pop("isSwitch", False) else self.addHost)(name, **info)
        for *_, info in topo.links(withInfo=True) if topo else ():
            info = dict(info)
            self.addLink(info.pop("node1"), info.pop("node2"), **info)

    def addNode(self, name, **opts):
        super().addNode(name, **opts)
        return Machine(self, name)

    def addHost(self, name, **opts):
        return super().addHost(name, **{**self.hopts, **opts})

    def addLink(self, node1, node2, **opts):
        super().addLink(str(node1), str(node2), **{**self.lopts, **opts})
        made = Machine(self, "link %s-%s" % (node1, node2))
        made.intf1, made.intf2 = Machine(self, "%s at %s" % (node1, node2)), Machine(self, "%s at %s" % (node2, node1))
        return made

    def addController(self, name="c0", *_args, **_params):
        told("controller %s is left out: switches learn" % name)
        return Machine(self, str(name))

    def addNAT(self, name="nat0", connect=True, **opts):
        switches = self.switches
        made = self.addHost(name, **{**opts, "cls": "NAT"})
        if connect and switches:
            self.addLink(name, switches[0])
        return made

    def get(self, *names):
        found = [Machine(self, name) for name in names]
        return found[0] if len(found) == 1 else found

    getNodeByName = get

    def __getitem__(self, name):
        return self.get(name)

    @property
    def hosts(self):
        return [Machine(self, n) for n in self.nodes(sort=False) if not self.isSwitch(n)]

    @property
    def switches(self):
        return [Machine(self, n) for n in self.nodes(sort=False) if self.isSwitch(n)]

    @classmethod
    def init(cls):
        """Of the machine, which is not touched."""

    def build(self, *_, **__):
        """Of the topology, which is complete."""

    def start(self, *_, **__):
        raise Started(self)

    run = interact = start


def told(text):
    print("export.py: note: %s" % text, file=sys.stderr)


def made_by(path, words):
    """The network that a script starts, or would have."""
    import mininet.net
    mininet.net.Mininet, sys.argv = Network, [path] + words
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        left = runpy.run_path(path, run_name="__main__")
    except Started as started:
        return started.args[0]
    networks = [value for value in left.values() if isinstance(value, Network)]
    if not networks:
        sys.exit("export.py: %s starts no network of the class Mininet" % path)
    return networks[0]


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
        sys.exit("export.py: choose a topology: %s" % (", ".join(sorted(known)) or "the file has none, in topos or made of Topo: --run takes what a script starts"))
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
    parser.add_argument("--run", action="store_true", help="run a script up to where it starts its network")
    own, script = sys.argv[1:], []
    if "--run" in own and "--" in own:
        own, script = own[:own.index("--")], own[own.index("--") + 1:]
    args = parser.parse_args(own)
    base = topo_class()
    if args.run:
        name, topo = os.path.basename(args.file).split(".")[0], made_by(args.file, script)
    else:
        name, topo = make(load(args.file), base, args.topology)
    text = json.dumps(export(name, topo), indent=1) + "\n"
    if args.output == "-":
        sys.stdout.write(text)
    else:
        with open(args.output, "w", encoding="utf-8") as out:
            out.write(text)


if __name__ == "__main__":
    main()
