package vnet

import (
	"net/netip"
	"slices"
	"strings"
)

// FlowSlice is a part of a switch of kind openflow that has controllers of its own: the
// packets of some ports, or with some headers, or both. No packet is of two.
type FlowSlice struct {
	Name        string    `json:"name"`
	Controllers []string  `json:"controllers"`       // see ControllerTarget
	Default     bool      `json:"default,omitempty"` // it has the packets that no other slice has
	Links       []string  `json:"links,omitempty"`   // of its ports; none: all
	Match       SwitchRow `json:"match,omitzero"`    // of its packets, without To
	Tables      int       `json:"tables,omitempty"`  // 0: DefaultTables, and so on
	Entries     int       `json:"entries,omitempty"`
	Groups      int       `json:"groups,omitempty"`
	Meters      int       `json:"meters,omitempty"`
}

// MaxFlowSlices bounds the slices of a switch.
const MaxFlowSlices = 16

// maxSlicedTables is what slices of a switch have together: one table of 255 tells
// them apart (OpenFlow 1.3.5, section 7.3.1).
const maxSlicedTables = MaxTables

// Sized gives a slice with the defaults of what it does not state.
func (x FlowSlice) Sized() FlowSlice {
	o := VirtualSwitch{OpenFlowOptions: OpenFlowOptions{Tables: x.Tables, Entries: x.Entries, Groups: x.Groups, Meters: x.Meters}}.OpenFlow()
	x.Tables, x.Entries, x.Groups, x.Meters = o.Tables, o.Entries, o.Groups, o.Meters
	return x
}

// sliced is the sizes of a switch that states none: what its slices have together.
func (o *OpenFlowOptions) sliced() {
	var sum FlowSlice
	for _, x := range o.FlowSlices {
		x = x.Sized()
		sum.Tables, sum.Entries, sum.Groups, sum.Meters = sum.Tables+x.Tables, sum.Entries+x.Entries, sum.Groups+x.Groups, sum.Meters+x.Meters
	}
	for _, n := range []struct {
		value *int
		sum   int
	}{{&o.Tables, sum.Tables}, {&o.Entries, sum.Entries}, {&o.Groups, sum.Groups}, {&o.Meters, sum.Meters}} {
		if *n.value == 0 {
			*n.value = n.sum
		}
	}
}

// AllControllers are those of a switch and of its slices.
func (o OpenFlowOptions) AllControllers() []string {
	list := slices.Clone(o.Controllers)
	for _, x := range o.FlowSlices {
		list = append(list, x.Controllers...)
	}
	return list
}

// flowSlices checks the slices of a switch.
func (s VirtualSwitch) flowSlices(path string) error {
	path += ".flow_slices"
	if len(s.FlowSlices) > MaxFlowSlices {
		return fieldf(path, "%d slices are more than %d: keep fewer", len(s.FlowSlices), MaxFlowSlices)
	}
	for i, x := range s.FlowSlices {
		if err := x.check(at(path, i)); err != nil {
			return err
		}
		for _, o := range s.FlowSlices[:i] {
			if err := x.apart(at(path, i), o); err != nil {
				return err
			}
		}
	}
	return s.slicesFit(path)
}

// slicesFit checks that slices together have no more than the switch.
func (s VirtualSwitch) slicesFit(path string) error {
	has, need := s.OpenFlow(), OpenFlowOptions{FlowSlices: s.FlowSlices}
	need.sliced()
	for _, n := range []struct {
		what            string
		need, has, most int
	}{
		{"tables", need.Tables, has.Tables, maxSlicedTables}, {"entries", need.Entries, has.Entries, MaxEntries},
		{"groups", need.Groups, has.Groups, MaxGroups}, {"meters", need.Meters, has.Meters, MaxGroups},
	} {
		if n.need > min(n.has, n.most) {
			return fieldf(path, "together they have %d %s, and the switch has %d: state fewer %s of slices", n.need, n.what, min(n.has, n.most), n.what)
		}
	}
	return nil
}

func (x FlowSlice) check(path string) error {
	if err := CheckName(x.Name); err != nil {
		return &FieldError{Path: path + ".name", Problem: err.Error()}
	}
	switch {
	case len(x.Controllers) == 0:
		return fieldf(path+".controller", "a slice needs a controller: state one such as tcp:NODE:6653, or ptcp:6653 to listen")
	case len(x.Controllers) > MaxControllers:
		return fieldf(path+".controller", "%d controllers are more than %d: keep fewer", len(x.Controllers), MaxControllers)
	case x.Default && (len(x.Links) > 0 || !x.Match.everything()):
		return fieldf(path+".default", "the default slice has what no other has: leave out links and match")
	case !x.Default && len(x.Links) == 0 && x.Match.everything():
		return fieldf(path, "state its links, its match, or that it is the default")
	case len(x.Match.To) > 0:
		return fieldf(path+".match.to", "where packets go its controller says: leave it out")
	}
	for i, c := range x.Controllers {
		if err := checkController(at(path+".controller", i), c); err != nil {
			return err
		}
	}
	for i, link := range x.Links {
		if slices.Contains(x.Links[:i], link) {
			return fieldf(at(path+".links", i), "%q is there already: name each link once", link)
		}
	}
	if err := x.sizes(path); err != nil {
		return err
	}
	if err := x.Match.check(path+".match", ""); err != nil {
		return err
	}
	return x.Match.oneFamily(path + ".match")
}

