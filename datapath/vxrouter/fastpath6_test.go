package vxrouter

import (
	"strings"
	"testing"
	"time"

	"sublet/plan"
)

// crossing6 is a crossing with IPv6 that the tenant configured: fd00::/64 at
// n0, fd00:1::/64 at n1.
func crossing6(b *bench) (r plan.VxRouter, n0, n1 string) {
	r, n0, n1 = crossing(b)
	key := r.Key()
	b.ip(key, "-6", "addr", "add", "fd00::1/64", "dev", "eth0", "nodad")
	b.ip(key, "-6", "addr", "add", "fd00:1::1/64", "dev", "eth1", "nodad")
	b.ip(n0, "-6", "addr", "add", "fd00::2/64", "dev", "eth0", "nodad")
	b.ip(n1, "-6", "addr", "add", "fd00:1::2/64", "dev", "eth0", "nodad")
	b.ip(n0, "-6", "route", "add", "default", "via", "fd00::1")
	b.ip(n1, "-6", "route", "add", "default", "via", "fd00:1::1")
	b.poll("an answer", func() bool { return b.pings(n0, "fd00:1::2") })
	b.poll("settled links", func() bool { return !strings.Contains(b.ip(key, "-6", "addr"), "tentative") })
	b.poll("IPv6 on the fast path", func() bool { return b.isFast(r, n0, "fd00:1::2") })
	return r, n0, n1
}

// What a tenant configures of IPv6 takes the fast path, whatever the plan has.
func TestIPv6FastPath(t *testing.T) {
	b := newBench(t)
	r, n0, n1 := crossing6(b)
	if s := b.path(r); s.Why != "" {
		t.Errorf("off: %s", s.Why)
	}
	// By a link-local gateway, too.
	b.ip(n1, "-6", "addr", "add", "fd09::1/128", "dev", "lo")
	local := strings.Fields(b.ip(n1, "-6", "-br", "addr", "show", "dev", "eth0", "scope", "link"))
	gateway, _, _ := strings.Cut(local[len(local)-1], "/")
	b.ip(r.Key(), "-6", "route", "add", "fd09::/64", "via", gateway, "dev", "eth1")
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "fd09::1") })
	// A packet that is too large is the stack's, which says so.
	b.ip(r.Key(), "link", "set", "eth1", "mtu", "1400")
	before := b.path(r).Fallbacks["size"]
	b.poll("a packet left for its size", func() bool {
		b.ip(n0, "-6", "route", "flush", "cache") // or it fragments
		_ = b.pingsSized(n0, "fd00:1::2", "1400")
		return b.path(r).Fallbacks["size"] > before
	})
	if !strings.Contains(b.ip(n0, "-6", "route", "get", "fd00:1::2"), "mtu 1400") {
		t.Error("the sender was not told the MTU")
	}
}

// A route that is gone, blackholed or leads elsewhere is not used from the
// moment the kernel has it, and forwarding that is off is off: the agent need
// not even run.
func TestIPv6IsTheKernelsAtOnce(t *testing.T) {
	b := newBench(t)
	r, n0, n1 := crossing6(b)
	key := r.Key()
	b.ip(n1, "-6", "addr", "add", "fd09::1/128", "dev", "lo")
	b.ip(key, "-6", "route", "add", "fd09::/64", "via", "fd00:1::2", "dev", "eth1")
	for _, c := range []struct {
		name     string
		set, end []string
	}{
		{"blackhole", []string{"ip", "-6", "route", "add", "blackhole", "fd09::1"}, []string{"ip", "-6", "route", "del", "blackhole", "fd09::1"}},
		{"no route", []string{"ip", "-6", "route", "del", "fd09::/64"}, []string{"ip", "-6", "route", "add", "fd09::/64", "via", "fd00:1::2", "dev", "eth1"}},
		{"better metric", []string{"ip", "-6", "route", "add", "fd09::/64", "dev", "eth0", "metric", "1"}, []string{"ip", "-6", "route", "del", "fd09::/64", "metric", "1"}},
		{"rule", []string{"ip", "-6", "rule", "add", "to", "fd09::/16", "prohibit"}, []string{"ip", "-6", "rule", "del", "to", "fd09::/16", "prohibit"}},
		{"forwarding", []string{"sysctl", "-qw", "net.ipv6.conf.all.forwarding=0"}, []string{"sysctl", "-qw", "net.ipv6.conf.all.forwarding=1"}},
		{"address", []string{"ip", "-6", "addr", "add", "fd09::1/128", "dev", "lo"}, []string{"ip", "-6", "addr", "del", "fd09::1/128", "dev", "lo"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.has(r) // an agent
			b.poll("the fast path", func() bool { return b.isFast(r, n0, "fd09::1") })
			before, sent := b.echoes6(n1), b.path(r).Packets
			b.part.Close() // nobody follows now
			b.inside(key, c.set...)
			_ = b.pings(n0, "fd09::1")
			if n := b.echoes6(n1) - before; n != 0 {
				t.Errorf("%d packets went on", n)
			}
			b.inside(key, c.end...)
			if !b.pings(n0, "fd09::1") {
				t.Error("without an agent the stack does not forward")
			}
			b.has(r)
			if n := b.path(r).Packets - sent; n != 0 {
				t.Errorf("%d packets took the fast path", n)
			}
		})
	}
}

// Forwarding off for one family leaves the other alone, and is kept.
func TestFamiliesAreApart(t *testing.T) {
	b := newBench(t)
	r, n0, _ := crossing6(b)
	key := r.Key()
	b.sysctl(key, "net.ipv6.conf.all.forwarding=0")
	b.poll("fall-back", func() bool { return b.path(r).Why == "IPv6: forwarding is off" })
	b.poll("the fast path for IPv4", func() bool { return b.isFast(r, n0, "10.0.0.3") })
	time.Sleep(2 * statePollEvery)
	if b.pings(n0, "fd00:1::2") {
		t.Error("the agent turned forwarding on again")
	}
	b.sysctl(key, "net.ipv6.conf.all.forwarding=1")
	b.poll("IPv6 back", func() bool { return b.isFast(r, n0, "fd00:1::2") })
	b.sysctl(key, "net.ipv4.ip_forward=0")
	b.poll("fall-back", func() bool { return strings.HasPrefix(b.path(r).Why, "IPv4: forwarding is off") })
	b.poll("the fast path for IPv6", func() bool { return b.isFast(r, n0, "fd00:1::2") })
}
