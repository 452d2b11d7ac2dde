package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"sublet/vnet"
)

// VSwitch is a layer-2 switch: a namespace of the provider's that holds its
// ports, and the stations it knows without learning. Built by datapath/bridge.
type VSwitch struct {
	Lease    vnet.LeaseID  `json:"lease"`
	Switch   string        `json:"switch"`
	Ageing   time.Duration `json:"ageing_ns"`
	Stations []Station     `json:"stations,omitempty"` // by address
}

// Station is a node's or router's interface on the switch's segment.
type Station struct {
	Address   netip.Addr `json:"address"`
	Hardware  Hardware   `json:"hardware"`
	Interface string     `json:"interface"` // port of this switch that leads there
}

func (s Station) String() string { return fmt.Sprintf("%s=%s@%s", s.Address, s.Hardware, s.Interface) }

// SwitchPort is what a switch does with the frames of one port. The device
// itself is a VxLink's. Built by datapath/bridge.
type SwitchPort struct {
	Lease     vnet.LeaseID `json:"lease"`
	Switch    string       `json:"switch"`
	Interface string       `json:"interface"`
	MACs      int          `json:"macs"`          // most addresses learned
	Broadcast int          `json:"broadcast_pps"` // frames a second
	Unknown   int          `json:"unknown_pps"`
	To        []string     `json:"to,omitempty"` // interfaces it may send to
	Blocked   bool         `json:"blocked,omitempty"`
}

// Hardware is an Ethernet address.
type Hardware [6]byte

func (h Hardware) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", h[0], h[1], h[2], h[3], h[4], h[5])
}

// MarshalText writes it as six pairs of digits.
func (h Hardware) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (h *Hardware) UnmarshalText(text []byte) error {
	if len(text) != len("00:00:00:00:00:00") {
		return fmt.Errorf("%q is not an Ethernet address", text)
	}
	for i := range h {
		if _, err := hex.Decode(h[i:i+1], text[3*i:3*i+2]); err != nil || i < 5 && text[3*i+2] != ':' {
			return fmt.Errorf("%q is not an Ethernet address", text)
		}
	}
	return nil
}

// Hardware is the address of a port's interface: the same whenever it is made
// again, or its neighbours would send to the old one for many seconds.
func (p Port) Hardware() Hardware {
	sum := sha256.Sum256([]byte(p.Namespace + "/" + p.Interface))
	h := Hardware(sum[:6])
	h[0] = h[0]&^1 | 2 // one station's, assigned locally (IEEE 802)
	return h
}

// SwitchNamespace names the namespace of a switch: it has one part more than a
// node's, which is the tenant's.
func SwitchNamespace(lease vnet.LeaseID, name string) string {
	return Namespace(lease, name) + ofSwitch
}

const ofSwitch = ".switch"

// ParseSwitchNamespace takes SwitchNamespace apart; false: it is none.
func ParseSwitchNamespace(key string) (lease vnet.LeaseID, name string, ok bool) {
	return parseNamespace(key, ofSwitch)
}

// Kind of the section.
func (VSwitch) Kind() Kind { return KindVSwitch }

// Key is the namespace.
func (s VSwitch) Key() string { return SwitchNamespace(s.Lease, s.Switch) }

// LeaseID is the lease that it is of.
func (s VSwitch) LeaseID() vnet.LeaseID { return s.Lease }

func (s VSwitch) addTo(h *Host) { h.Switches = append(h.Switches, s) }

// Meet is the switch itself: there is no amount in it.
func (s VSwitch) Meet(Item) Item { return s }

func (s VSwitch) String() string {
	text := fmt.Sprintf("%s ageing %s", s.Key(), vnet.FormatDuration(s.Ageing))
	for _, st := range s.Stations {
		text += " " + st.String()
	}
	return text
}

// Kind of the section.
func (SwitchPort) Kind() Kind { return KindSwitchPort }

// Key is namespace and interface.
func (p SwitchPort) Key() string { return SwitchNamespace(p.Lease, p.Switch) + "/" + p.Interface }

// LeaseID is the lease that it is of.
func (p SwitchPort) LeaseID() vnet.LeaseID { return p.Lease }

func (p SwitchPort) addTo(h *Host) { h.SwitchPorts = append(h.SwitchPorts, p) }

// Meet is the port itself: its limits do not book anything.
func (p SwitchPort) Meet(Item) Item { return p }

func (p SwitchPort) String() string {
	s := fmt.Sprintf("%s macs %d broadcast %d/s unknown %d/s", p.Key(), p.MACs, p.Broadcast, p.Unknown)
	if len(p.To) > 0 {
		s += fmt.Sprintf(" to %v", p.To)
	}
	if p.Blocked {
		s += " blocked"
	}
	return s
}
