package test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// stateOf is a network's state, with the reason and what was repaired.
func (l *lab) stateOf(network string) (state vnet.State, message, repaired string) {
	l.t.Helper()
	type view struct {
		Network string
		State   vnet.State
		Message string
		Repairs *vnet.Repairs
	}
	for _, v := range decode[[]view](l.t, l.must("leases", "-o", "json")) {
		if v.Network == network && v.State != vnet.Ended {
			if v.Repairs != nil {
				repaired = v.Repairs.Last
			}
			return v.State, v.Message, repaired
		}
	}
	l.t.Fatalf("no network %s", network)
	return "", "", ""
}

// becomes waits until a network has a state with some words in its reason.
func (l *lab) becomes(network string, state vnet.State, words string, within time.Duration) {
	l.t.Helper()
	eventually(l.t, within, func() error {
		if now, message, _ := l.stateOf(network); now != state || !strings.Contains(message, words) {
			return fmt.Errorf("%s is %s: %s", network, now, message)
		}
		return nil
	})
}

// TestRunningMeansReached: the first packet after `up` arrives, in networks of
// every kind of routing.
func TestRunningMeansReached(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	networks := map[string]string{
		"far": `network: far
nodes: [{name: n1, host: h1}, {name: n2, host: h2}]
links: [{ends: [n1, n2], rate: 10Mbit}]
`,
		"lan": `network: lan
nodes: [{name: n1, host: h1}, {name: n2, host: h2}, {name: n3}]
routers: [{name: r}]
switches: [{name: s}]
links: [{ends: [n1, s], rate: 10Mbit}, {ends: [r, s], rate: 10Mbit}, {ends: [n2, r], rate: 10Mbit}, {ends: [n3, s], rate: 10Mbit}]
`,
	}
	if haveFRR() {
		networks["triangle"] = ospfTriangle
	}
	for name, text := range networks {
		l.up(text)
		for _, pair := range [][2]string{{"n1", "n2"}, {"n2", "n1"}} {
			if err := l.pinged(name, pair[0], pair[1]); err != nil {
				t.Errorf("right after up of %s: %v", name, err)
			}
		}
		l.must("down", name)
	}
}

// TestWhatDoesNotCarryIsSaid: a network that does not carry what it promised is
// degraded within 5 s and says why, is usable, and runs again when it carries.
func TestWhatDoesNotCarryIsSaid(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(`network: far
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links: [{ends: [a, b], rate: 10Mbit}]
`)
	l.up(`network: near
nodes: [{name: a, host: h1}, {name: b, host: h1}]
links: [{ends: [a, b], rate: 10Mbit}]
`)
	const soon = 5 * time.Second
	peer := l.peer("h1")
	host := labName(l.run) + "-h1"
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", append([]string{"-n", host}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	ip("route", "add", "blackhole", peer+"/32")
	l.becomes("far", vnet.Degraded, "no route to "+peer, soon)
	if state, message, _ := l.stateOf("near"); state != vnet.Running {
		t.Errorf("its neighbour is %s: %s", state, message)
	}
	l.must("exec", "far/a", "--", "true")
	ip("route", "del", "blackhole", peer+"/32")
	l.becomes("far", vnet.Running, "", soon)

	l.must("exec", "far/a", "--", "ip", "route", "add", "blackhole", l.addressOf("far", "b")+"/32")
	l.becomes("far", vnet.Degraded, "a has no route to b", soon)
	l.must("exec", "far/a", "--", "ip", "route", "del", "blackhole", l.addressOf("far", "b")+"/32")
	l.becomes("far", vnet.Running, "", soon)
}

