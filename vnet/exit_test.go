package vnet

import (
	"net/netip"
	"strings"
	"testing"
)

// Each thing that an exit must not say is refused where it is said.
func TestCheckExits(t *testing.T) {
	campus := func() Exit {
		return Exit{Name: "campus", Host: "h1", Interface: "eth2", VLANs: VLANRange{100, 199}, Capacity: Mbit}
	}
	for path, spoil := range map[string]func(*Substrate){
		"":                    func(*Substrate) {},
		"exits[0].name":       func(s *Substrate) { s.Exits[0].Name = "a/b" },
		"exits[0].host":       func(s *Substrate) { s.Exits[0].Host = "none" },
		"exits[0].interface":  func(s *Substrate) { s.Exits[0].Interface = "a b" },
		"exits[0].interface ": func(s *Substrate) { s.Exits[0].Interface = "eth0" }, // link's
		"exits[0].vlan":       func(s *Substrate) { s.Exits[0].VLANs = VLANRange{100, 4095} },
		"exits[0].vlan ":      func(s *Substrate) { s.Exits[0].VLANs = VLANRange{0, 5} },
		"exits[0].capacity":   func(s *Substrate) { s.Exits[0].Capacity = 0 },
		"exits[1].name":       func(s *Substrate) { s.Exits = append(s.Exits, campus()) },
		"exits[1].vlan": func(s *Substrate) {
			s.Exits = append(s.Exits, Exit{Name: "more", Host: "h1", Interface: "eth2", VLANs: VLANRange{50, 100}, Capacity: Mbit})
		},
		" ": func(s *Substrate) {
			s.Exits = append(s.Exits, Exit{Name: "more", Host: "h1", Interface: "eth2", Capacity: Mbit}, Exit{Name: "far", Host: "h2", Interface: "eth2", VLANs: VLANRange{100, 100}, Capacity: Mbit})
		},
		"exits[0].interface  ": func(s *Substrate) {
			s.Exits[0].VLANs, s.NAT = VLANRange{}, []NAT{wayOut()}
		},
		"  ": func(s *Substrate) { s.NAT = []NAT{wayOut()} },
	} {
		s := Substrate{
			Hosts: []SubstrateNode{{Name: "h1"}, {Name: "h2"}}, Exits: []Exit{campus()},
			Links: []SubstrateLink{{Name: "l", Ends: [2]string{"h1", "h2"}, Capacity: Mbit, Ports: [2]Port{{Interface: "eth0", Address: netip.MustParseAddr("10.0.0.1")}}}},
		}
		spoil(&s)
		err := s.Check()
		if path = strings.TrimSpace(path); path == "" && err != nil || path != "" && (err == nil || !strings.HasPrefix(err.Error(), path+":")) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// Each thing that a request must not say of an exit is refused.
func TestCheckSwitchesWithAccess(t *testing.T) {
	both := [2]Bandwidth{Static(Mbit), Static(Mbit)}
	for path, spoil := range map[string]func(*Request){
		"":                   func(*Request) {},
		"switches[0].access": func(r *Request) { r.Switches[0].Access = "a/b" },
		"switches[0].vlan":   func(r *Request) { r.Switches[0].VLAN = 4095 },
		"switches[0].vlan ":  func(r *Request) { r.Switches[0].Access = "" },
		"switches[0].kind":   func(r *Request) { r.Switches[0].Kind = SwitchEngine },
		"switches[0].access ": func(r *Request) {
			r.Switches[0].Host = "h1"
		},
		"links[0]": func(r *Request) { r.Links[0].Bandwidth[Forward] = Bandwidth{} },
		"switches": func(r *Request) {
			r.Switches = append(r.Switches, VirtualSwitch{Name: "inner"}, VirtualSwitch{Name: "other", Access: "campus"})
			r.Links = append(r.Links, VirtualLink{Ends: [2]string{"lan", "inner"}, Bandwidth: both}, VirtualLink{Ends: [2]string{"inner", "other"}, Bandwidth: both})
		},
		"stages[0]": func(r *Request) {
			r.Switches = append(r.Switches, VirtualSwitch{Name: "other", Access: "campus"})
			r.Stages = []Stage{{Name: "s", After: 1, Add: Topology{Links: []VirtualLink{{Ends: [2]string{"lan", "other"}, Bandwidth: both}}}}}
		},
		" ": func(r *Request) { // a router between them is fine
			r.Switches = append(r.Switches, VirtualSwitch{Name: "other", Access: "campus"})
			r.Routers = []VirtualNode{{Name: "r"}}
			r.Links = append(r.Links, VirtualLink{Ends: [2]string{"lan", "r"}, Bandwidth: both}, VirtualLink{Ends: [2]string{"r", "other"}, Bandwidth: both})
		},
	} {
		r := Request{Network: "net", Topology: Topology{
			Nodes: []VirtualNode{{Name: "a"}}, Switches: []VirtualSwitch{{Name: "lan", Access: "campus", VLAN: 100}},
			Links: []VirtualLink{{Ends: [2]string{"a", "lan"}, Bandwidth: both}},
		}}
		spoil(&r)
		r.Fill()
		err := r.Check()
		if path = strings.TrimSpace(path); path == "" && err != nil || path != "" && (err == nil || !strings.HasPrefix(err.Error(), path+":")) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// What is written is read back, and what is none is refused.
func TestVLANRanges(t *testing.T) {
	for _, text := range []string{"100", "100-199", "1-4094"} {
		var r VLANRange
		if err := r.UnmarshalText([]byte(text)); err != nil || r.String() != text {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "0", "0-5", "9-8", "4095", "1-4095", "-1", "a", "1-2-3", "untagged"} {
		if err := new(VLANRange).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a range", text)
		}
	}
}
