package vnet

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OpenFlowSwitch is a switch of the substrate that speaks OpenFlow. Each tunnel
// that passes it takes EntriesOfTunnel entries there, one for each direction, and as
// many meters, or a queue of the port by which each direction leaves.
type OpenFlowSwitch struct {
	Name string `json:"name"` // one of Substrate.Switches
	// Connect is where the switch listens for controllers, Listen where controllers
	// wait for it. One of both is stated.
	Connect    netip.AddrPort    `json:"connect,omitzero"`
	Listen     netip.AddrPort    `json:"listen,omitzero"`
	DatapathID DatapathID        `json:"datapath_id"`
	TLS        *SwitchFiles      `json:"tls,omitempty"`   // of the connection; nil: it is plain
	Ports      map[string]uint32 `json:"ports,omitempty"` // by link that ends at it
	Entries    int               `json:"entries"`         // that Sublet may have, in table 0
	Meters     int               `json:"meters"`          // that Sublet may have; 0: it has queues
	Queues     []SwitchQueue     `json:"queues,omitempty"`
	SlowPath   SlowPath          `json:"slow_path,omitzero"`
}

// SwitchFiles are for TLS with a switch: PEM files of the server's machine, with its
// certificate and key, and authorities, one of which has signed the switch's.
type SwitchFiles struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
}

// SlowPath is what a switch does in software.
type SlowPath struct {
	Actions []string      `json:"actions,omitempty"` // that lead packets there
	PPS     int           `json:"pps,omitempty"`     // packets per second of all such packets together
	Latency time.Duration `json:"latency_ns,omitempty"`
}

// What a substrate's OpenFlow switches may state.
const (
	EntriesOfTunnel   = 2 // and so many meters
	EntriesOfSwitch   = 1 // what belongs to no lease passes one entry and one meter
	MaxSwitchEntries  = 1 << 20
	MaxSwitchMeters   = 4096
	MaxOpenFlowPort   = 0xffffff00
	SlowPathFrame     = 900 // bytes, as of DefaultHostCapacity
	minSwitchCapacity = EntriesOfSwitch + EntriesOfTunnel
)

// SwitchActions are what packets meet at a switch, by the names of ovs-ofctl: those
// of leases all but normal.
var SwitchActions = []string{"meter", "output", "normal", "set_queue"}

// DatapathID is an OpenFlow switch's identifier.
type DatapathID uint64

// String gives 16 hexadecimal digits.
func (d DatapathID) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// MarshalText is String.
func (d DatapathID) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads up to 16 hexadecimal digits, with 0x in front or without.
func (d *DatapathID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(text), "0x"), 16, 64)
	if err != nil {
		return fmt.Errorf("%q is no identifier of a switch: write up to 16 hexadecimal digits", text)
	}
	*d = DatapathID(n)
	return nil
}

// OpenFlowOf finds an OpenFlow switch by name.
func (s Substrate) OpenFlowOf(name string) (OpenFlowSwitch, bool) {
	i := slices.IndexFunc(s.OpenFlow, func(o OpenFlowSwitch) bool { return o.Name == name })
	if i < 0 {
		return OpenFlowSwitch{}, false
	}
	return s.OpenFlow[i], true
}

// Steered says whether leases choose paths among switches by entries: every switch
// speaks OpenFlow. Else switches forward by themselves between two that do.
func (s Substrate) Steered() bool {
	return len(s.Switches) > 0 && len(s.OpenFlow) == len(s.Switches)
}

// Slows says whether packets of leases leave the fast path.
func (p SlowPath) Slows() bool {
	return slices.ContainsFunc(p.Actions, func(a string) bool { return a != "normal" })
}

// Carries is what the switch carries of leases in software, both directions of all
// links together; 0: it is no bound.
func (p SlowPath) Carries() Rate {
	if !p.Slows() {
		return 0
	}
	return Rate(p.PPS) * SlowPathFrame * 8
}

// checkOpenFlow checks the OpenFlow switches, once links are right.
func (s Substrate) checkOpenFlow() error {
	byID := make(map[DatapathID]string)
	for i, o := range s.OpenFlow {
		path := at("switches", max(slices.Index(s.Switches, o.Name), 0))
		if !slices.Contains(s.Switches, o.Name) {
			return fieldf(at("openflow", i)+".name", "there is no switch %q", o.Name)
		}
		if first, _ := s.OpenFlowOf(o.Name); slices.IndexFunc(s.OpenFlow, func(p OpenFlowSwitch) bool { return p.Name == first.Name }) < i {
			return fieldf(at("openflow", i)+".name", "switch %q is stated already", o.Name)
		}
		if err := o.check(path); err != nil {
			return err
		}
		if other, twice := byID[o.DatapathID]; twice {
			return fieldf(path+".openflow.datapath_id", "%s is that of switch %q already: every switch has its own", o.DatapathID, other)
		}
		byID[o.DatapathID] = o.Name
		if err := o.sameTLS(path, s.OpenFlow[:i]); err != nil {
			return err
		}
		if err := s.checkSwitchPorts(path, o); err != nil {
			return err
		}
	}
	if len(s.OpenFlow) > 0 && len(s.Relays) > 0 {
		return fieldf("relays", "switch %q speaks OpenFlow, and no entry tells packets with relay lists apart: leave out relays or openflow", s.OpenFlow[0].Name)
	}
	return nil
}

