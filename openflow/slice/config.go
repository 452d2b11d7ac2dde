package slice

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
)

// Slice is a part of a switch.
type Slice struct {
	Name        string
	Controllers []channel.Target
	Default     bool         // it has the packets that no other slice has, at all ports
	Ports       []uint32     // numbers; none: all
	Match       []of13.Field // of its packets, without their port, in the order of prerequisites
	Tables      int          // tables 0 to Tables-1
	Entries     int          // most in all of them
	Groups      int
	Meters      int
	Rate        int64 // bit/s of all its packets together; 0: any
}

// Config of a Proxy.
type Config struct {
	Switch channel.Target // where the switch is, or connects to
	Slices []Slice
	TLS    *tls.Config // for the switch and controllers that ask for it
	Memory Memory      // nil: the switch is emptied when the proxy or the switch begins anew
	Log    func(error)
}

// mostTables is what a switch has (OpenFlow 1.3.5, 5.1); the proxy needs one.
const mostTables = int(of13.TableMax) + 1

// Check says what is wrong with a configuration.
func (c *Config) Check() error {
	tables, defaults := 1, 0
	for i := range c.Slices {
		s := &c.Slices[i]
		if err := s.check(); err != nil {
			return fmt.Errorf("slice %s: %w", s.Name, err)
		}
		for _, o := range c.Slices[:i] {
			switch {
			case o.Name == s.Name:
				return fmt.Errorf("slice %s: there are two of that name", s.Name)
			case !o.Default && !s.Default && !apart(&o, s):
				return fmt.Errorf("slice %s: some packets are also of slice %s: state ports or fields that tell them apart", s.Name, o.Name)
			}
		}
		tables += s.Tables
		if s.Default {
			defaults++
		}
	}
	switch {
	case len(c.Slices) == 0:
		return errors.New("slices: state one, with its controller")
	case defaults > 1:
		return errors.New("slices: only one may be the default")
	case tables > mostTables:
		return fmt.Errorf("slices: they have %d tables together: a switch has %d, of which one is needed to tell slices apart", tables-1, mostTables)
	}
	return nil
}

func (s *Slice) check() error {
	switch {
	case s.Name == "":
		return errors.New("state its name")
	case len(s.Controllers) == 0:
		return errors.New("state its controller, such as tcp:192.0.2.1:6653")
	case s.Default && len(s.Ports)+len(s.Match) > 0:
		return errors.New("it is the default: it has what no other slice has, and states neither ports nor match")
	case !s.Default && len(s.Ports)+len(s.Match) == 0:
		return errors.New("state its ports, its match, or that it is the default")
	case s.Tables < 1 || s.Entries < 1 || s.Groups < 0 || s.Meters < 0:
		return errors.New("it needs a table and an entry at least")
	}
	for i, p := range s.Ports {
		if p == 0 || p > of13.PortMax && p != of13.PortLocal || slices.Contains(s.Ports[:i], p) {
			return fmt.Errorf("ports: %d is no port, or stands twice", p)
		}
	}
	for _, f := range s.Match {
		if f.ID == of13.InPort || f.ID == of13.InPhyPort || f.ID == of13.Metadata {
			return fmt.Errorf("match: %s is not of packets: state ports", of13.Fields[f.ID].Name)
		}
	}
	return errors.Join(s.checkRate(), wellFormed(s.Match))
}

// wellFormed says what is wrong with fields taken together.
func wellFormed(fields []of13.Field) error {
	raw, err := of13.Append(nil, 0, &of13.FlowMod{Match: of13.Match{Fields: fields}})
	if err == nil {
		_, _, err = new(of13.Decoder).Decode(raw)
	}
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	return nil
}

// apart says whether two slices have no packet in common.
func apart(a, b *Slice) bool {
	if len(a.Ports) > 0 && len(b.Ports) > 0 && !slices.ContainsFunc(a.Ports, func(p uint32) bool { return slices.Contains(b.Ports, p) }) {
		return true
	}
	return contradict(a.Match, b.Match)
}

// contradict says whether no packet has the fields of both lists.
func contradict(a, b []of13.Field) bool {
	for _, f := range a {
		for _, g := range b {
			if f.ID == g.ID && f.Value.And(f.Mask).And(g.Mask) != g.Value.And(g.Mask).And(f.Mask) {
				return true
			}
		}
	}
	return false
}
