package nsh

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// rows are what a plane is in the kernel's maps, by key.
type rows struct {
	hops        map[uint32]nshHop
	paths       map[uint32]nshPath
	classifiers map[uint32]nshRules
	sides       map[uint32]nshSide
	firewalls   map[uint32]nshRules
	nats        map[uint32]nshNat
	balancers   map[uint32]nshBalancer
	limits      map[uint32]nshLimit
	remotes     map[uint32]nshRemote
	senders     map[nshSender]uint32
	lives       map[uint32]nshLife
	flows       map[uint32]uint32 // tables of flows to be had, and of how many
	plane       nshPlane
}

// ground is what rows need of the kernel.
type ground struct {
	id      uint32                   // of the plane
	number  map[string]uint32        // of functions and remotes
	slot    func(at uint32) uint32   // of a hop's counters
	device  func(name string) uint32 // in the fabric
	chain   uint32                   // device of the fabric that leads to the host
	queue   uint32                   // and that where packets wait for rates
	inner   uint32                   // its other end
	mtu     int                      // of the interface
	planeID uint32                   // slot of drops without a hop
}

func functionKey(name string) string { return "function " + name }
func remoteKey(name string) string   { return "remote " + name }

func rowKey(path uint32, index uint8) uint32 { return path<<8 | uint32(index) }

// rowsOf builds all rows of a plane that was checked.
func rowsOf(p Plane, g ground) rows {
	r := rows{
		hops: make(map[uint32]nshHop), paths: make(map[uint32]nshPath),
		classifiers: make(map[uint32]nshRules), sides: make(map[uint32]nshSide),
		firewalls: make(map[uint32]nshRules), nats: make(map[uint32]nshNat),
		balancers: make(map[uint32]nshBalancer), limits: make(map[uint32]nshLimit),
		remotes: make(map[uint32]nshRemote), senders: make(map[nshSender]uint32), flows: make(map[uint32]uint32), lives: make(map[uint32]nshLife),
		plane: nshPlane{Local: address(p.Local), Device: g.inner, Slot: g.planeID, Oam: flag32(p.OAM)},
	}
	for _, remote := range p.Remotes {
		r.remotes[g.number[remoteKey(remote.Name)]] = remoteRow(p, remote, g)
		r.senders[nshSender{From: address(remote.Address), Plane: g.id}] = 1
		if remote.Source == bpf.PortNshSource {
			r.plane.Compat = 1
		}
	}
	shared := sharedOf(p)
	for _, h := range p.Hops {
		r.hops[rowKey(h.Path, h.Index)] = hopRow(p, h, g, shared[h.Function])
		r.paths[h.Path] = pathRow(p, h.Path, g)
	}
	r.addFunctions(p, g)
	for _, c := range p.Classifiers {
		all := nshRules{Count: uint32(len(c.Rules)), Plane: g.id}
		for i, rule := range c.Rules {
			all.Rules[i] = ruleRow(rule.Match)
			all.Rules[i].At = rowKey(rule.Path, rule.Index)
			all.Rules[i].Typed = flag(p.typed(rule.Path))
			r.paths[rule.Path] = pathRow(p, rule.Path, g)
		}
		r.classifiers[g.device(c.Port)] = all
	}
	return r
}

// pathRow says whose a path is, and which metadata its packets get.
func pathRow(p Plane, path uint32, g ground) nshPath {
	row := nshPath{Plane: g.id}
	if i := p.metadataOf(path); i >= 0 {
		m := p.Metadata[i]
		row.Typed, row.Size = m.Type, uint8(copy(row.Metadata[:], m.Bytes))
	}
	return row
}

// metadataOf is where that of a path stands; -1: it has none.
func (p Plane) metadataOf(path uint32) int {
	return slices.IndexFunc(p.Metadata, func(m Metadata) bool { return m.Path == path })
}

func (p Plane) typed(path uint32) bool { return p.metadataOf(path) >= 0 }

// sharedOf says which nodes are on several paths from one side.
func sharedOf(p Plane) map[string]bool {
	type side struct {
		function string
		reverse  bool
	}
	seen, shared := make(map[side]bool), make(map[string]bool)
	for _, h := range p.Hops {
		s := side{h.Function, h.Reverse}
		shared[h.Function] = shared[h.Function] || h.Function != "" && seen[s]
		seen[s] = true
	}
	return shared
}

func (p Place) key() uint32 { return rowKey(p.Path, p.Index) }

// failures are FAIL_ of nsh.h.
var failures = map[Failure]uint8{Drop: 1, Bypass: 2, Reroute: 3}

