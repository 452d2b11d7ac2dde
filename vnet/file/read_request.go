package file

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"sublet/vnet"
)

// request turns the form into vnet's words. Errors are *vnet.FieldError, for
// what a form can say and vnet cannot.
func (f request) request() (vnet.Request, error) {
	r := vnet.Request{
		Network: vnet.VNetID(f.Network), Tenant: vnet.TenantID(f.Tenant),
		Colocate: vnet.Colocation(f.Colocate), Objective: vnet.Objective(f.Objective),
	}
	if err := f.Window.into(&r); err != nil {
		return r, err
	}
	r.Movable, r.IPv6, r.Labels, r.Verify = f.Movable, f.IPv6, some(f.Labels), vnet.Verification(f.Verify)
	for _, a := range f.Axes {
		r.Negotiable = append(r.Negotiable, vnet.Axis(a))
	}
	var err error
	if r.Topology, err = f.topology.topology(""); err != nil {
		return r, err
	}
	if err := f.chains(&r); err != nil {
		return r, err
	}
	for _, c := range f.Classes {
		r.Classes = append(r.Classes, vnet.TrafficClass{Name: string(c.Name), Match: c.Match.flow()})
	}
	if err := f.Internet.into(&r.Topology); err != nil {
		return r, err
	}
	exits := make(accesses)
	if err := exits.into(&r.Topology, f.Links, ""); err != nil {
		return r, err
	}
	for i, s := range f.Stages {
		made, err := s.stage("stages[" + strconv.Itoa(i) + "].")
		if err != nil {
			return r, err
		}
		exits.forget(made.Remove)
		if s.Add != nil {
			if err := exits.into(&made.Add, s.Add.Links, index("stages", i)+".add."); err != nil {
				return r, err
			}
		}
		if err := s.bring(&r, &made, index("stages", i)); err != nil {
			return r, err
		}
		s.takeAway(r, &made)
		r.Stages = append(r.Stages, made)
	}
	return r, nil
}

func (w *window) into(r *vnet.Request) error {
	if w == nil {
		return nil
	}
	if w.Start != nil {
		r.Start = time.Time(*w.Start)
	}
	if w.Before != nil {
		r.Before = time.Time(*w.Before)
	}
	if w.For != nil {
		if *w.For == 0 {
			return &vnet.FieldError{Path: "window.for", Problem: "0s is no time: leave it out to lease until released"}
		}
		r.For = time.Duration(*w.For)
	}
	if w.End == nil {
		return nil
	}
	switch {
	case w.For != nil:
		return &vnet.FieldError{Path: "window.end", Problem: "for is stated too: keep one of them"}
	case w.Before != nil:
		return &vnet.FieldError{Path: "window.end", Problem: "before lets the start vary: state for instead of end"}
	case w.Start == nil:
		return &vnet.FieldError{Path: "window.end", Problem: "needs a start: state start, or for instead of end"}
	case !time.Time(*w.End).After(r.Start):
		return &vnet.FieldError{Path: "window.end", Problem: "is not after start: state a later end"}
	}
	r.For = time.Time(*w.End).Sub(r.Start)
	return nil
}

// topology converts what is written at path, "" or ending in a dot.
func (f topology) topology(path string) (vnet.Topology, error) {
	var top vnet.Topology
	for _, n := range f.Nodes {
		top.Nodes = append(top.Nodes, n.node())
	}
	for i, n := range f.Routers {
		made, err := n.router(index(path+"routers", i))
		if err != nil {
			return top, err
		}
		top.Routers = append(top.Routers, made)
	}
	for i, s := range f.Switches {
		made, err := s.vswitch(path + "switches[" + strconv.Itoa(i) + "]")
		if err != nil {
			return top, err
		}
		top.Switches = append(top.Switches, made)
	}
	for i, l := range f.Links {
		both, err := l.demand.both(path + "links[" + strconv.Itoa(i) + "]")
		if err != nil {
			return top, err
		}
		if l.Area < 0 || l.Area > math.MaxUint32 {
			return top, &vnet.FieldError{Path: path + "links[" + strconv.Itoa(i) + "].area", Problem: "is not between 0 and 4294967295: state an area of OSPF, such as 1"}
		}
		count, order := l.Paths.paths()
		top.Links = append(top.Links, vnet.VirtualLink{
			Name: string(l.Name), Ends: [2]string{l.Ends[0].name(), l.Ends[1].name()}, Bandwidth: both, Latency: time.Duration(l.Latency),
			Paths: count, Order: order, Spread: time.Duration(l.Spread), Control: l.Control, Impair: l.demand.impairment(), Labels: some(l.Labels),
			Down: l.Down != nil && *l.Down,
			Area: uint32(l.Area), Cost: l.Cost, Class: string(l.Class),
			Addresses:  vnet.LinkAddresses{l.Ends[0].Address.prefixes(), l.Ends[1].Address.prefixes()},
			Interfaces: [2]string{l.Ends[0].Interface, l.Ends[1].Interface},
		})
	}
	return top, nil
}

