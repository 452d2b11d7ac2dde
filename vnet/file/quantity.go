package file

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// name is a vnet name; Check looks at it.
type name string

// axis of an offer; Check looks at it.
type axis string

// ends of a link.
type ends [2]name

func (e ends) strings() [2]string { return [2]string{string(e[0]), string(e[1])} }

// linkEnd is a node, router or switch at the end of a link, by its name or with
// addresses and the name of its interface.
type linkEnd struct {
	Node      name     `yaml:"node,omitempty" jsonschema_description:"Its name."`
	Access    name     `yaml:"access,omitempty" jsonschema_description:"Instead of node: an exit of the substrate. Short for a switch of that name with access to it, which all such ends share."`
	VLAN      *int     `yaml:"vlan,omitempty" jsonschema_description:"With access: VLAN at the exit. Default: one is chosen." jsonschema:"minimum=1,maximum=4094"`
	Interface string   `yaml:"interface,omitempty" jsonschema_description:"Name of the node's interface there, such as eth1. Default: eth and the number of the link among the node's, from 0 on." jsonschema:"maxLength=15"`
	Address   prefixes `yaml:"address,omitempty" jsonschema_description:"One or several, IPv4 or IPv6, with the length of the subnet's prefix, such as 10.0.12.1/24. Default: chosen in the subnet of the other end, if that states one; else the node's address."`
}

func (e *linkEnd) short(n *yaml.Node) any {
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	return &e.Node
}

// MarshalYAML writes the name alone where that is all.
func (e linkEnd) MarshalYAML() (any, error) {
	if len(e.Address) == 0 && e.Interface == "" {
		return e.Node, nil
	}
	type whole linkEnd
	return whole(e), nil
}

// linkEnds of a virtual link.
type linkEnds [2]linkEnd

// prefixes are one or several.
type prefixes []prefix

func (p *prefixes) short(n *yaml.Node) any {
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	*p = make(prefixes, 1)
	return &(*p)[0]
}

// MarshalYAML writes one without brackets.
func (p prefixes) MarshalYAML() (any, error) {
	if len(p) == 1 {
		return p[0], nil
	}
	return []prefix(p), nil
}

// prefix is an address with the length of its subnet's prefix.
type prefix netip.Prefix

func (p *prefix) UnmarshalText(text []byte) error {
	v, err := netip.ParsePrefix(string(text))
	if err == nil {
		*p = prefix(v)
		return nil
	}
	if a, err := netip.ParseAddr(string(text)); err == nil {
		return fmt.Errorf("%s lacks the length of its prefix: write it as in %s/%d", a, a, usualBits(a))
	}
	return fmt.Errorf("%q is not an address with the length of its prefix such as 10.0.12.1/24", text)
}

func usualBits(a netip.Addr) int {
	if a.Is4() {
		return 24
	}
	return 64
}

func (p prefix) MarshalText() ([]byte, error) { return []byte(netip.Prefix(p).String()), nil }

// words and names convert lists of names; none stays none.
func words(list []name) []string {
	var made []string
	for _, n := range list {
		made = append(made, string(n))
	}
	return made
}

func names(list []string) []name {
	var made []name
	for _, s := range list {
		made = append(made, name(s))
	}
	return made
}

// Quantities as they are written, for every file people write. Each reads and
// prints itself, so that the form structs say everything else.
type (
	Rate vnet.Rate
	Size vnet.Bytes
	Span time.Duration
)

// Quantities of requests and substrates.
type (
	rate    = Rate
	size    = Size
	cpu     vnet.CPU
	span    = Span
	instant time.Time
	address netip.Addr
)

// UnmarshalText reads a rate such as 1Gbit.
func (r *Rate) UnmarshalText(text []byte) error {
	v, err := vnet.ParseRate(string(text))
	*r = Rate(v)
	return err
}

// MarshalText prints it so.
func (r Rate) MarshalText() ([]byte, error) { return []byte(vnet.Rate(r).String()), nil }

// UnmarshalText reads a size such as 64KiB.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := vnet.ParseBytes(string(text))
	*s = Size(v)
	return err
}

// MarshalText prints it so.
func (s Size) MarshalText() ([]byte, error) { return []byte(vnet.Bytes(s).String()), nil }

// UnmarshalText reads a length of time such as 1d12h.
func (s *Span) UnmarshalText(text []byte) error {
	v, err := vnet.ParseDuration(string(text))
	*s = Span(v)
	return err
}

// MarshalText prints it so.
func (s Span) MarshalText() ([]byte, error) {
	return []byte(vnet.FormatDuration(time.Duration(s))), nil
}

func (c *cpu) UnmarshalText(text []byte) error {
	v, err := vnet.ParseCPU(string(text))
	*c = cpu(v)
	return err
}

// MarshalYAML makes it a plain number, neither quoted nor with an exponent.
func (c cpu) MarshalYAML() (any, error) {
	text, tag := vnet.CPU(c).String(), "!!int" // the tag it would have unwritten, or it is written
	if strings.Contains(text, ".") {
		tag = "!!float"
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}, nil
}

func (i *instant) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return fmt.Errorf("%q is not a time with a zone such as 2027-03-01T08:00:00Z", text)
	}
	*i = instant(t.UTC())
	return nil
}

func (i instant) MarshalText() ([]byte, error) {
	return []byte(time.Time(i).UTC().Format(time.RFC3339Nano)), nil
}

func (a *address) UnmarshalText(text []byte) error {
	v, err := netip.ParseAddr(string(text))
	if err != nil {
		return fmt.Errorf("%q is not an address such as 10.1.0.1", text)
	}
	*a = address(v)
	return nil
}

func (a address) MarshalText() ([]byte, error) { return []byte(netip.Addr(a).String()), nil }

// anyAddress is an address of either family.
type anyAddress netip.Addr

func (a *anyAddress) UnmarshalText(text []byte) error {
	v, err := netip.ParseAddr(string(text))
	if err != nil {
		return fmt.Errorf("%q is not an address such as 10.1.0.1 or 2001:db8::1", text)
	}
	*a = anyAddress(v)
	return nil
}

func (a anyAddress) MarshalText() ([]byte, error) { return []byte(netip.Addr(a).String()), nil }

// share is a part of all frames.
type share vnet.Share

func (s *share) UnmarshalText(text []byte) error {
	v, err := vnet.ParseShare(string(text))
	*s = share(v)
	return err
}

func (s share) MarshalText() ([]byte, error) { return []byte(vnet.Share(s).String()), nil }

// percent is a whole number with or without its sign.
type percent int

func (p *percent) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(string(text), "%")))
	if err != nil || n < 1 || n > 100 {
		return fmt.Errorf("%q is not a percentage from 1%% to 100%%", text)
	}
	*p = percent(n)
	return nil
}

func (p percent) MarshalText() ([]byte, error) { return []byte(strconv.Itoa(int(p)) + "%"), nil }

// datapathID is a number of 64 bits, written by tens or, behind 0x, by sixteens.
type datapathID uint64

func (d *datapathID) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return fmt.Errorf("%q is no datapath identifier: write a whole number such as 1 or 0xa1", text)
	}
	*d = datapathID(v)
	return nil
}

// MarshalYAML makes it a plain number.
func (d datapathID) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatUint(uint64(d), 10)}, nil
}
