package vnet

import (
	"net/netip"
	"strings"
	"testing"
)

func wayOut() NAT {
	return NAT{
		Name: "campus", Host: "h1", Interface: "eth2", Capacity: Mbit, Via: netip.MustParseAddr("192.0.2.1"),
		Pool: AddrRange{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("192.0.2.20")},
	}
}

// Each thing that a way out must not say is refused where it is said.
func TestCheckWaysOut(t *testing.T) {
	for path, spoil := range map[string]func(*NAT){
		"":                 func(*NAT) {},
		"nat[0].name":      func(n *NAT) { n.Name = "a/b" },
		"nat[0].host":      func(n *NAT) { n.Host = "none" },
		"nat[0].interface": func(n *NAT) { n.Interface = "" },
		"nat[0].capacity":  func(n *NAT) { n.Capacity = 0 },
		"nat[0].via":       func(n *NAT) { n.Via = netip.MustParseAddr("192.0.2.12") },
		"nat[0].pool":      func(n *NAT) { n.Pool.Last = netip.MustParseAddr("192.0.2.9") },
		"nat[0].pool ":     func(n *NAT) { n.Pool.Last = netip.MustParseAddr("192.0.9.1") },
		"nat[0].refuse[0]": func(n *NAT) { n.Refuse = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/8")} },
	} {
		n := wayOut()
		spoil(&n)
		err := Substrate{Hosts: []SubstrateNode{{Name: "h1"}}, NAT: []NAT{n}}.Check()
		if path == "" && err != nil || path != "" && (err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(path)+":")) {
			t.Errorf("%q: %v", path, err)
		}
	}
	other := wayOut()
	other.Name = "other"
	if err := (Substrate{Hosts: []SubstrateNode{{Name: "h1"}}, NAT: []NAT{wayOut(), other}}).Check(); err == nil {
		t.Error("two ways out share addresses")
	}
}

// Each thing that a request must not say of a way out is refused.
func TestCheckNodesWithWaysOut(t *testing.T) {
	for path, spoil := range map[string]func(*Request){
		"":                      func(*Request) {},
		"nodes[0].nat":          func(r *Request) { r.Nodes[0].NAT = "campus" },
		"routers[0].nat":        func(r *Request) { r.Routers[0].Host = "h1" },
		"routers[0].image":      func(r *Request) { r.Routers[0].Image = "web.tar" },
		"routers[0].run":        func(r *Request) { r.Routers[0].Run = []Program{{Cmd: []string{"true"}}} },
		"routers[0].protocol":   func(r *Request) { r.Routers[0].Protocol = ProtocolOSPF },
		"routers[0].publish":    func(r *Request) { r.Routers[0].NAT = "" },
		"routers[0].publish[0]": func(r *Request) { r.Routers[0].Publish[0].Node = "none" },
		"routers[0].publish[1]": func(r *Request) { r.Routers[0].Publish = append(r.Routers[0].Publish, r.Routers[0].Publish[0]) },
		"links[0]":              func(r *Request) { r.Links[0].Bandwidth[Reverse] = Bandwidth{} },
		"stages[0].add.links[0]": func(r *Request) {
			r.Stages = []Stage{{Name: "s", Add: Topology{Nodes: []VirtualNode{{Name: "b"}}, Links: []VirtualLink{{Ends: [2]string{"b", "out"}}}}}}
		},
		"stages[0].add.routers[0].publish[0]": func(r *Request) {
			more := VirtualNode{Name: "more", NAT: "campus", Publish: []Publish{{80, "none", 80, false}}}
			r.Stages = []Stage{{Name: "s", Add: Topology{Routers: []VirtualNode{more}}}}
		},
		"routers[0].publish[0]  ": func(r *Request) { r.Routers[0].Publish[0].Port = 0 },
	} {
		both := Bandwidth{Min: Mbit, Max: Mbit}
		r := Request{Network: "net", Topology: Topology{
			Nodes:   []VirtualNode{{Name: "web"}},
			Routers: []VirtualNode{{Name: "out", NAT: "campus", Publish: []Publish{{8080, "web", 80, false}}}},
			Links:   []VirtualLink{{Ends: [2]string{"web", "out"}, Bandwidth: [2]Bandwidth{both, both}}},
		}}
		spoil(&r)
		r.Fill()
		err := r.Check()
		if path == "" && err != nil || path != "" && (err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(path)+":")) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// What is written is read back, and what is none is refused.
func TestPublishedPortsAsWritten(t *testing.T) {
	for _, text := range []string{"8080:web:80", "53:dns:5353/udp"} {
		var p Publish
		if err := p.UnmarshalText([]byte(text)); err != nil || p.String() != text {
			t.Errorf("%s: %s, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "80", "80:web", "0:web:80", "80:web:65536", "80:we/b:80", "80:web:80/sctp", "-1:web:80", "80:web:80:80"} {
		if err := new(Publish).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q publishes a port", text)
		}
	}
	for _, text := range []string{"", "9-8", "0-8", "a"} {
		if err := new(PortRange).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a range of ports", text)
		}
	}
}