// router converts what is written at path.
func (n router) router(path string) (vnet.VirtualNode, error) {
	made := n.node.node()
	made.Protocol, made.NAT = vnet.Protocol(n.Protocol), string(n.NAT)
	made.AS, made.Publish = uint32(n.AS), n.Publish
	if n.AS < 0 || n.AS > vnet.MaxAS {
		return made, &vnet.FieldError{Path: path + ".as", Problem: "is not between 1 and 4294967294: state the router's autonomous system, such as 65001"}
	}
	for i, b := range n.Neighbors {
		if b.AS < 1 || b.AS > vnet.MaxAS {
			return made, &vnet.FieldError{Path: index(path+".neighbors", i) + ".as", Problem: "is not between 1 and 4294967294: state the neighbour's autonomous system, such as 65001"}
		}
		made.Neighbors = append(made.Neighbors, vnet.Neighbor{Address: netip.Addr(b.Address), AS: uint32(b.AS)})
	}
	if n.FRR != nil && n.FRR.Text != nil {
		made.FRR = string(*n.FRR.Text)
	}
	return made, nil
}

// paths in vnet's words.
func (p *linkPaths) paths() (count int, order vnet.PathOrder) {
	if p == nil {
		return 0, vnet.OrderByFlow
	}
	if order = vnet.PathOrder(p.Order); order == byFlow {
		order = vnet.OrderByFlow
	}
	return p.Count, order
}

// byFlow is vnet.OrderByFlow, written out.
const byFlow = "by-flow"

// prefixes in vnet's words; none stay none.
func (p prefixes) prefixes() (list []netip.Prefix) {
	for _, one := range p {
		list = append(list, netip.Prefix(one))
	}
	return list
}

func (f node) node() vnet.VirtualNode {
	n := vnet.VirtualNode{
		Name: string(f.Name), CPU: vnet.CPU(f.CPU), Memory: vnet.Bytes(f.Memory), Site: string(f.Site),
		Host: vnet.HostID(f.Host), Exclusive: f.Exclusive, Movable: vnet.NodeMove(f.Movable), Join: string(f.Join), Device: f.Device, Labels: some(f.Labels), Setup: f.setup.setup(),
	}
	if f.Address != nil {
		n.Address = netip.Addr(*f.Address)
	}
	return n
}

// vswitch converts the switch written at path.
func (f vswitch) vswitch(path string) (vnet.VirtualSwitch, error) {
	s := vnet.VirtualSwitch{
		Name: string(f.Name), Kind: vnet.SwitchKind(f.Kind), CPU: vnet.CPU(f.CPU), Site: string(f.Site),
		Host: vnet.HostID(f.Host), Ageing: time.Duration(f.Ageing), Labels: some(f.Labels), Access: string(f.Access),
		SwitchEngineOptions: vnet.SwitchEngineOptions{Scheduler: f.Scheduler, Manager: f.Manager},
	}
	if f.VLAN != nil {
		if *f.VLAN < 1 || *f.VLAN > vnet.MaxVLAN {
			return s, &vnet.FieldError{Path: path + ".vlan", Problem: fmt.Sprintf("%d is not between 1 and %d: leave it out, and one is chosen", *f.VLAN, vnet.MaxVLAN)}
		}
		s.VLAN = uint16(*f.VLAN)
	}
	if err := cmp.Or(f.queues(path, &s), f.sharing(path, &s), f.openFlow(path, &s.OpenFlowOptions)); err != nil {
		return s, err
	}
	for _, link := range slices.Sorted(maps.Keys(f.Ports)) {
		if s.Ports == nil {
			s.Ports = make(map[string]vnet.SwitchPort)
		}
		port, err := f.Ports[link].port(path + ".ports[" + strconv.Quote(link) + "]")
		if err != nil {
			return s, err
		}
		s.Ports[link] = port
	}
	return s, nil
}

