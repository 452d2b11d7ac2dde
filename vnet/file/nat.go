package file

import (
	"cmp"
	"fmt"
	"net/netip"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// What ways out are written with.
type (
	publish   = vnet.Publish
	addrRange = vnet.AddrRange
	portRange = vnet.PortRange
	vlanRange = vnet.VLANRange
	network   netip.Prefix
)

// UnmarshalText reads a network such as 10.0.0.0/8.
func (n *network) UnmarshalText(text []byte) error {
	p, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a network such as 10.0.0.0/8", text)
	}
	*n = network(p)
	return nil
}

// MarshalText prints it so.
func (n network) MarshalText() ([]byte, error) { return []byte(netip.Prefix(n).String()), nil }

// nats are one or several.
type nats []nat

func (f *nats) short(n *yaml.Node) any {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	*f = make(nats, 1)
	return &(*f)[0]
}

// lacks says why a field has no default.
func (nat) lacks(field string) string {
	switch field {
	case "interface":
		return "the device of the host that leads out, such as eth2, which nothing else in a substrate says"
	case "via":
		return "the address of the router behind the interface, such as 192.0.2.1, which the pool does not say"
	}
	return "..."
}

func (f nat) nat() vnet.NAT {
	n := vnet.NAT{
		Name: cmp.Or(string(f.Name), internetRouter), Host: vnet.HostID(f.Host), Interface: f.Interface, Pool: f.Pool,
		Via: netip.Addr(f.Via), Capacity: vnet.Rate(f.Capacity), Publish: f.Publish,
	}
	for _, p := range f.Refuse {
		n.Refuse = append(n.Refuse, netip.Prefix(p))
	}
	return n
}

func natForm(n vnet.NAT) nat {
	f := nat{
		Name: name(n.Name), Host: name(n.Host), Interface: n.Interface, Pool: n.Pool,
		Via: address(n.Via), Capacity: rate(n.Capacity), Publish: n.Publish,
	}
	for _, p := range n.Refuse {
		f.Refuse = append(f.Refuse, network(p))
	}
	return f
}