// check checks a switch by itself.
func (o OpenFlowSwitch) check(path string) error {
	switch {
	case o.Connect.IsValid() == o.Listen.IsValid():
		return fieldf(path+".openflow", "state connect, where the switch listens, such as tcp:192.0.2.1:6653, or listen, where it connects to, such as 192.0.2.9:6653")
	case o.Connect.IsValid() && o.Connect.Port() == 0, o.Listen.IsValid() && o.Listen.Port() == 0:
		return fieldf(path+".openflow", "port 0 is none: write one such as 6653")
	case o.DatapathID == 0:
		return fieldf(path+".openflow.datapath_id", "is missing: state the switch's identifier in hexadecimal digits, such as 0000000000000001")
	}
	if err := o.checkTLS(path + ".openflow.tls"); err != nil {
		return err
	}
	if err := cmp.Or(checkSwitchAmount(path+".entries", o.Entries, MaxSwitchEntries), o.checkMeters(path)); err != nil {
		return err
	}
	return o.SlowPath.check(path + ".slow-path")
}

// checkMeters wants meters or queues, and actions of the slow path to match.
func (o OpenFlowSwitch) checkMeters(path string) error {
	without := "set_queue"
	if len(o.Queues) > 0 {
		without = "meter"
	}
	switch i := slices.Index(o.SlowPath.Actions, without); {
	case len(o.Queues) > 0 && o.Meters != 0:
		return fieldf(path+".queues", "the switch has meters too: state one of both, by which links have their rates there")
	case i >= 0:
		return fieldf(at(path+".slow-path.actions", i), "no packet meets %s at a switch with %s", without, map[string]string{"meter": "queues", "set_queue": "meters"}[without])
	case len(o.Queues) == 0:
		return checkSwitchAmount(path+".meters", o.Meters, MaxSwitchMeters)
	}
	return nil
}

// checkTLS wants files by their whole names: the server runs in a directory of its own.
func (o OpenFlowSwitch) checkTLS(path string) error {
	if o.TLS == nil {
		return nil
	}
	for _, f := range []struct{ member, name string }{{"certificate", o.TLS.Certificate}, {"key", o.TLS.Key}, {"ca", o.TLS.CA}} {
		if !strings.HasPrefix(f.name, "/") {
			return fieldf(path+"."+f.member, "%q is no file of the server's machine: write its whole name, such as /etc/sublet/switches/%s.pem", f.name, f.member)
		}
	}
	return nil
}

// sameTLS refuses switches that connect to one address by different files.
func (o OpenFlowSwitch) sameTLS(path string, others []OpenFlowSwitch) error {
	for _, p := range others {
		same := o.TLS == p.TLS || o.TLS != nil && p.TLS != nil && *o.TLS == *p.TLS
		if o.Listen.IsValid() && o.Listen == p.Listen && !same {
			return fieldf(path+".openflow.tls", "is not that of switch %q, which connects to %s too: all there have the same", p.Name, o.Listen)
		}
	}
	return nil
}

func checkSwitchAmount(path string, n, most int) error {
	if n < minSwitchCapacity || n > most {
		return fieldf(path, "%d is not between %d and %d: state how many of the switch leases may have", n, minSwitchCapacity, most)
	}
	return nil
}

func (p SlowPath) check(path string) error {
	for i, a := range p.Actions {
		if !slices.Contains(SwitchActions, a) {
			return fieldf(at(path+".actions", i), "%q is no action of Sublet's entries: they have %s", a, strings.Join(SwitchActions, ", "))
		}
	}
	switch {
	case len(p.Actions) == 0 && p.PPS == 0 && p.Latency == 0:
		return nil
	case len(p.Actions) == 0:
		return fieldf(path+".actions", "is missing: state what leads packets there, of %s", strings.Join(SwitchActions, ", "))
	case p.PPS < 1 || p.PPS > 1e9:
		return fieldf(path+".pps", "%d is not between 1 and 1000000000: state how many packets a second the switch carries there", p.PPS)
	}
	return checkLatency(path+".latency", p.Latency)
}

// checkSwitchPorts wants a port of its own for each link that ends at a switch.
func (s Substrate) checkSwitchPorts(path string, o OpenFlowSwitch) error {
	users := make(map[uint32]string)
	for _, link := range sortedKeys(o.Ports) {
		here, port := key(path+".ports", link), o.Ports[link]
		l, ok := s.LinkOf(link)
		switch other, twice := users[port]; {
		case !ok || l.Ends[0] != o.Name && l.Ends[1] != o.Name:
			return fieldf(here, "no link %q ends at switch %q", link, o.Name)
		case port < 1 || port > MaxOpenFlowPort:
			return fieldf(here, "%d is not between 1 and %d: state the OpenFlow number of the port", port, uint32(MaxOpenFlowPort))
		case twice:
			return fieldf(here, "port %d is that of link %q already: every link has its own", port, other)
		}
		users[port] = link
	}
	if err := s.checkSwitchQueues(path, o); err != nil {
		return err
	}
	for _, l := range s.Links {
		if _, stated := o.Ports[l.Name]; !stated && slices.Contains(l.Ends[:], o.Name) {
			return fieldf(path+".ports", "link %q ends at this switch: state the OpenFlow number of its port, such as {%s: 1}", l.Name, l.Name)
		}
	}
	return nil
}

// addSlowPaths adds half of what switches take in software to the latency of each
// link there: a path enters by one and leaves by another.
func (s *Substrate) addSlowPaths() {
	for _, o := range s.OpenFlow {
		if !o.SlowPath.Slows() {
			continue
		}
		for i := range s.Links {
			if slices.Contains(s.Links[i].Ends[:], o.Name) {
				s.Links[i].Latency += o.SlowPath.Latency / 2
			}
		}
	}
}
