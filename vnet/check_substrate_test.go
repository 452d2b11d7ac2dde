package vnet

import (
	"net/netip"
	"testing"
)

// wired is two hosts on a switch.
func wired() Substrate {
	return Substrate{
		Hosts:    []SubstrateNode{{Name: "h1", CPU: 4 * Core, Memory: 4 * GiB}, {Name: "h2"}},
		Switches: []string{"s1"},
		Links: []SubstrateLink{
			{Ends: [2]string{"h1", "s1"}, Capacity: Gbit, Ports: [2]Port{{Interface: "eth0", Address: netip.MustParseAddr("10.0.0.1")}}},
			{Ends: [2]string{"h2", "s1"}, Capacity: Gbit, Share: 20, MTU: 9000},
			{Ends: [2]string{"h2", "s1"}, Capacity: Gbit},
		},
	}
}

func TestCheckSubstrate(t *testing.T) {
	s := wired()
	s.Fill()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if s.Links[2].Name != "h2-s1-2" {
		t.Errorf("the parallel link is named %s", s.Links[2].Name)
	}
	for _, c := range []struct {
		name   string
		change func(*Substrate)
		path   string
		word   string
	}{
		{"no hosts", func(s *Substrate) { s.Hosts = nil }, "hosts", "at least one"},
		{"odd host", func(s *Substrate) { s.Hosts[0].Name = "a b" }, "hosts[0].name", "not a name"},
		{"same hosts", func(s *Substrate) { s.Hosts[1].Name = "h1" }, "hosts[1].name", "already"},
		{"host as switch", func(s *Substrate) { s.Switches[0] = "h1" }, "switches[0]", "already"},
		{"negative CPU", func(s *Substrate) { s.Hosts[0].CPU = -1 }, "hosts[0].cpu", "between"},
		{"negative memory", func(s *Substrate) { s.Hosts[0].Memory = -1 }, "hosts[0].memory", "between"},
		{"odd site", func(s *Substrate) { s.Hosts[0].Site = "." }, "hosts[0].site", "not a name"},
		{"slow host", func(s *Substrate) { s.Hosts[0].Capacity = 1 }, "hosts[0].capacity", "too little"},
		{"operator's name", func(s *Substrate) { s.Hosts[0].Name = "operator" }, "hosts[0].name", "certificate"},
		{"unknown end", func(s *Substrate) { s.Links[0].Ends[0] = "h3" }, "links[0].ends[0]", "no host or switch"},
		{"mistyped end", func(s *Substrate) { s.Hosts[1].Name = "berlin"; s.Links[0].Ends[0] = "belrin" }, "links[0].ends[0]", `did you mean "berlin"?`},
		{"loop", func(s *Substrate) { s.Links[0].Ends[0] = "s1" }, "links[0].ends[1]", "two different"},
		{"no capacity", func(s *Substrate) { s.Links[0].Capacity = 0 }, "links[0].capacity", "missing"},
		{"trickle", func(s *Substrate) { s.Links[0].Capacity = 100 }, "links[0].capacity", "too little"},
		{"share", func(s *Substrate) { s.Links[0].Share = 101 }, "links[0].share", "between"},
		{"MTU", func(s *Substrate) { s.Links[0].MTU = 500 }, "links[0].mtu", "between"},
		{"latency", func(s *Substrate) { s.Links[0].Latency = -1 }, "links[0].latency", "between"},
		{"same links", func(s *Substrate) { s.Links[0].Name, s.Links[1].Name = "x", "x" }, "links[1].name", "already"},
		{"port at switch", func(s *Substrate) { s.Links[0].Ports[1].Interface = "eth0" }, "links[0].ports.s1", "switch"},
		{"odd interface", func(s *Substrate) { s.Links[0].Ports[0].Interface = "a/b" }, "links[0].ports.h1.interface", "device name"},
		{"odd address", func(s *Substrate) { s.Links[0].Ports[0].Address = netip.MustParseAddr("::1") }, "links[0].ports.h1.address", "IPv4"},
		{"shared address", func(s *Substrate) { s.Links[1].Ports[0].Address = s.Links[0].Ports[0].Address }, "links[1].ports.h2.address", "already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wired()
			c.change(&s)
			s.Fill()
			wantField(t, s.Check(), c.path, c.word)
		})
	}
}

func TestRelays(t *testing.T) {
	sub := func() Substrate {
		return Substrate{
			Hosts:    []SubstrateNode{{Name: "h1"}},
			Switches: []string{"s1", "s2"},
			Links:    []SubstrateLink{{Name: "a", Ends: [2]string{"h1", "s1"}, Capacity: Gbit}, {Name: "b", Ends: [2]string{"s1", "s2"}, Capacity: Gbit}},
			Relays:   map[string]netip.Addr{"s1": netip.MustParseAddr("10.255.0.1"), "s2": netip.MustParseAddr("10.255.0.2")},
		}
	}
	if err := sub().Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Substrate){
		"some only":  func(s *Substrate) { delete(s.Relays, "s2") },
		"a host":     func(s *Substrate) { s.Relays["h1"] = netip.MustParseAddr("10.255.0.3") },
		"an address": func(s *Substrate) { s.Relays["s2"] = netip.MustParseAddr("fe80::1") },
		"one twice":  func(s *Substrate) { s.Relays["s2"] = s.Relays["s1"] },
		"joined twice": func(s *Substrate) {
			s.Links = append(s.Links, SubstrateLink{Name: "c", Ends: [2]string{"s2", "s1"}, Capacity: Gbit})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sub()
			if spoil(&s); s.Check() == nil {
				t.Errorf("%s: it passes", name)
			}
		})
	}
}
