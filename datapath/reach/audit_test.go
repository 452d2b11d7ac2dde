package reach

import (
	"strings"
	"testing"

	"sublet/plan"
)

// A route that goes is found without a packet, and its return is put to the test.
func TestNodesWithoutARoute(t *testing.T) {
	w := newWire(t)
	w.do(plan.Add)
	w.says("")
	w.in("a", "ip route add blackhole 10.0.0.2/32")
	w.audit()
	if got := w.problems(); got != "a has no route to b" {
		t.Errorf("it says %q", got)
	}
	w.in("b", "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all")
	w.in("a", "ip route del blackhole 10.0.0.2/32")
	w.audit()
	w.says("b does not answer a")
}

// A router that does not forward is told of, by the setting that stops it.
func TestRoutersThatDoNotForward(t *testing.T) {
	w := newWire(t)
	w.in("a", "ip link add eth1 type veth peer name own; echo 1 > /proc/sys/net/ipv4/ip_forward")
	item := both()
	item.Pairs[0].Forwards = []string{"eth0", "eth1", "eth7"}
	if err := w.part.Do(w.Context(), plan.Step{Op: plan.Add, Item: item}); err != nil {
		t.Fatal(err)
	}
	w.says("")
	for _, c := range []struct{ set, want string }{
		{"ip_forward 0", "a does not forward (net.ipv4.ip_forward is 0)"},
		{"ip_forward 1", ""},
		{"conf/eth1/forwarding 0", "a does not forward (net.ipv4.conf.eth1.forwarding is 0)"},
		{"conf/eth1/forwarding 1", ""},
		{"conf/own/forwarding 0", ""},
	} {
		name, value, _ := strings.Cut(c.set, " ")
		w.in("a", "echo "+value+" > /proc/sys/net/ipv4/"+name)
		w.part.audit()
		if got := w.problems(); got != c.want {
			t.Errorf("with %s it says %q", c.set, got)
		}
	}
	w.in("a", "echo 0 > /proc/sys/net/ipv4/ip_forward; ip route add blackhole 10.0.0.2/32")
	w.part.audit()
	if got := w.problems(); got != "a does not forward (net.ipv4.ip_forward is 0), a has no route to b" {
		t.Errorf("with two troubles it says %q", got)
	}
}
