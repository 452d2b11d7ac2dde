"""Two floors of hosts, and a slow line between their switches: an example for export.py."""

from mininet.link import TCLink
from mininet.topo import Topo


class Floors(Topo):
    """Hosts at two switches."""

    def build(self, hosts=2, line=10):
        switches = [self.addSwitch(name) for name in ("up", "down")]
        for switch in switches:
            for i in range(hosts):
                self.addLink(self.addHost("%s%d" % (switch, i + 1)), switch, cls=TCLink, bw=50)
        self.addLink(*switches, cls=TCLink, bw=line, delay="2ms")


topos = {"floors": Floors}
