package plan

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sublet/vnet"
)

// Spread is how a host sends packets to some prefixes over several paths
// through the fabric: as relay lists, each the addresses at which its tunnel
// headers are taken off, in visiting order. Built by datapath/iplb.
type Spread struct {
	Prefix netip.Prefix   `json:"prefix"`
	Also   []netip.Prefix `json:"also,omitempty"` // prefixes to which the same paths lead
	Mode   SpreadMode     `json:"mode,omitempty"`
	Gap    Gap            `json:"gap,omitempty"` // of flowlets
	By     Relaying       `json:"by,omitempty"`
	Paths  []RelayPath    `json:"paths"`

	// VNI, where it is not 0, makes this the spread of one tunnel (VXLAN, Geneve): only
	// its packets take it, whatever else leads to the prefix.
	VNI       vnet.VNI `json:"vni,omitempty"`
	Interface string   `json:"interface,omitempty"` // by which the tunnel leaves
}

// RelayPath is one path of a Spread.
type RelayPath struct {
	Relays []netip.Addr `json:"relays"`           // none: the fabric's own way
	Weight uint32       `json:"weight,omitempty"` // share among the paths; 0 counts as 1
	// Turn is the last switch of the path, where probes turn back; Back are
	// the relays of their way back, by default Relays in reverse. Without Turn
	// the path is not probed.
	Turn  netip.Addr   `json:"turn,omitzero"`
	Back  []netip.Addr `json:"back,omitempty"`
	Lease vnet.LeaseID `json:"lease,omitzero"` // that booked the path; flows are not moved off it for balance
}

// SpreadMode is how a flow gets its path; the empty one is PerFlow.
type SpreadMode string

// Modes. HashMode follows from addresses and ports, PerFlow begins so and moves
// large flows, Flowlets draws anew after each pause, RoundRobin gives new flows
// the paths in turn.
const (
	HashMode   SpreadMode = "hash"
	PerFlow    SpreadMode = "flow"
	Flowlets   SpreadMode = "flowlet"
	RoundRobin SpreadMode = "round-robin"
)

// SpreadModes lists them.
var SpreadModes = []SpreadMode{HashMode, PerFlow, Flowlets, RoundRobin}

// Relaying is the form of a relay list on the wire; the empty one is ByIPIP.
type Relaying string

// Forms. ByIPIP and ByGRE stack a header for each relay, which any router can
// take off. ByUDP has one header with the list, for relays that run Sublet:
// packets that are tunnelled already can take it. BySRv6 has one IPv6 header with
// segments, for fabrics that have segment routing; its relays are segments.
const (
	ByIPIP Relaying = "ipip" // RFC 2003
	ByGRE  Relaying = "gre"  // RFC 2784
	ByUDP  Relaying = "udp"  // docs/multipath.md
	BySRv6 Relaying = "srv6" // RFC 8754
)

// Relayings lists them.
var Relayings = []Relaying{ByIPIP, ByGRE, ByUDP, BySRv6}

// Kind tells those of tunnels, which leases have, from those of prefixes.
func (s Spread) Kind() Kind {
	if s.VNI != 0 {
		return KindSpread
	}
	return KindPrefixSpread
}

// Key is the prefix, or the number of the tunnel.
func (s Spread) Key() string {
	if s.VNI != 0 {
		return fmt.Sprintf("vni/%08d", s.VNI)
	}
	return s.Prefix.String()
}

// LeaseID is the lease of the tunnel; spreads of other prefixes are the host's own.
func (s Spread) LeaseID() vnet.LeaseID {
	if s.VNI == 0 || len(s.Paths) == 0 {
		return vnet.LeaseID{}
	}
	return s.Paths[0].Lease
}

// Meet is the spread itself: there is no amount in it.
func (s Spread) Meet(Item) Item { return s }

func (s Spread) String() string {
	text := fmt.Sprintf("%s %s", s.Prefix, cmp.Or(s.Mode, PerFlow))
	if s.VNI != 0 {
		text = fmt.Sprintf("vni %d %s to %s", s.VNI, s.Interface, s.Prefix.Addr())
	}
	for _, p := range s.Paths {
		text += " " + p.String()
	}
	return text
}

func (p RelayPath) String() string {
	words := make([]string, len(p.Relays))
	for i, r := range p.Relays {
		words[i] = r.String()
	}
	text := "[" + strings.Join(words, " ") + "]"
	if p.Weight > 1 {
		text += fmt.Sprintf("*%d", p.Weight)
	}
	return text
}

// Check says what is wrong with a spread, if anything.
func (s Spread) Check() error {
	for _, p := range append([]netip.Prefix{s.Prefix}, s.Also...) {
		if !p.IsValid() || !p.Addr().Is4() || p != p.Masked() {
			return fmt.Errorf("prefix %s: state an IPv4 prefix without bits behind its length, such as 10.2.0.0/16", p)
		}
	}
	if s.Mode != "" && !slices.Contains(SpreadModes, s.Mode) {
		return fmt.Errorf("%s: mode %q: choose hash, flow, flowlet or round-robin", s.Prefix, s.Mode)
	}
	if s.VNI > vnet.MaxVNI || s.VNI != 0 && (s.By != ByUDP || len(s.Paths) != 1) {
		return fmt.Errorf("%s: tunnel %d: numbers go to %d, and a tunnel has one path, by udp", s.Prefix, s.VNI, vnet.MaxVNI)
	}
	if s.By != "" && !slices.Contains(Relayings, s.By) {
		return fmt.Errorf("%s: by %q: choose ipip, gre, udp or srv6", s.Prefix, s.By)
	}
	if len(s.Paths) == 0 {
		return fmt.Errorf("%s: state at least one path", s.Prefix)
	}
	for _, p := range s.Paths {
		if err := p.check(s.By); err != nil {
			return fmt.Errorf("check paths to %s: %w", s.Prefix, err)
		}
	}
	return nil
}

func (p RelayPath) check(by Relaying) error {
	if by == BySRv6 {
		return p.checkSegments()
	}
	for _, a := range slices.Concat(p.Relays, p.Back) {
		if !a.Is4() {
			return fmt.Errorf("relay %s: state an IPv4 address", a)
		}
	}
	if p.Turn.IsValid() && !p.Turn.Is4() {
		return fmt.Errorf("turn %s: state an IPv4 address", p.Turn)
	}
	return nil
}

// checkSegments checks a path of SRv6, which no probe follows.
func (p RelayPath) checkSegments() error {
	for _, a := range p.Relays {
		if !a.Is6() || a.Is4In6() || a.Zone() != "" {
			return fmt.Errorf("segment %s: state an IPv6 address", a)
		}
	}
	if p.Turn.IsValid() || len(p.Back) > 0 {
		return errors.New("paths by srv6 are not probed: leave turn and back out")
	}
	return nil
}

// Gap is a pause, in text as "500us".
type Gap time.Duration

// MarshalText is the time as Go writes it.
func (g Gap) MarshalText() ([]byte, error) { return []byte(time.Duration(g).String()), nil }

// UnmarshalText reads a time of up to a minute.
func (g *Gap) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 || d > time.Minute {
		return fmt.Errorf("gap %q: state a time above 0 and up to a minute, such as 500us", text)
	}
	*g = Gap(d)
	return nil
}
