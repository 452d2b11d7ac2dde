package vnet

import (
	"net/netip"
	"strings"
	"testing"
)

// prefixesOf parses addresses with their prefixes.
func prefixesOf(words ...string) (list []netip.Prefix) {
	for _, w := range words {
		list = append(list, netip.MustParsePrefix(w))
	}
	return list
}

// pairs is a request of links between nodes a, b, c and d, and switch s.
func pairs(links ...VirtualLink) Request {
	r := Request{Network: "net", Topology: Topology{
		Nodes: []VirtualNode{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}, Switches: []VirtualSwitch{{Name: "s"}}, Links: links,
	}}
	r.Fill()
	return r
}

func TestLinkAddresses(t *testing.T) {
	linked := func(a, b string, first, second []netip.Prefix) VirtualLink {
		return VirtualLink{Ends: [2]string{a, b}, Addresses: LinkAddresses{first, second}}
	}
	for _, c := range []struct {
		name, want string // in the problem; "": there is none
		r          Request
	}{
		{"one end", "", pairs(linked("a", "b", prefixesOf("10.0.1.1/24"), nil))},
		{"a link of two", "", pairs(linked("a", "b", prefixesOf("10.0.1.0/31"), prefixesOf("10.0.1.1/31")))},
		{"several", "", pairs(linked("a", "b", prefixesOf("10.0.1.1/24", "10.0.2.1/24", "2001:db8::1/64"), prefixesOf("2001:db8::2/64")))},
		{"a switch", "has no address", pairs(linked("a", "s", nil, prefixesOf("10.0.1.1/24")))},
		{"stations apart", "is not in the subnet", pairs(linked("a", "s", prefixesOf("10.0.1.1/24"), nil), linked("b", "s", prefixesOf("10.0.2.1/24"), nil))},
		{"other lengths", "is not in the subnet", pairs(linked("a", "b", prefixesOf("10.0.1.1/24"), prefixesOf("10.0.1.2/25")))},
		{"too many", "too few addresses", pairs(linked("a", "s", prefixesOf("10.0.1.1/30"), nil), linked("b", "s", nil, nil), linked("c", "s", nil, nil))},
		{"single", "a prefix of 32 bits", pairs(linked("a", "b", prefixesOf("10.0.1.1/32"), nil))},
		{"loopback", "unicast", pairs(linked("a", "b", prefixesOf("127.0.0.2/8"), nil))},
		{"mapped", "unicast", pairs(linked("a", "b", []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr("::ffff:10.0.0.1"), 120)}, nil))},
		{"no prefix", "no address", pairs(linked("a", "b", make([]netip.Prefix, 1), nil))},
		{"same subnet twice", "overlaps", pairs(linked("a", "b", prefixesOf("10.0.1.1/24"), nil), linked("c", "d", prefixesOf("10.0.1.3/24"), nil))},
		{"within", "overlaps", pairs(linked("a", "b", prefixesOf("10.0.0.1/8"), nil), linked("b", "c", prefixesOf("10.0.1.1/24"), nil), linked("c", "d", prefixesOf("10.2.1.1/24"), nil))},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.r.Check()
			if err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A link that returns in a stage has the addresses that it had.
func TestReturningLinkKeepsItsAddresses(t *testing.T) {
	l := VirtualLink{Name: "l", Ends: [2]string{"a", "b"}, Addresses: LinkAddresses{prefixesOf("10.0.1.1/24"), nil}}
	r := pairs(l)
	r.Stages = []Stage{{Name: "without", After: 1, Remove: []string{"l"}}, {Name: "again", After: 2, Add: Topology{Links: []VirtualLink{l}}}}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	l.Addresses = LinkAddresses{prefixesOf("10.0.2.1/24"), nil}
	r.Stages[1].Add.Links = []VirtualLink{l}
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "returns with other") {
		t.Errorf("%v", err)
	}
}
