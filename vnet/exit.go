package vnet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Exit is an interface of a host that the operator offers to networks of layer 2:
// a switch that takes it (VirtualSwitch.Access) has one port more, which leads to
// a VLAN of that interface that no other lease has meanwhile.
type Exit struct {
	Name      string    `json:"name"`
	Host      HostID    `json:"host"`
	Interface string    `json:"interface"`     // of the host; no substrate link's
	VLANs     VLANRange `json:"vlan,omitzero"` // zero: frames without a tag, for one lease at a time
	Capacity  Rate      `json:"capacity_bps"`
}

// MaxExits is how many exits a substrate may have.
const MaxExits = 256

// MaxVLAN is the highest identifier that frames may bear (IEEE 802.1Q-2018,
// table 9-2).
const MaxVLAN = 4094

// VLANRange is identifiers from First to Last, written as 100-199, or as one.
type VLANRange struct{ First, Last uint16 }

// UnmarshalText reads what MarshalText writes.
func (r *VLANRange) UnmarshalText(text []byte) error {
	first, last, isRange := strings.Cut(string(text), "-")
	if !isRange {
		last = first
	}
	low, err := strconv.ParseUint(first, 10, 16)
	high, too := strconv.ParseUint(last, 10, 16)
	if err != nil || too != nil || low == 0 || high < low || high > MaxVLAN {
		return fmt.Errorf("%q is no range of VLANs: write one between 1 and %d such as 100-199, or leave it out for frames without a tag", text, MaxVLAN)
	}
	*r = VLANRange{uint16(low), uint16(high)}
	return nil
}

// MarshalText writes the range.
func (r VLANRange) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r VLANRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Contains says whether an identifier lies in the range; 0 is that of no tag.
func (r VLANRange) Contains(vlan uint16) bool { return r.First <= vlan && vlan <= r.Last }

// Size is how many leases can have one at a time.
func (r VLANRange) Size() int { return int(r.Last) - int(r.First) + 1 }

// ExitOf finds an exit by name.
func (s Substrate) ExitOf(name string) (Exit, bool) {
	i := slices.IndexFunc(s.Exits, func(x Exit) bool { return x.Name == name })
	if i < 0 {
		return Exit{}, false
	}
	return s.Exits[i], true
}

// checkExits checks the exits, once links and ways out are right.
func (s Substrate) checkExits() error {
	if len(s.Exits) > MaxExits {
		return fieldf("exits", "%d exits are more than %d: leave some out", len(s.Exits), MaxExits)
	}
	for i, x := range s.Exits {
		path := at("exits", i)
		if err := x.check(path); err != nil {
			return err
		}
		if _, ok := s.HostOf(string(x.Host)); !ok {
			return fieldf(path+".host", "there is no host %q: state where the interface is", x.Host)
		}
		for j, other := range s.Exits[:i] {
			if other.Name == x.Name {
				return fieldf(path+".name", "there is an exit %q already: choose another name", x.Name)
			}
			if other.Host == x.Host && other.Interface == x.Interface && (other.VLANs.Contains(x.VLANs.First) || x.VLANs.Contains(other.VLANs.First)) {
				return fieldf(path+".vlan", "%s has some of them on %s, too: a VLAN is of one exit", at("exits", j), x.Interface)
			}
		}
		if err := s.checkExitAlone(path, x); err != nil {
			return err
		}
	}
	return nil
}

// checkExitAlone keeps exits off interfaces whose frames are others'.
func (s Substrate) checkExitAlone(path string, x Exit) error {
	for _, l := range s.Links {
		for end, port := range l.Ports {
			if l.Ends[end] == string(x.Host) && port.Interface == x.Interface {
				return fieldf(path+".interface", "%s carries link %s: an exit needs another interface", x.Interface, l.Name)
			}
		}
	}
	for i, n := range s.NAT {
		if n.Host == x.Host && n.Interface == x.Interface && x.VLANs == (VLANRange{}) {
			return fieldf(path+".interface", "%s is that of %s, which needs its frames without a tag: state vlan, or another interface", x.Interface, at("nat", i))
		}
	}
	return nil
}

// check checks an exit by itself.
func (x Exit) check(path string) error {
	if err := checkName(path+".name", x.Name); err != nil {
		return err
	}
	if !interfacePattern().MatchString(x.Interface) {
		return fieldf(path+".interface", "%q is not a device name: use at most 15 letters, digits, '.', '_' and '-'", x.Interface)
	}
	if r := x.VLANs; r != (VLANRange{}) && (r.First == 0 || r.Last < r.First || r.Last > MaxVLAN) {
		return fieldf(path+".vlan", "%s is no range between 1 and %d: leave it out for frames without a tag", r, MaxVLAN)
	}
	if x.Capacity == 0 {
		return fieldf(path+".capacity", "is missing: state the rate per direction, such as 1Gbit")
	}
	return checkRate(path+".capacity", x.Capacity, false)
}

// checkAccess checks what a switch says of its access to an exit.
func (s VirtualSwitch) checkAccess(path string) error {
	switch {
	case s.Access == "" && s.VLAN != 0:
		return fieldf(path+".vlan", "needs an exit: state access too")
	case s.Access == "":
		return nil
	case s.Kind != SwitchKernel:
		return fieldf(path+".kind", "a switch with access to an exit is of kind kernel: leave it out, and link one of kind %s to it", s.Kind)
	case s.Host != "" || s.Site != "":
		return fieldf(path+".access", "the exit says where the switch is: leave out host and site")
	case s.VLAN > MaxVLAN:
		return fieldf(path+".vlan", "%d is not between 1 and %d: leave it out, and one is chosen", s.VLAN, MaxVLAN)
	}
	return checkName(path+".access", s.Access)
}

// oneAccess refuses networks of layer 2 with two exits: what is outside might
// join them too, and frames would go round.
func oneAccess(path string, t Topology) error {
	access := make(map[string]bool)
	for _, s := range t.Switches {
		access[s.Name] = s.Access != ""
	}
	for _, segment := range t.Segments() {
		first := ""
		for _, name := range segment.Switches {
			if access[name] && first != "" {
				return fieldf(path, "%s and %s both have access to an exit, and are linked: what is outside could close a loop; put a router between them", first, name)
			}
			if access[name] {
				first = name
			}
		}
	}
	return nil
}