func (x FlowSlice) sizes(path string) error {
	for _, n := range []struct {
		field       string
		value, most int
	}{{".tables", x.Tables, MaxTables}, {".entries", x.Entries, MaxEntries}, {".groups", x.Groups, MaxGroups}, {".meters", x.Meters, MaxGroups}} {
		if n.value < 0 || n.value > n.most {
			return fieldf(path+n.field, "%d is not between 1 and %d", n.value, n.most)
		}
	}
	return nil
}

// family is 4 or 6, the version of IP that a row's packets have; 0: any.
func (r SwitchRow) family() int {
	for _, p := range []netip.Prefix{r.Src, r.Dst} {
		switch {
		case p.IsValid() && p.Addr().Is4():
			return 4
		case p.IsValid():
			return 6
		}
	}
	switch r.Protocol {
	case "icmp":
		return 4
	case "icmp6":
		return 6
	}
	return 0
}

// oneFamily wants packets of one version of IP where a field has one.
func (r SwitchRow) oneFamily(path string) error {
	f := r.family()
	for _, p := range []netip.Prefix{r.Src, r.Dst} {
		if p.IsValid() && (f == 4) != p.Addr().Is4() {
			return fieldf(path, "no packet has addresses of IPv4 and IPv6: state one of src and dst, or both of one version")
		}
	}
	if r.Protocol == "icmp" && f == 6 || r.Protocol == "icmp6" && f == 4 {
		return fieldf(path+".proto", "%s is not of that version of IP", r.Protocol)
	}
	if f == 0 && (r.DSCP != nil || r.Protocol != "") {
		return fieldf(path, "dscp, tcp and udp are of IPv4 or of IPv6: state src or dst, such as 0.0.0.0/0 or ::/0")
	}
	return nil
}

// apart checks that two slices have nothing in common.
func (x FlowSlice) apart(path string, o FlowSlice) error {
	switch {
	case x.Name == o.Name:
		return fieldf(path+".name", "%q is there already: name each slice once", x.Name)
	case x.Default && o.Default:
		return fieldf(path+".default", "slice %q is the default already: there is one", o.Name)
	}
	for i, c := range x.Controllers {
		if host, _, _ := ControllerTarget(c); host == "" && slices.Contains(o.Controllers, c) {
			return fieldf(at(path+".controller", i), "slice %q listens there: state another port", o.Name)
		}
	}
	if x.Default || o.Default || len(x.Links) > 0 && len(o.Links) > 0 && !slices.ContainsFunc(x.Links, func(l string) bool { return slices.Contains(o.Links, l) }) || x.Match.contradicts(o.Match) {
		return nil
	}
	return fieldf(path, "some packets are also of slice %q: state links or a match that tell them apart", o.Name)
}

// contradicts says whether no packet meets both rows.
func (r SwitchRow) contradicts(o SwitchRow) bool {
	differ := func(a, b netip.Prefix) bool { return a.IsValid() && b.IsValid() && !a.Overlaps(b) }
	return r.MAC != "" && o.MAC != "" && !strings.EqualFold(r.MAC, o.MAC) || differ(r.Src, o.Src) || differ(r.Dst, o.Dst) ||
		r.VLAN != 0 && o.VLAN != 0 && r.VLAN != o.VLAN || r.DSCP != nil && o.DSCP != nil && *r.DSCP != *o.DSCP ||
		r.Protocol != "" && o.Protocol != "" && r.Protocol != o.Protocol || r.family() != 0 && o.family() != 0 && r.family() != o.family() ||
		r.SrcPort != 0 && o.SrcPort != 0 && r.SrcPort != o.SrcPort || r.DstPort != 0 && o.DstPort != 0 && r.DstPort != o.DstPort
}

// flowLinks checks that slices have ports of their switch.
func (c *checker) flowLinks(path string, s VirtualSwitch) error {
	for i, x := range s.FlowSlices {
		for j, link := range x.Links {
			where := at(at(path+".flow_slices", i)+".links", j)
			if err := c.port(where, link, s.Name); err != nil {
				return err
			}
			if c.links[link].Control {
				return fieldf(where, "link %q is to the controller, and no port: name another one", link)
			}
		}
	}
	return nil
}
