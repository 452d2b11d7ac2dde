package test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// crowd fills the tables of neighbours of the machine from inside a node, for a time:
// 10,000 entries of each family, with another hardware address each time, since those
// that do not change for five seconds make way (neigh_forced_gc in Linux).
const crowd = `for v in 1 2; do for i in $(seq 0 39); do for j in $(seq 1 250); do
echo neigh replace 10.200.$i.$j lladdr 02:00:00:0$v:00:01 dev eth0 nud reachable
echo neigh replace 2001:db8:200::$i:$j lladdr 02:00:00:0$v:00:01 dev eth0 nud reachable
done; done > /tmp/crowd.$v; done
end=$(($(date +%s) + 40))
while [ $(date +%s) -lt $end ] && [ ! -e /tmp/enough ]; do for v in 1 2; do ip -force -batch /tmp/crowd.$v 2>/dev/null; done; done
true`

// crowdSize is more than which a table does not get full so.
const crowdSize = 10000

// entered says whether a namespace of this machine beside those of labs can have a
// neighbour more.
func entered(address, prefix string) bool {
	return exec.Command("unshare", "--net", "sh", "-ec", fmt.Sprintf("ip link add d0 type veth peer name d1; ip link set d0 up; ip address add %s1/%s dev d0; ip neigh add %s9 lladdr 02:00:00:00:00:09 dev d0 nud reachable", address, prefix, address)).Run() == nil
}

func entersNone() error {
	if entered("192.0.2.", "24") || entered("2001:db8:9::", "64") {
		return fmt.Errorf("the machine has room for neighbours")
	}
	return nil
}

// A tenant who fills the machine's tables of neighbours from inside of a node takes no
// packet from another's network, which knows its neighbours without them, and a new one
// runs meanwhile.
//
//	alice  x ------ y        bob  a ------ r ------ b
func TestSoakNeighboursFloodTheirTable(t *testing.T) {
	for _, family := range []string{"ipv4", "ipv6"} {
		text, err := os.ReadFile("/proc/sys/net/" + family + "/neigh/default/gc_thresh3")
		if most, wrong := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || wrong != nil || most >= crowdSize {
			t.Skipf("the machine's table of neighbours of %s is not filled: it has %s places, %v", family, text, err)
		}
	}
	l := newLab(t, "demo")
	tenants := l.tenants(alice, bob)
	a, b := tenants[0], tenants[1]
	a.up("network: crowd\nnodes: [{name: x, host: h1}, {name: y, host: h2}]\nlinks: [{ends: [x, y], rate: 10Mbit}]\n")
	network := func(name string) string {
		return fmt.Sprintf(`network: %s
nodes: [{name: a, host: h1}, {name: b, host: h2}]
routers: [{name: r, host: h2}]
links:
  - {name: ar, ends: [{node: a, address: [10.1.0.2/24, "2001:db8:1::2/64"]}, {node: r, address: [10.1.0.1/24, "2001:db8:1::1/64"]}], rate: 10Mbit}
  - {name: rb, ends: [{node: b, address: [10.2.0.2/24, "2001:db8:2::2/64"]}, {node: r, address: [10.2.0.1/24, "2001:db8:2::1/64"]}], rate: 10Mbit}
`, name)
	}
	b.up(network("old"))
	if !entered("192.0.2.", "24") || !entered("2001:db8:9::", "64") {
		t.Skip("the machine has no room for neighbours before it begins")
	}
	ended := make(chan result, 1)
	go func() { ended <- a.shell("crowd/x", crowd) }()
	eventually(t, 20*time.Second, entersNone)
	unharmed := func(network string) {
		t.Helper()
		for _, to := range []string{"10.2.0.2", "2001:db8:2::2"} {
			if r := b.sublet("exec", network+"/a", "--", "ping", "-q", "-n", "-c", "100", "-i", "0.02", "-W", "2", to); r.code != 0 || !strings.Contains(r.out, " 0% packet loss") {
				t.Errorf("%s of %s is not reached without loss: %s%s", to, network, r.out, r.err)
			}
		}
	}
	unharmed("old")
	b.up(network("new"))
	unharmed("new")
	if err := entersNone(); err != nil {
		t.Errorf("the flood ended before the test did: %v", err)
	}
	for _, name := range []string{"old", "new"} {
		if state, message, _ := l.stateOf(name); state != vnet.Running {
			t.Errorf("%s is %s: %s", name, state, message)
		}
	}
	a.must("exec", "crowd/x", "--", "touch", "/tmp/enough")
	if r := <-ended; r.code != 0 {
		t.Errorf("the flood ends with %d: %s%s", r.code, r.out, r.err)
	}
	a.must("down", "crowd")
	eventually(t, 10*time.Second, func() error {
		if entersNone() == nil {
			return fmt.Errorf("the table is full after the flood")
		}
		return nil
	})
	l.settled()
}