// openFlow converts what only switches of kind openflow have. Zeros are refused,
// because vnet's zero is the default.
func (f vswitch) openFlow(path string, o *vnet.OpenFlowOptions) error {
	o.Controllers, o.Fail, o.Datapath, o.Miss, o.TLS = f.Controller, f.Fail, f.Datapath, f.Miss, f.TLS.options()
	o.MeterHold = time.Duration(f.MeterHold)
	for _, n := range []struct {
		field string
		from  *int
		to    *int
	}{
		{".tables", f.Tables, &o.Tables}, {".entries", f.Entries, &o.Entries}, {".groups", f.Groups, &o.Groups},
		{".meters", f.Meters, &o.Meters}, {".packet_in_pps", f.PacketIns, &o.PacketIns}, {".auxiliary", f.Auxiliary, &o.Auxiliary},
	} {
		if n.from == nil {
			continue
		}
		if *n.to = *n.from; *n.to == 0 {
			return &vnet.FieldError{Path: path + n.field, Problem: "0 is none: state at least 1, or leave it out for the default"}
		}
	}
	if f.DatapathID != nil {
		if o.DatapathID = uint64(*f.DatapathID); o.DatapathID == 0 {
			return &vnet.FieldError{Path: path + ".datapath_id", Problem: "0 names no switch: state at least 1, or leave it out"}
		}
	}
	return cmp.Or(f.shares(path, o), f.flowSlices(path, o))
}

// shares converts the queues of ports.
func (f vswitch) shares(path string, o *vnet.OpenFlowOptions) (err error) {
	for i, q := range f.Queues {
		where := path + ".queues[" + strconv.Itoa(i) + "]"
		to := vnet.Queue{Link: string(q.Link), Number: q.Queue}
		if to.Min, err = q.Min.stated(where + ".min"); err != nil {
			return err
		}
		if to.Max, err = q.Max.stated(where + ".max"); err != nil {
			return err
		}
		o.Queues = append(o.Queues, to)
	}
	return nil
}

// queues converts the buffers.
func (f vswitch) queues(path string, s *vnet.VirtualSwitch) (err error) {
	if s.Buffer, err = f.Buffer.stated(path + ".buffer"); err != nil {
		return err
	}
	for i, c := range f.Crosspoints {
		x := vnet.Crosspoint{From: string(c.From), To: string(c.To), Manager: c.Manager}
		if x.Buffer, err = c.Buffer.stated(path + ".crosspoints[" + strconv.Itoa(i) + "].buffer"); err != nil {
			return err
		}
		s.Crosspoints = append(s.Crosspoints, x)
	}
	return nil
}

// stated is a size that is not 0, which is vnet's word for the default.
func (s *size) stated(path string) (vnet.Bytes, error) {
	switch {
	case s == nil:
		return 0, nil
	case *s == 0:
		return 0, &vnet.FieldError{Path: path, Problem: "0 holds nothing: state a size, or leave it out"}
	}
	return vnet.Bytes(*s), nil
}

// stated is a rate that is not 0, which is vnet's word for the default.
func (r *rate) stated(path string) (vnet.Rate, error) {
	switch {
	case r == nil:
		return 0, nil
	case *r == 0:
		return 0, &vnet.FieldError{Path: path, Problem: "0bit lets nothing through: state a rate, or leave it out"}
	}
	return vnet.Rate(*r), nil
}

// port converts the options written at path. Zeros are refused, because
// vnet's zero is the default.
func (f switchPort) port(path string) (vnet.SwitchPort, error) {
	p := vnet.SwitchPort{To: words(f.To), PortEngineOptions: vnet.PortEngineOptions{Scheduler: f.Scheduler, Priority: f.Priority}}
	var err error
	if p.In, err = f.In.stated(path + ".in"); err != nil {
		return p, err
	}
	if p.Out, err = f.Out.stated(path + ".out"); err != nil {
		return p, err
	}
	if p.Quantum, err = f.Quantum.stated(path + ".quantum"); err != nil {
		return p, err
	}
	for _, n := range []struct {
		field string
		from  *int
		to    *int
	}{{"macs", f.MACs, &p.MACs}, {"broadcast_pps", f.Broadcast, &p.Broadcast}, {"unknown_pps", f.Unknown, &p.Unknown}} {
		if n.from == nil {
			continue
		}
		if *n.from == 0 {
			return p, &vnet.FieldError{Path: path + "." + n.field, Problem: "0 would close the port: state at least 1, or leave it out"}
		}
		*n.to = *n.from
	}
	if f.To != nil && len(f.To) == 0 {
		return p, &vnet.FieldError{Path: path + ".to", Problem: "names no port: leave it out to send to all, or name some"}
	}
	return p, nil
}

// some makes an empty table no table, so that equal requests are equal.
func some[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

// put enters a value into a map, which it makes.
func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = value
}