// watchedOf says which nodes are watched.
func watchedOf(p Plane) map[string]bool {
	watched := make(map[string]bool)
	for _, h := range p.Hops {
		watched[h.Function] = watched[h.Function] || h.Fails != ""
	}
	return watched
}

var steps = map[Kind]nshStep{
	None: nshStepSTEP_NONE, Firewall: nshStepSTEP_FIREWALL, NAT: nshStepSTEP_NAT, Balancer: nshStepSTEP_BALANCER,
	Reclassifier: nshStepSTEP_CLASSIFIER, Limit: nshStepSTEP_LIMIT, Shape: nshStepSTEP_SHAPE, Mirror: nshStepSTEP_MIRROR, Node: nshStepSTEP_NODE, Aware: nshStepSTEP_AWARE,
}

func hopRow(p Plane, h Hop, g ground, shared bool) nshHop {
	row := nshHop{Slot: g.slot(rowKey(h.Path, h.Index)), Reverse: flag(h.Reverse), Below: h.Below}
	switch {
	case h.Egress != nil:
		row.Step = uint32(nshStepSTEP_EGRESS)
		row.Device = g.device(h.Egress.Port)
		row.writes(h.Egress.Ethernet)
	case h.Jump != nil:
		row.Step, row.Instead = uint32(nshStepSTEP_JUMP), h.Jump.key()
	case h.Remote != "":
		row.Step, row.Function = uint32(nshStepSTEP_REMOTE), g.number[remoteKey(h.Remote)]
	default:
		f, _ := p.function(h.Function)
		row.Step, row.Function = uint32(steps[f.Kind]), g.number[functionKey(f.Name)]
		row.Shared = flag(shared)
		row.Fails = failures[h.Fails]
		if h.Instead != nil {
			row.Instead = h.Instead.key()
		}
		switch {
		case f.Kind == Shape:
			row.Device, row.Back, row.Instead = g.queue, g.device(p.entryOf(h.Path)), kernel.Handle(1, minorOf(row.Function))
			row.Typed = flag(p.typed(h.Path))
		case f.Kind == Mirror:
			row.Device, row.Enters = g.device(f.To), flag(f.Enters)
		case f.inNode() && h.Reverse:
			row.Device, row.Back = g.device(f.Out), g.device(f.In)
			row.writes(f.EthernetOut)
		case f.inNode():
			row.Device, row.Back = g.device(f.In), g.device(f.Out)
			row.writes(f.EthernetIn)
		}
	}
	return row
}

// entryOf is the port where packets come on a path; "": none here.
func (p Plane) entryOf(path uint32) string {
	for _, c := range p.Classifiers {
		if slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.Path == path }) {
			return c.Port
		}
	}
	return ""
}

// writes says which address is written over the destination; it was checked.
func (h *nshHop) writes(ethernet string) {
	if mac, err := net.ParseMAC(ethernet); err == nil {
		h.Writes = 1
		copy(h.Mac[:], mac)
	}
}

func (p Plane) function(name string) (Function, bool) {
	for _, f := range p.Functions {
		if f.Name == name {
			return f, true
		}
	}
	return Function{}, false
}

func (f Function) inNode() bool { return f.Kind == Node || f.Kind == Aware }

func (r *rows) addFunctions(p Plane, g ground) {
	shared, watched := sharedOf(p), watchedOf(p)
	for _, f := range p.Functions {
		n := g.number[functionKey(f.Name)]
		switch f.Kind {
		case Firewall:
			r.firewalls[n] = firewallRow(f, g)
		case Reclassifier:
			r.firewalls[n] = movesRow(f, g)
		case NAT:
			r.nats[n] = natRow(f)
		case Balancer:
			r.balancers[n] = balancerRow(f)
		case Limit:
			r.limits[n] = limitRow(f)
		case Node, Aware:
			s := nshSide{Function: n, Plane: g.id, Shared: flag32(shared[f.Name]), Watched: flag32(watched[f.Name])}
			if f.Kind == Aware {
				s.Aware = r.firstSlot(p, f.Name)
			}
			if watched[f.Name] {
				// Packets that wait are older than a window when the next one ends.
				r.lives[n] = nshLife{Window: uint64(cmp.Or(f.Patience, DefaultPatience)) / 2}
			}
			r.sides[g.device(f.In)], r.sides[g.device(f.Out)] = s, s
		}
		if f.Kind == NAT || f.Kind == Balancer || f.Kind == Node && shared[f.Name] {
			r.flows[n] = max(f.Flows, 1)
			if f.Flows == 0 {
				r.flows[n] = defaultFlows
			}
		}
	}
}

