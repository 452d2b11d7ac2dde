package vnet

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Lookups by which a switch of kind vxswitch forwards (vxswitch/lookup).
const (
	LookupLearning   = "learning"   // stations are learned from what they send
	LookupStatic     = "static"     // planned stations and those of the table, nobody else
	LookupPrefix     = "prefix"     // the longest prefix of the table that has the destination
	LookupClassifier = "classifier" // the first row of the table that a frame matches, then as learning
)

// Lookups are all of them.
var Lookups = []string{LookupLearning, LookupStatic, LookupPrefix, LookupClassifier}

// SwitchRow is a row of a switch's table. What it does not state matches everything.
type SwitchRow struct {
	MAC      string       `json:"mac,omitempty"` // destination
	Src      netip.Prefix `json:"src,omitzero"`
	Dst      netip.Prefix `json:"dst,omitzero"`
	VLAN     uint16       `json:"vlan,omitempty"`
	DSCP     *uint8       `json:"dscp,omitempty"`
	Protocol string       `json:"proto,omitempty"`    // tcp, udp, icmp or icmp6
	SrcPort  uint16       `json:"src_port,omitempty"` // of TCP or UDP
	DstPort  uint16       `json:"dst_port,omitempty"`
	To       []string     `json:"to,omitempty"` // links; none: dropped
}

// SwitchSlice is a part of a switch of kind vxswitch on the same ports: frames that it
// claims are its own, with buffers, scheduler and lookup of its own. All other frames
// are the switch's.
type SwitchSlice struct {
	Name      string      `json:"name"`
	Claim     SwitchClaim `json:"claim"`
	Share     int         `json:"share_percent"` // of each output's capacity
	Lend      int         `json:"lend_percent,omitempty"`
	Buffer    Bytes       `json:"buffer_bytes,omitempty"` // of each crosspoint; 0: the switch's
	Scheduler string      `json:"scheduler,omitempty"`    // "": the switch's
	Manager   string      `json:"manager,omitempty"`      // "": the switch's
	Lookup    string      `json:"lookup,omitempty"`       // "": learning
	Table     []SwitchRow `json:"table,omitempty"`
}

// SwitchClaim is what a frame has that belongs to a slice: one of these.
type SwitchClaim struct {
	VLAN uint16       `json:"vlan,omitempty"`
	DSCP *uint8       `json:"dscp,omitempty"`
	Dst  netip.Prefix `json:"dst,omitzero"`
	MAC  string       `json:"mac,omitempty"` // source
}

// Bounds of lookups and slices.
const (
	MaxSwitchRows  = 64
	MaxSlices      = 8
	MaxDSCP        = 63
	MaxSlicesShare = 95 // percent of an output's capacity for all slices together
)

// RowProtocols are the protocols that a row may name, by their numbers.
var RowProtocols = map[string]uint8{"icmp": 1, "tcp": 6, "udp": 17, "icmp6": 58}

// lookups checks how a switch of kind vxswitch forwards, and its slices.
func (s VirtualSwitch) lookups(path string) error {
	if err := checkLend(path, s.Lend); err != nil {
		return err
	}
	if err := checkLookup(path, s.Lookup, s.Table); err != nil {
		return err
	}
	if len(s.Slices) > MaxSlices {
		return fieldf(path+".slices", "%d slices, more than %d: use several switches", len(s.Slices), MaxSlices)
	}
	sum := 0
	for i, slice := range s.Slices {
		where := at(path+".slices", i)
		if err := s.slice(where, slice, s.Slices[:i]); err != nil {
			return err
		}
		if sum += slice.Share; sum > MaxSlicesShare {
			return fieldf(where+".share", "slices have %d %% of each output together, more than %d: leave the switch a part", sum, MaxSlicesShare)
		}
	}
	return s.slicedPorts(path)
}

// slicedPorts refuses what would bind the input of all slices by one of them.
func (s VirtualSwitch) slicedPorts(path string) error {
	for _, link := range sortedKeys(s.Ports) {
		if len(s.Slices) > 0 && s.Ports[link].In != 0 {
			return fieldf(key(path+".ports", link)+".in", "is for switches without slices, whose outputs are divided: leave it out")
		}
	}
	return nil
}

func (s VirtualSwitch) slice(path string, x SwitchSlice, before []SwitchSlice) error {
	if err := checkName(path+".name", x.Name); err != nil {
		return err
	}
	for _, b := range before {
		if b.Name == x.Name {
			return fieldf(path+".name", "%q is there already: names differ", x.Name)
		}
		if b.Claim.String() == x.Claim.String() {
			return fieldf(path+".claim", "%s is claimed by slice %q: claims differ", x.Claim, b.Name)
		}
	}
	if x.Share < 1 || x.Share > MaxSlicesShare {
		return fieldf(path+".share", "%d %% is not between 1 and %d: state a part of each output", x.Share, MaxSlicesShare)
	}
	if err := x.Claim.check(path + ".claim"); err != nil {
		return err
	}
	if err := checkLend(path, x.Lend); err != nil {
		return err
	}
	if err := checkScheduler(path+".scheduler", x.Scheduler); err != nil {
		return err
	}
	if err := checkQueue(path, x.Buffer, x.Manager); err != nil {
		return err
	}
	return checkLookup(path, x.Lookup, x.Table)
}

func checkLend(path string, lend int) error {
	if lend < 0 || lend > 100 {
		return fieldf(path+".lend", "%d %% is not between 0 and 100: state the part of idle buffers that others may use", lend)
	}
	return nil
}