// both gives both directions of what is written at path.
func (f demand) both(path string) ([2]vnet.Bandwidth, error) {
	forward, err := f.bandwidth.bandwidth(path)
	both := [2]vnet.Bandwidth{forward, forward}
	if err == nil && f.Reverse != nil {
		both[vnet.Reverse], err = f.Reverse.bandwidth(path + ".reverse")
	}
	return both, err
}

// statesBandwidth says whether bandwidth is stated; {} is, and means best effort.
func (f demand) statesBandwidth() bool {
	return f.Impair == nil && f.Down == nil || f.Reverse != nil || f.bandwidth != bandwidth{}
}

// impairment gives both directions.
func (f demand) impairment() (both [2]vnet.Impairment) {
	if f.Impair == nil {
		return both
	}
	both = [2]vnet.Impairment{f.Impair.impairment(), f.Impair.impairment()}
	if f.Impair.Reverse != nil {
		both[vnet.Reverse] = f.Impair.Reverse.impairment()
	}
	return both
}

func (f impair) impairment() vnet.Impairment {
	return vnet.Impairment{
		Delay: time.Duration(f.Delay), Jitter: time.Duration(f.Jitter), Distribution: vnet.Distribution(f.Distribution),
		Loss: vnet.Share(f.Loss), Corrupt: vnet.Share(f.Corrupt), Duplicate: vnet.Share(f.Duplicate), Reorder: vnet.Share(f.Reorder),
	}
}

// bandwidth converts one direction. Zero maxima are refused, because zero is
// vnet's word for best effort, which is written by saying nothing.
func (f bandwidth) bandwidth(path string) (vnet.Bandwidth, error) {
	const bestEffort = "0bit lets nothing through: leave bandwidth out for best effort, or state a rate"
	switch {
	case f.Rate != nil && (f.Min != nil || f.Max != nil):
		return vnet.Bandwidth{}, &vnet.FieldError{Path: path + ".rate", Problem: "states minimum and maximum at once: keep rate, or min and max"}
	case f.Rate != nil && *f.Rate == 0:
		return vnet.Bandwidth{}, &vnet.FieldError{Path: path + ".rate", Problem: bestEffort}
	case f.Max != nil && *f.Max == 0:
		return vnet.Bandwidth{}, &vnet.FieldError{Path: path + ".max", Problem: bestEffort}
	case f.Rate != nil:
		return vnet.Static(vnet.Rate(*f.Rate)), nil
	case f.Min == nil && f.Max == nil:
		return vnet.Bandwidth{}, nil
	}
	b := vnet.Bandwidth{Max: vnet.Unbounded}
	if f.Min != nil {
		b.Min = vnet.Rate(*f.Min)
	}
	if f.Max != nil {
		b.Max = vnet.Rate(*f.Max)
	}
	return b, nil
}

// How stages begin.
const (
	atClock   = "clock"
	onCommand = "command"
)

// stage converts the stage written at path, which ends in a dot.
func (f stage) stage(path string) (vnet.Stage, error) {
	s := vnet.Stage{Name: string(f.Name), OnCommand: f.Begins == onCommand, Remove: words(f.Remove)}
	switch {
	case f.Begins != "" && f.Begins != atClock && f.Begins != onCommand:
		return s, &vnet.FieldError{Path: path + "begins", Problem: fmt.Sprintf("%q is not known: choose clock or command", f.Begins)}
	case f.After == nil && !s.OnCommand:
		return s, &vnet.FieldError{Path: path + "after", Problem: "is missing: state it, or begins: command"}
	case f.After != nil && s.OnCommand:
		return s, &vnet.FieldError{Path: path + "after", Problem: "is stated of a stage that begins on command: leave out one of the two"}
	case f.After != nil:
		s.After = time.Duration(*f.After)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Links)) {
		both, err := f.Links[name].both(path + "links[" + strconv.Quote(name) + "]")
		if err != nil {
			return s, err
		}
		if f.Links[name].statesBandwidth() {
			put(&s.Links, name, both)
		}
		if f.Links[name].Impair != nil {
			put(&s.Impair, name, f.Links[name].impairment())
		}
		if down := f.Links[name].Down; down != nil {
			put(&s.Down, name, *down)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Chains)) {
		change, err := f.Chains[name].change(path + "chains[" + strconv.Quote(name) + "]")
		if err != nil {
			return s, err
		}
		put(&s.Chains, name, change)
	}
	if f.Add == nil {
		return s, nil
	}
	var err error
	s.Add, err = f.Add.topology.topology(path + "add.")
	return s, err
}
