package vnet

import (
	"net/netip"
	"testing"
)

func TestEncapsulations(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Substrate)
		path   string
		word   string
	}{
		{"unknown", func(s *Substrate) { s.Links[0].Encapsulation = "vlan" }, "links[0].encapsulation", "no encapsulation: choose vxlan, geneve, nvgre, kernel-vxlan"},
		{"without a number", func(s *Substrate) { s.Links[0].Encapsulation = GRETAP }, "links[0].encapsulation", "no number that tells leases apart"},
		{"of IP only", func(s *Substrate) { s.Links[0].Encapsulation = LISP }, "links[0].encapsulation", "IP packets only"},
		{"of chains", func(s *Substrate) { s.Links[0].Encapsulation = NSH }, "links[0].encapsulation", "chains"},
		{"two at a switch", func(s *Substrate) { s.Links[2].Encapsulation = Geneve }, "links[2].encapsulation", "at switch \"s1\""},
		{"by relays", func(s *Substrate) {
			s.every(NVGRE)
			s.Relays = map[string]netip.Addr{"s1": netip.MustParseAddr("10.255.0.1")}
		}, "links[0].encapsulation", "relay lists"},
		{"by OpenFlow", func(s *Substrate) {
			s.every(Geneve)
			s.OpenFlow = []OpenFlowSwitch{{
				Name: "s1", Listen: netip.MustParseAddrPort("192.0.2.9:6653"), DatapathID: 1, Entries: 1000, Meters: 1000,
				Ports: map[string]uint32{"h1-s1": 1, "h2-s1": 2, "h2-s1-2": 3},
			}}
		}, "links[0].encapsulation", "vxlan alone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wired()
			s.Fill()
			c.change(&s)
			wantField(t, s.Check(), c.path, c.word)
		})
	}
	for _, e := range LeaseEncapsulations {
		s := wired()
		s.Fill()
		s.every(e)
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", e, err)
		}
	}
}

func (s *Substrate) every(e Encapsulation) {
	for i := range s.Links {
		s.Links[i].Encapsulation = e
	}
}