// check says what is wrong with a claim: it names exactly one field.
func (c SwitchClaim) check(path string) error {
	stated := 0
	for _, is := range []bool{c.VLAN != 0, c.DSCP != nil, c.Dst.IsValid(), c.MAC != ""} {
		if is {
			stated++
		}
	}
	if stated != 1 {
		return fieldf(path, "names %d of vlan, dscp, dst and mac: name one", stated)
	}
	return checkFields(path, c.MAC, c.VLAN, c.DSCP)
}

func (c SwitchClaim) String() string {
	switch {
	case c.VLAN != 0:
		return fmt.Sprintf("vlan %d", c.VLAN)
	case c.DSCP != nil:
		return fmt.Sprintf("dscp %d", *c.DSCP)
	case c.MAC != "":
		return "mac " + strings.ToLower(c.MAC)
	}
	return "dst " + c.Dst.Masked().String()
}

// stationMAC are addresses of six bytes, of which the first is even: no group's.
var stationMAC = regexp.MustCompile(`^[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}$`)

func checkFields(path, mac string, vlan uint16, dscp *uint8) error {
	if mac != "" {
		if !stationMAC.MatchString(mac) {
			return fieldf(path+".mac", "%q is no MAC address of a station such as 02:00:00:00:00:01", mac)
		}
	}
	if vlan > MaxVLAN {
		return fieldf(path+".vlan", "%d is not between 1 and %d", vlan, MaxVLAN)
	}
	if dscp != nil && *dscp > MaxDSCP {
		return fieldf(path+".dscp", "%d is not between 0 and %d", *dscp, MaxDSCP)
	}
	return nil
}

// checkLookup checks a table by the lookup that reads it.
func checkLookup(path, lookup string, table []SwitchRow) error {
	if lookup != "" && !slices.Contains(Lookups, lookup) {
		return fieldf(path+".lookup", "no lookup %q: there are %s", lookup, strings.Join(Lookups, ", "))
	}
	if (lookup == "" || lookup == LookupLearning) && len(table) > 0 {
		return fieldf(path+".table", "is not read by learning: state lookup: static, prefix or classifier, or leave it out")
	}
	if (lookup == LookupPrefix || lookup == LookupClassifier) && len(table) == 0 {
		return fieldf(path+".lookup", "%s reads a table: state one", lookup)
	}
	if len(table) > MaxSwitchRows {
		return fieldf(path+".table", "%d rows, more than %d", len(table), MaxSwitchRows)
	}
	for i, row := range table {
		if err := row.check(at(path+".table", i), lookup); err != nil {
			return err
		}
		if lookup != LookupClassifier && slices.ContainsFunc(table[:i], func(o SwitchRow) bool { return o.same(row) }) {
			return fieldf(at(path+".table", i), "is there already: state each once")
		}
	}
	return nil
}

// same says that two rows of static or prefix say where the same frames go.
func (r SwitchRow) same(o SwitchRow) bool {
	return strings.EqualFold(r.MAC, o.MAC) && r.Dst.Masked() == o.Dst.Masked()
}

func (r SwitchRow) check(path, lookup string) error {
	if err := checkFields(path, r.MAC, r.VLAN, r.DSCP); err != nil {
		return err
	}
	if _, ok := RowProtocols[r.Protocol]; r.Protocol != "" && !ok {
		return fieldf(path+".proto", "%q is not one of icmp, icmp6, tcp, udp", r.Protocol)
	}
	if r.Protocol != "tcp" && r.Protocol != "udp" && (r.SrcPort != 0 || r.DstPort != 0) {
		return fieldf(path+".proto", "ports are of tcp or udp: state which")
	}
	for i, link := range r.To {
		if slices.Contains(r.To[:i], link) {
			return fieldf(at(path+".to", i), "%q is there already: name each port once", link)
		}
	}
	rest := r
	switch rest.To = nil; lookup {
	case LookupStatic:
		if rest.MAC = ""; r.MAC == "" || len(r.To) != 1 || !rest.everything() {
			return fieldf(path, "a row of static is a mac and one port to which it leads")
		}
	case LookupPrefix:
		if rest.Dst = (netip.Prefix{}); !r.Dst.IsValid() || !rest.everything() {
			return fieldf(path, "a row of prefix is a dst and the ports to which it leads")
		}
	}
	return nil
}

// everything says that a row states nothing.
func (r SwitchRow) everything() bool {
	return r.MAC == "" && r.Protocol == "" && r.VLAN == 0 && r.DSCP == nil && r.SrcPort == 0 && r.DstPort == 0 &&
		!r.Src.IsValid() && !r.Dst.IsValid() && len(r.To) == 0
}

// States says whether a row states anything.
func (r SwitchRow) States() bool { return !r.everything() }

// tables are all of a switch, by where they stand below it.
func (s VirtualSwitch) tables() map[string][]SwitchRow {
	all := map[string][]SwitchRow{".table": s.Table}
	for i, x := range s.Slices {
		all[at(".slices", i)+".table"] = x.Table
	}
	return all
}

// rows checks that tables lead to ports of the switch.
func (c *checker) rows(path string, s VirtualSwitch) error {
	tables := s.tables()
	for _, where := range sortedKeys(tables) {
		for i, row := range tables[where] {
			for j, link := range row.To {
				if err := c.port(at(at(path+where, i)+".to", j), link, s.Name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// BufferOf is what a slice holds between two ports.
func (x SwitchSlice) BufferOf(s VirtualSwitch) Bytes {
	if x.Buffer != 0 {
		return x.Buffer
	}
	return s.BufferOf("", "")
}
