package overlay

import (
	"fmt"
	"net/netip"
	"testing"
)

// Every protocol carries frames both ways, over IPv4 and IPv6, and one takes
// another's place in an entry.
func TestTunnelsCarry(t *testing.T) {
	l := newLab(t)
	for i, h := range l.hosts { // address resolution does not pass tunnels for IP
		l.ip(h.node, "neigh", "replace", inner(1-i), "lladdr", mac(1-i), "dev", "eth0", "nud", "permanent")
		l.ip(h.node, "neigh", "replace", inner6(1-i), "lladdr", mac(1-i), "dev", "eth0", "nud", "permanent")
	}
	for _, p := range protocols {
		for name, under := range map[string]func(int) netip.Addr{"4": under4, "6": under6} {
			t.Run(fmt.Sprintf("%s over IPv%s", p.name, name), func(t *testing.T) {
				l.t = t
				l.tunnel(p.name, under)
				l.ping(inner(1))
				l.ping(inner6(1), "-6")
				l.ping(inner(1), "-s", "1400", "-Q", "2")
			})
		}
	}
}

// Address resolution and other frames that are not IP pass tunnels for Ethernet.
func TestAddressResolutionPasses(t *testing.T) {
	l := newLab(t)
	l.tunnel("", under4)
	l.ping(inner(1))
	l.ping(inner6(1), "-6")
}
