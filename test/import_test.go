package test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestContainerlabTopologyRuns: a topology of containerlab is leased as it is. Its
// interfaces have their names, its commands have run in order when the network
// runs, what they set routes, and it comes back from "get -o clab".
func TestContainerlabTopologyRuns(t *testing.T) {
	t.Parallel()
	l := newLab(t, "star:2")
	l.must("up", "../examples/import/routing.clab.yml")
	l.answersTo("routing", "pc1", "192.168.2.10")
	if out := l.must("exec", "routing/r1", "--", "ip", "route", "show", "192.168.2.0/24"); !strings.Contains(out, "via 10.0.12.2 dev eth2") {
		t.Errorf("the route of exec: %q", out)
	}
	if out := l.must("exec", "routing/pc1", "--", "ip", "route", "show", "default"); !strings.Contains(out, "via 192.168.1.1 dev eth1") {
		t.Errorf("the default route of exec: %q", out)
	}
	eventually(t, 5*time.Second, func() error {
		if r := l.sublet("exec", "routing/pc1", "--", "python3", "-c", "import urllib.request; urllib.request.urlopen('http://192.168.2.10/', timeout=2)"); r.code != 0 {
			return fmt.Errorf("fetch a page: %s", r.err)
		}
		return nil
	})
	if out := l.must("logs", "routing/r1"); !strings.Contains(out, "exec: 3 ran") || strings.Contains(out, "exit code") {
		t.Errorf("what exec wrote: %q", out)
	}
	back := l.file("back.clab.yml", l.must("get", "routing", "-o", "clab", "--lossy"))
	if out := l.must("import", back, "--lossy"); !strings.Contains(out, "interface: eth2, address: 10.0.12.1/30") {
		t.Errorf("what came back:\n%s", out)
	}
	l.settled()
}

// TestContainerlabRoutersOfFRR: routers of FRR's image learn routes from one another
// by the files that the topology binds, also without the image.
func TestContainerlabRoutersOfFRR(t *testing.T) {
	t.Parallel()
	l := newLab(t, "star:1")
	const config = "frr version 7.5.1_git\ninterface eth1\n ip address 192.168.1.%[1]d/24\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n!\ninterface eth3\n ip address 192.168.1%[1]d.1/24\n!\n" +
		"router ospf\n network 192.168.1.0/24 area 0\n network 192.168.1%[1]d.0/24 area 0\n!\nline vty\n!\n"
	l.file("r1.conf", fmt.Sprintf(config, 1))
	l.file("r2.conf", fmt.Sprintf(config, 2))
	lab := l.file("frr.clab.yml", `name: frr
topology:
  defaults: {kind: linux, image: "frrouting/frr:v7.5.1"}
  nodes: {r1: {binds: ["r1.conf:/etc/frr/frr.conf"]}, r2: {binds: ["r2.conf:/etc/frr/frr.conf"]}, a: {image: x}, b: {image: x}}
  links: [{endpoints: ["r1:eth1", "r2:eth1"]}, {endpoints: ["a:eth1", "r1:eth3"]}, {endpoints: ["b:eth1", "r2:eth3"]}]
`)
	l.must("up", l.file("frr.yaml", l.must("import", "--no-images", lab)))
	eventually(t, 60*time.Second, func() error {
		if out := l.sublet("exec", "frr/r1", "--", "ip", "route", "show", "192.168.12.0/24").out; !strings.Contains(out, "via 192.168.1.2 dev eth1") {
			return fmt.Errorf("the route of OSPF: %q", out)
		}
		return nil
	})
	l.settled()
}

// A router between subnets of Mininet's, whose addresses its nodes and links state.
const routerOfMininet = `{"mininet": 1, "name": "subnets", "nodes": [
 {"name": "r0", "cls": "LinuxRouter", "ip": "192.168.1.1/24"}, {"name": "h1", "ip": "192.168.1.100/24", "defaultRoute": "via 192.168.1.1"},
 {"name": "h2", "ip": "172.16.0.100/12", "defaultRoute": "via 172.16.0.1"}, {"name": "s1", "switch": true}, {"name": "s2", "switch": true}],
"links": [{"node1": "s1", "node2": "r0", "intfName2": "r0-eth1", "params2": {"ip": "192.168.1.1/24"}},
 {"node1": "s2", "node2": "r0", "intfName2": "r0-eth2", "params2": {"ip": "172.16.0.1/12"}}, {"node1": "h1", "node2": "s1"}, {"node1": "h2", "node2": "s2"}]}`

// TestMininetTopologyRuns: its nodes have the addresses and interfaces that it
// states, and reach each other by them.
func TestMininetTopologyRuns(t *testing.T) {
	t.Parallel()
	l := newLab(t, "star:2")
	l.up(l.must("import", "--lossy", l.file("subnets.json", routerOfMininet)))
	l.answersTo("subnets", "h1", "172.16.0.100")
	if out := l.must("exec", "subnets/r0", "--", "ip", "-o", "-4", "address", "show", "dev", "r0-eth2"); !strings.Contains(out, "172.16.0.1/12") {
		t.Errorf("r0-eth2: %q", out)
	}
	l.settled()
}
