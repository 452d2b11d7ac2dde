package bridge

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// local is station i's link-local address.
func local(i int) string { return vnet.LinkLocal(mac(i)).String() }

// shows polls for what ip(8) says of station i's addresses.
func (b *bench) shows(i int, what string, there bool) bool {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		out, err := exec.Command("nsenter", "--net="+b.node(i), "ip", "-6", "addr", "show", "dev", "eth0").Output()
		b.check(err)
		if strings.Contains(string(out), what) == there {
			return true
		}
	}
	return false
}

func (b *bench) reachesLocal(from, to int) bool {
	for range 10 {
		if exec.Command("nsenter", "--net="+b.node(from), "ping", "-6", "-c1", "-W1", local(to)+"%eth0").Run() == nil {
			return true
		}
	}
	return false
}

// Stations whose ports may not flood at all find each other by their
// link-local addresses: the switch answers for them, and tells one that wants
// another's address that it is taken.
func TestNeighboursAreDiscovered(t *testing.T) {
	b := newBench(t, 3)
	for i := range b.ports {
		if !b.shows(i, "tentative", false) || !b.shows(i, local(i), true) {
			t.Fatalf("station %d has no link-local address", i)
		}
		b.ports[i].Broadcast = 0
		b.do(plan.Set, b.ports[i])
	}
	b.ports[2].To = []string{"eth1"}
	b.do(plan.Set, b.ports[2])
	for _, pair := range [][2]int{{0, 1}, {1, 0}, {2, 1}} {
		if !b.reachesLocal(pair[0], pair[1]) {
			t.Errorf("%d does not reach %d", pair[0], pair[1])
		}
	}
	if c := b.counts(0); c.Answers == 0 {
		t.Errorf("port 0 counts %+v", c)
	}
	if exec.Command("nsenter", "--net="+b.node(2), "ping", "-6", "-c1", "-W1", local(0)+"%eth0").Run() == nil {
		t.Error("isolated ports speak")
	}
	b.run(b.node(0), "ip", "-6", "addr", "add", local(1)+"/64", "dev", "eth0")
	if !b.shows(0, "dadfailed", true) {
		t.Error("a station was not told that its address is taken")
	}
}

// A station that says that it is a router is answered for as one.
func TestRoutersAreToldApart(t *testing.T) {
	b := newBench(t, 2)
	flags := func() string {
		out, err := exec.Command("nsenter", "--net="+b.node(0), "ip", "-6", "neigh", "show", local(1), "dev", "eth0").Output()
		b.check(err)
		return string(out)
	}
	if !b.shows(1, "tentative", false) || !b.shows(0, "tentative", false) || !b.reachesLocal(0, 1) {
		t.Fatal("no way")
	}
	if strings.Contains(flags(), "router") {
		t.Errorf("a station is taken for a router: %s", flags())
	}
	b.run(b.node(1), "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
	for end := time.Now().Add(20 * time.Second); !strings.Contains(flags(), "router"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a router is not told apart: %s", flags())
		}
		// The neighbour makes sure of it, unicast, and the switch listens.
		b.run(b.node(0), "ip", "-6", "neigh", "change", local(1), "lladdr", mac(1).String(), "dev", "eth0", "nud", "probe")
	}
	b.run(b.node(0), "ip", "-6", "neigh", "del", local(1), "dev", "eth0")
	before := b.counts(0).Answers
	if !b.reachesLocal(0, 1) || !strings.Contains(flags(), "router") || b.counts(0).Answers == before {
		t.Errorf("the switch answers for a router as for a station: %s", flags())
	}
}
