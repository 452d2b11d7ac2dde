package vnet

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Settings are of the node's network, of interfaces that are there, and leave a
// lease what it is.
func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name, value, says string // "": it is fine
		router            bool
	}{
		{name: "net.ipv4.ip_forward", value: "1"},
		{name: "net.ipv4.conf.all.rp_filter", value: "2"},
		{name: "net.ipv4.conf.eth0.arp_ignore", value: "1"},
		{name: "net.ipv6.conf.default.accept_ra", value: "0"},
		{name: "net.ipv6.conf.all.disable_ipv6", value: "0"},
		{name: "net.ipv6.conf.eth0.disable_ipv6", value: "1", says: "has addresses of IPv6"},
		{name: "net.ipv4.conf.eth1.arp_ignore", value: "1", says: "no interface eth1 when it begins"},
		{name: "net.ipv4.conf.../../x.tag", value: "1", says: "is not a setting"},
		{name: "net.ipv4.conf.a/b.rp_filter", value: "1", says: "is not a setting"},
		{name: "net.ipv4.conf.all.log_martians", value: "1", says: "is not a setting"},
		{name: "net.ipv4.conf.all.tag", value: "1", says: "is not a setting"},
		{name: "net.ipv4.conf.all.arp_anounce", value: "1", says: `did you mean "net.ipv4.conf.all.arp_announce"`},
		{name: "net.ipv4.conf.all.arp_ignore", value: "-1", says: "up to three whole numbers"},
		{name: "net.ipv4.ip_forward", value: "0", router: true, says: "a router forwards"},
		{name: "net.ipv6.conf.all.forwarding", value: "0", router: true, says: "a router forwards"},
		{name: "net.ipv4.ip_forward", value: "1", router: true},
	} {
		n := VirtualNode{Name: "a", Setup: Setup{Sysctls: map[string]string{c.name: c.value}}}
		r := Request{Tenant: "alice", Network: "net", Topology: Topology{
			Nodes: []VirtualNode{{Name: "b"}},
			Links: []VirtualLink{{Ends: [2]string{"a", "b"}, Addresses: LinkAddresses{{netip.MustParsePrefix("2001:db8::1/64")}}}},
		}}
		if c.router {
			r.Routers = append(r.Routers, n)
		} else {
			r.Nodes = append(r.Nodes, n)
		}
		r.Fill()
		if err := r.Check(); c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s=%s: %v, and not %q", c.name, c.value, err, c.says)
		}
	}
}

// An interface that comes with a stage is not there when its node begins.
func TestSettingsOfLaterInterfaces(t *testing.T) {
	r := Request{Tenant: "alice", Network: "net", Topology: Topology{
		Nodes: []VirtualNode{{Name: "a", Setup: Setup{Sysctls: map[string]string{"net.ipv4.conf.late.rp_filter": "1"}}}, {Name: "b"}},
		Links: []VirtualLink{{Ends: [2]string{"a", "b"}}},
	}}
	r.Stages = []Stage{{Name: "s", After: 1, Add: Topology{Links: []VirtualLink{{Ends: [2]string{"a", "b"}, Interfaces: [2]string{"late", ""}}}}}}
	r.Fill()
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "no interface late") {
		t.Errorf("%v", err)
	}
}

// What sets others along with it comes first.
func TestOrderOfSettings(t *testing.T) {
	s := Setup{Sysctls: map[string]string{"net.ipv4.conf.all.rp_filter": "1", "net.ipv4.conf.a.forwarding": "0", "net.ipv4.ip_forward": "1"}}
	if got, want := s.Settings(), []string{"net.ipv4.ip_forward", "net.ipv4.conf.all.rp_filter", "net.ipv4.conf.a.forwarding"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