// firstSlot has the counters of a function's first hop; one without hops has those of the
// plane.
func (r *rows) firstSlot(p Plane, function string) uint32 {
	for _, h := range p.Hops {
		if h.Function == function {
			return r.hops[rowKey(h.Path, h.Index)].Slot
		}
	}
	return r.plane.Slot
}

const defaultFlows = 16384

func firewallRow(f Function, g ground) nshRules {
	all := nshRules{Count: uint32(len(f.Rules)), Otherwise: flag32(f.Deny), Plane: g.id}
	for i, rule := range f.Rules {
		all.Rules[i] = ruleRow(rule.Match)
		all.Rules[i].At = flag32(rule.Deny)
	}
	return all
}

func movesRow(f Function, g ground) nshRules {
	all := nshRules{Count: uint32(len(f.Moves)), Plane: g.id}
	for i, m := range f.Moves {
		all.Rules[i] = ruleRow(m.Match)
		if m.To != (Place{}) {
			all.Rules[i].At = m.To.key()
		}
	}
	return all
}

func natRow(f Function) nshNat {
	first := f.Prefix.Masked().Addr().As4()
	n := nshNat{First: binary.BigEndian.Uint32(first[:]), Number: 1 << (32 - f.Prefix.Bits()), Low: 1024, High: 65535}
	if f.Ports != (Ports{}) {
		n.Low, n.High = f.Ports.From, f.Ports.To
	}
	return n
}

// limitRow has a full bucket.
func limitRow(f Function) nshLimit {
	l := nshLimit{Rate: f.Rate / 8, Burst: f.Burst}
	if l.Burst == 0 {
		l.Burst = uint32(max(min(l.Rate/100, 1<<30), 65536))
	}
	l.Tokens = uint64(l.Burst) * 1e9
	return l
}

// ruleRow is a match as programs compare it.
func ruleRow(m Match) nshRule {
	r := nshRule{Proto: m.Proto, FromHigh: 65535, ToHigh: 65535}
	if m.Proto != 0 {
		r.ProtoMask = 0xff
	}
	for _, prefix := range []struct {
		of         netip.Prefix
		word, mask *[2]uint64
	}{{m.Src, &r.From, &r.FromMask}, {m.Dst, &r.To, &r.ToMask}} {
		if prefix.of.IsValid() {
			*prefix.word, *prefix.mask = words(prefix.of)
			r.Family = familyOf(prefix.of.Addr())
		}
	}
	if m.SrcPorts != (Ports{}) {
		r.Ports, r.FromLow, r.FromHigh = 1, m.SrcPorts.From, m.SrcPorts.To
	}
	if m.DstPorts != (Ports{}) {
		r.Ports, r.ToLow, r.ToHigh = 1, m.DstPorts.From, m.DstPorts.To
	}
	if m.VLAN != nil {
		r.Vlan, r.VlanMask = *m.VLAN, 0xffff
	}
	if m.DSCP != nil {
		r.Dscp, r.DscpMask = *m.DSCP, 0xff
	}
	return r
}

func familyOf(a netip.Addr) uint8 {
	if a.Is4() {
		return 4
	}
	return 6
}

// words are a prefix and its mask as programs read addresses: those of IPv4 in the
// lower half of the second word.
func words(p netip.Prefix) (value, mask [2]uint64) {
	bits := make([]byte, 16)
	for i := range p.Bits() {
		bits[i/8] |= 0x80 >> (i % 8)
	}
	if p.Addr().Is4() {
		a := p.Masked().Addr().As4()
		value[1] = uint64(binary.NativeEndian.Uint32(a[:]))
		mask[1] = uint64(binary.NativeEndian.Uint32(bits))
		return value, mask
	}
	a := p.Masked().Addr().As16()
	for i := range value {
		value[i] = binary.NativeEndian.Uint64(a[8*i:])
		mask[i] = binary.NativeEndian.Uint64(bits[8*i:])
	}
	return value, mask
}

// address is IPv6, or IPv4 in the last four bytes.
func address(a netip.Addr) nshIn6Addr {
	var to nshIn6Addr
	s := a.AsSlice()
	copy(to.U6Addr8[16-len(s):], s)
	return to
}

func flag(b bool) uint8 { return uint8(flag32(b)) }

func flag32(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// classOf is the priority of an HTB class; 0: none.
func classOf(minor uint16) uint32 {
	if minor == 0 {
		return 0
	}
	return bpf.ClassMajor<<16 | uint32(minor)
}

func mustMAC(s, what string) error {
	if s == "" {
		return nil
	}
	mac, err := net.ParseMAC(s)
	if err != nil || len(mac) != 6 {
		return fmt.Errorf("%s: %q is no Ethernet address", what, s)
	}
	return nil
}
