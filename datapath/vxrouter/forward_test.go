package vxrouter

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"sublet/plan"
)

// setting reads a router's.
func (b *bench) setting(key, name string) string {
	b.Helper()
	out, err := exec.Command("nsenter", "--net="+b.host.Path(key), "sysctl", "-n", name).Output()
	b.check(err)
	return strings.TrimSpace(string(out))
}

// A tenant who turns forwarding off inside their router has it off from then on:
// no packet takes the fast path, though nobody tells the program, the agent
// does not take it for damage, and what it sets later does not turn it on.
func TestTenantsForwardingStays(t *testing.T) {
	b := newBench(t)
	r, n0, _ := crossing(b)
	key := r.Key()
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.0.0.3") })
	b.part.Close() // nobody tells the program
	b.sysctl(key, "net.ipv4.ip_forward=0")
	if b.pings(n0, "10.0.0.3") {
		t.Error("a router that does not forward forwards")
	}
	b.has(r) // an agent comes
	b.poll("fall-back", func() bool { return strings.Contains(b.path(r).Why, "forwarding is off") })
	r.Routes = []plan.Route{route("10.7.0.0/16", "10.0.0.3", "eth1")}
	b.do(plan.Set, r)
	b.has(r)
	time.Sleep(2 * statePollEvery)
	before := b.path(r).Packets
	if b.pings(n0, "10.0.0.3") || b.path(r).Packets != before {
		t.Error("the agent turned forwarding on again")
	}
	for name, want := range map[string]string{"net.ipv4.ip_forward": "0", "net.ipv6.conf.all.forwarding": "1"} {
		if have := b.setting(key, name); have != want {
			t.Errorf("%s is %s, want %s", name, have, want)
		}
	}
	b.sysctl(key, "net.ipv4.ip_forward=1")
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.0.0.3") })
}

// Other settings of theirs stay too; a router whose mark is gone is made anew.
func TestTenantsSettingsStay(t *testing.T) {
	b := newBench(t)
	r, _, _ := crossing(b)
	key := r.Key()
	b.sysctl(key, "net.ipv4.conf.all.rp_filter=1")
	b.sysctl(key, "net.ipv6.conf.all.forwarding=0")
	b.do(plan.Set, r)
	if b.setting(key, "net.ipv4.conf.all.rp_filter") != "1" || b.setting(key, "net.ipv6.conf.all.forwarding") != "0" {
		t.Error("the agent changed what its tenant set")
	}
	b.sysctl(key, "net.ipv4.conf.all.tag=0")
	b.has()
	b.do(plan.Add, r)
	b.has(r)
	if b.setting(key, "net.ipv6.conf.all.forwarding") != "1" {
		t.Error("a router made anew does not forward")
	}
	end := r
	end.Forward = false
	b.do(plan.Set, end)
	b.has(end)
	if b.setting(key, "net.ipv4.ip_forward") != "0" {
		t.Error("an end node forwards")
	}
}
