package vxrouter

import (
	"testing"

	"sublet/datapath/kernel"
)

// A tenant may give devices any number; only the ends of their own lease's links
// have slots, however they number others.
func TestOnlyLinksAreChained(t *testing.T) {
	b := newBench(t)
	router, fabric, own := b.node("r"), b.node("f"), b.node("x")
	b.ip(fabric, "link", "add", "l0a", "index", "1048581", "type", "veth", "peer", "name", "eth0", "netns", b.host.Path(router))
	b.ip(own, "link", "add", "l0a", "index", "1048582", "type", "veth", "peer", "name", "eth1", "netns", b.host.Path(router))
	b.ip(router, "link", "add", "eth2", "type", "veth", "peer", "name", "eth3", "index", "1048583")
	for _, device := range []string{"eth0", "eth1", "eth2", "eth3"} {
		b.ip(router, "link", "set", device, "up")
	}
	ns, err := b.host.Open(router)
	b.check(err)
	defer ns.Close()
	links, err := b.host.Open(fabric)
	b.check(err)
	defer links.Close()
	c, err := kernel.DialIn(ns)
	b.check(err)
	defer c.Close()
	id, err := c.NamespaceID(links.Fd())
	b.check(err)
	slots := func(fabric int) map[string]uint32 {
		ports, _, err := readLinks(c, fabric)
		b.check(err)
		have := make(map[string]uint32)
		for _, p := range ports {
			have[p.name] = p.slot
		}
		return have
	}
	if have := slots(id); len(have) != 2 || have["eth0"] != 5 || have["eth1"] != 0 {
		t.Errorf("slots %v, want 5 for eth0 and none for eth1", have)
	}
	if have := slots(-1); have["eth0"] != 0 || have["eth1"] != 0 {
		t.Errorf("without a fabric: %v", have)
	}
}