// TestTenantsOwnSilenceIsSaid: a tenant whose node answers nothing is told so,
// after a repair in it too, and can use their network.
func TestTenantsOwnSilenceIsSaid(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(`network: quiet
nodes: [{name: a, host: h1}, {name: b, host: h1}]
links: [{ends: [a, b], rate: 10Mbit}]
`)
	l.must("exec", "quiet/b", "--", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all")
	// What is changed before its host's agent has found it in place is part of its building.
	eventually(t, 20*time.Second, func() error {
		l.must("exec", "quiet/b", "--", "ip", "link", "set", "eth0", "mtu", "9000")
		if _, _, repaired := l.stateOf("quiet"); !strings.Contains(repaired, "eth0 of b") {
			return fmt.Errorf("what was repaired is told as %q", repaired)
		}
		return nil
	})
	l.becomes("quiet", vnet.Degraded, "b does not answer a", 10*time.Second)
	if out := l.must("leases", "quiet"); !strings.Contains(out, "repairs: ") {
		t.Errorf("no repairs are shown:\n%s", out)
	}
	if v, code := l.check("quiet", "--duration", "100ms"); code != 4 || v.OK || len(v.Unreached) != 1 || !strings.Contains(v.Unreached[0], "b does not answer a") {
		t.Errorf("check ends with %d: %+v", code, v)
	}
	l.must("exec", "quiet/b", "--", "sh", "-c", "echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all")
	l.becomes("quiet", vnet.Running, "", 15*time.Second)
}

// TestRoutersThatDoNotForwardAreSaid: a tenant who turns forwarding off in their
// router is told so, and it stays as they set it.
//
//	h1: a --- r1 --- r2 --- b :h2
func TestRoutersThatDoNotForwardAreSaid(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	networks := map[string]string{"static": "static"}
	if haveFRR() {
		networks["ospf"] = "ospf"
	}
	for name, protocol := range networks {
		l.up("network: " + name + `
nodes: [{name: a, host: h1}, {name: b, host: h2}]
routers: [{name: r1, protocol: ` + protocol + `}, {name: r2, protocol: ` + protocol + `}]
links: [{ends: [a, r1], rate: 5Mbit}, {ends: [r1, r2], rate: 5Mbit}, {ends: [r2, b], rate: 5Mbit}]
`)
		const soon = 5 * time.Second
		for _, setting := range []string{"net.ipv4.ip_forward", "net.ipv4.conf.eth1.forwarding"} {
			l.must("exec", name+"/r2", "--", "sysctl", "-q", "-w", setting+"=0")
			l.becomes(name, vnet.Degraded, "r2 does not forward ("+setting+" is 0)", soon)
			if got := strings.TrimSpace(l.must("exec", name+"/r2", "--", "sysctl", "-n", setting)); got != "0" {
				t.Errorf("%s of a tenant became %s", setting, got)
			}
			l.must("exec", name+"/r2", "--", "sysctl", "-q", "-w", setting+"=1")
			l.becomes(name, vnet.Running, "", soon)
		}
		l.must("down", name)
	}
}

// TestEveryLossHasACause: what a new network sent and what arrived differ by
// what was dropped, by cause.
func TestEveryLossHasACause(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	type view struct {
		Links []struct {
			Name, From string
			Traffic    *struct {
				Packets          uint64
				DeliveredPackets uint64 `json:"delivered_packets"`
				Drops            map[string]uint64
			}
		}
	}
	for i := range 3 {
		name := fmt.Sprint("new", i)
		l.up("network: " + name + "\nnodes: [{name: a, host: h1}, {name: b, host: h2}]\nlinks: [{ends: [a, b], rate: 10Mbit}]\n")
		eventually(t, 5*time.Second, func() error { // what is on its way arrives
			for _, k := range decode[[]view](t, l.must("leases", name, "-o", "json"))[0].Links {
				known := k.Traffic.DeliveredPackets
				for _, n := range k.Traffic.Drops {
					known += n
				}
				if k.Traffic.Packets != known {
					return fmt.Errorf("%s from %s: %+v", k.Name, k.From, *k.Traffic)
				}
			}
			return nil
		})
	}
}

// peer is the address that a host's tunnels lead to.
func (l *lab) peer(host string) string {
	l.t.Helper()
	type entry struct{ Host, Remote string }
	for _, e := range decode[[]entry](l.t, l.must("overlay", host, "-o", "json")) {
		if e.Remote != "" {
			return e.Remote
		}
	}
	l.t.Fatalf("%s has no tunnels", host)
	return ""
}

// addressOf is a node's, as its network's other nodes know it.
func (l *lab) addressOf(network, node string) string {
	l.t.Helper()
	for _, line := range strings.Split(l.must("exec", network+"/"+node, "--", "cat", "/etc/hosts"), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[1] == node {
			return f[0]
		}
	}
	l.t.Fatalf("%s of %s has no address", node, network)
	return ""
}
