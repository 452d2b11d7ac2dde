package controller

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// Times and bounds of a network of switches.
const (
	roundEvery   = time.Second            // frames of discovery leave all ports
	soon         = 200 * time.Millisecond // and again so soon on a new port
	settled      = 500 * time.Millisecond // without an answer a port leads to stations
	linkDead     = 5 * time.Second        // a link that carries no frame of discovery is gone
	hostAge      = 300 * time.Second
	moveEvery    = time.Second // an address changes its place at most so often
	mostHosts    = 65536
	mostAtPort   = 4096
	mostPorts    = 4096 // of a switch
	floodsEvery  = 10 * time.Millisecond
	floodsAtOnce = 100
	networkTick  = 100 * time.Millisecond
)

// Network is an application over all switches: it discovers links, learns where
// stations are, and makes paths between them. It belongs to the thread of one
// controller.
type Network struct {
	log      *slog.Logger
	key      lldpKey
	round    uint64
	rounded  time.Time
	cookies  *Cookies
	switches map[uint64]*member
	known    map[uint64]bool // switches that were connected in this run
	hosts    map[uint64]*station
	paths    map[pair]*path
	byCookie map[uint64]*path
	routed   map[uint64]int // paths of active virtual routers, by switch
	unproven int            // paths that switches still have to show
	failures map[pair]int   // of paths that are to be tried again
	version  uint64         // of the links: it changes with them, and with their prices
	offered  atomic.Pointer[map[Outlet]uint32]
	prices   map[Outlet]uint32
	trees    map[uint64]tree
	treesOf  uint64
	improved uint64 // the version for which paths were made again
	aged     time.Time
	told     uint64 // the topology's version that was handed over
	changes  uint64 // of links, switches and stations
	toldAt   time.Time

	// Alone makes the application for a switch without links to others; nil: it is
	// treated as all are.
	Alone func() App
	// Slices is what virtual routers need of switches.
	Slices map[uint64]Installed
	// Topology, if there is one, is told of changes, at most twice a second.
	Topology func(Topology)
}

// station is who has an address.
type station struct {
	at    place
	seen  time.Time
	moved time.Time
}

// member is a switch of the network.
type member struct {
	n     *Network
	s     *Switch
	ports map[uint32]*port
	table *Table
	alone App
	links int // that its ports have heard of
	// active are its active virtual routers, by the cookies of the entries that hand
	// over their packets.
	active map[uint64]*ActiveRouter
	room   int // entries for paths of theirs

	repaired uint64 // of its table, as told
}

// port of a member.
type port struct {
	of13.Port
	up       bool
	first    time.Time // a frame of discovery was sent
	next     time.Time // one is due
	sent     int
	from     place // whose frame came last
	heard    time.Time
	stations int
	tokens   int // frames to everybody that may come
	refilled time.Time
}

// NewNetwork is without switches.
func NewNetwork(log *slog.Logger) *Network {
	n := &Network{
		log: log, cookies: NewCookies(), switches: make(map[uint64]*member), known: make(map[uint64]bool), hosts: make(map[uint64]*station),
		routed: make(map[uint64]int), paths: make(map[pair]*path), byCookie: make(map[uint64]*path), failures: make(map[pair]int), version: 1, round: roundsLate,
	}
	_, _ = rand.Read(n.key[:]) // never fails
	return n
}

// App is for one switch.
func (n *Network) App() App {
	return &member{n: n, ports: make(map[uint32]*port), active: make(map[uint64]*ActiveRouter)}
}

// Connected takes on a switch. Another one of the same identifier goes.
func (m *member) Connected(s *Switch) {
	n, now := m.n, time.Now()
	m.s, m.table = s, NewTable(s, n.cookies)
	if old := n.switches[s.DatapathID]; old != nil {
		n.log.Warn("a switch connects whose identifier another one has, which goes", "dpid", name(s.DatapathID))
		old.s.Close(errors.New("another switch has its identifier"))
	}
	n.switches[s.DatapathID] = m
	if s.Anew || !n.known[s.DatapathID] {
		m.table.Forget()
		n.known[s.DatapathID] = true
	}
	m.table.Expired = n.expired
	m.table.Install(n.cookies.Next(), baseEntries(), now, func(err error) {
		if err != nil {
			n.log.Error("a switch does not take the entries that every switch gets", "dpid", name(s.DatapathID), "why", err)
			s.Close(err)
		}
	})
	m.slice(now)
	if n.Alone != nil {
		m.alone = n.Alone()
	}
	if s.Version() == of10.Version {
		for i := range s.Ports {
			m.port(&s.Ports[i], now)
		}
	} else {
		s.Send(&of13.MultipartRequest{Kind: of13.MultipartPortDesc})
	}
	n.changed()
}

func name(dpid uint64) string { return fmt.Sprintf("%016x", dpid) }

// baseEntries hand the controller what meets no other entry, and frames of
// discovery whatever other entries there are.
func baseEntries() []Entry {
	return []Entry{
		{Instructions: toController()},
		{Priority: 0xffff, Match: of13.Match{Fields: []of13.Field{of13.Exact(of13.EthDst, lldpTarget), of13.Exact(of13.EthType, lldpType)}}, Instructions: toController()},
	}
}

func toController() []of13.Instruction {
	return []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{of13.Output(of13.PortController)}}}
}

// Message is what is no packet.
func (m *member) Message(s *Switch, h of13.Header, msg of13.Message, now time.Time) {
	switch msg := msg.(type) {
	case *of13.MultipartReply:
		for i := range msg.PortDescs {
			if msg.Kind == of13.MultipartPortDesc {
				m.port(&msg.PortDescs[i], now)
			}
		}
	case *of13.PortStatus:
		if msg.Reason == of13.PortDeleted {
			msg.Port.State |= of13.PortStateDown
		}
		m.port(&msg.Port, now)
	}
	m.table.Message(h, msg)
}

// port takes what a switch says of a port.
func (m *member) port(d *of13.Port, now time.Time) {
	if d.Number == 0 || d.Number > of13.PortMax {
		return
	}
	p := m.ports[d.Number]
	if p == nil {
		if len(m.ports) >= mostPorts {
			return
		}
		p = &port{tokens: floodsAtOnce}
		m.ports[d.Number] = p
	}
	was := p.up
	p.Port, p.up = *d, d.Config&of13.PortConfigDown == 0 && d.State&of13.PortStateDown == 0
	if p.up == was {
		return
	}
	p.first, p.next, p.sent = time.Time{}, now, 0
	if !p.up {
		m.n.unlink(m, p)
		m.n.forgetAt(place{m.s.DatapathID, d.Number}, now)
		m.n.reroute(now)
	}
	m.n.changed()
}

// Gone ends a switch.
func (m *member) Gone(_ *Switch, now time.Time) {
	if m.n.switches[m.s.DatapathID] == m {
		m.n.leave(m, now)
	}
}

func (n *Network) leave(m *member, now time.Time) {
	delete(n.switches, m.s.DatapathID)
	for _, p := range m.ports {
		n.unlink(m, p)
	}
	for a, h := range n.hosts {
		if h.at.dpid == m.s.DatapathID {
			n.forget(a, h, now)
		}
	}
	n.version++
	n.changed()
	n.reroute(now)
}

// PacketIn discovers, learns, and sends on.
func (m *member) PacketIn(s *Switch, in *of13.PacketIn, now time.Time) {
	number := inPort(in.Match)
	p := m.ports[number]
	if p == nil || !p.up || len(in.Data) < ethernet || int(in.Total) > len(in.Data) {
		return
	}
	to, from := address(in.Data[:6]), address(in.Data[6:12])
	at := place{s.DatapathID, number}
	switch {
	case to == lldpTarget && int(in.Data[12])<<8|int(in.Data[13]) == lldpType:
		m.n.discovered(m, p, at, in.Data, now)
	case linkLocal(to) || group(from):
	case m.active[in.Cookie] != nil:
		m.confine(in, at, p, now)
	case !m.edge(p, now):
		m.n.transit(in.Data, from, to, now)
	case m.alone != nil && m.links == 0:
		if m.n.learn(from, at, p, now) {
			m.alone.PacketIn(s, in, now)
		}
	case m.n.learn(from, at, p, now):
		m.n.forward(in.Data, at, p, from, to, now)
	}
}

// edge says whether a port leads to stations: it was asked, and no switch
// answered.
func (m *member) edge(p *port, now time.Time) bool {
	return p.heard.IsZero() && p.sent > 1 && now.Sub(p.first) >= settled
}

// learn notes where an address is. It is false where the packet is to be dropped.
func (n *Network) learn(from uint64, at place, p *port, now time.Time) bool {
	h := n.hosts[from]
	switch {
	case h == nil:
		if len(n.hosts) >= mostHosts || p.stations >= mostAtPort {
			return false
		}
		n.hosts[from] = &station{at: at, seen: now, moved: now}
		p.stations++
		n.changed()
		return true
	case h.at == at:
		h.seen = now
		return true
	case now.Sub(h.moved) < moveEvery || p.stations >= mostAtPort:
		return false // one of two who have the same address
	}
	n.left(h.at)
	h.at, h.seen, h.moved = at, now, now
	p.stations++
	n.moved(from, now)
	n.changed()
	return true
}

// left counts a station of a port less.
func (n *Network) left(at place) {
	if m := n.switches[at.dpid]; m != nil && m.ports[at.port] != nil {
		m.ports[at.port].stations--
	}
}

// forgetAt forgets all stations of a port.
func (n *Network) forgetAt(at place, now time.Time) {
	for a, h := range n.hosts {
		if h.at == at {
			n.forget(a, h, now)
		}
	}
}

func (n *Network) forget(a uint64, h *station, now time.Time) {
	n.left(h.at)
	delete(n.hosts, a)
	n.moved(a, now)
	n.changed()
}

func (n *Network) changed() { n.changes++ }

// Tick sends frames of discovery, and ends what is over.
func (n *Network) Tick(now time.Time) time.Duration {
	if now.Sub(n.rounded) >= roundEvery {
		n.round, n.rounded = n.round+1, now
	}
	for _, m := range n.switches {
		n.discover(m, now)
		m.table.Tick(now)
		if m.table.Repaired != m.repaired {
			n.log.Warn("entries that were lost or altered are put right", "dpid", name(m.s.DatapathID), "entries", m.table.Repaired-m.repaired)
			m.repaired = m.table.Repaired
		}
	}
	n.takePrices()
	n.reroute(now)
	n.retry(now)
	n.age(now)
	if n.Topology != nil && n.told != n.changes && now.Sub(n.toldAt) >= 500*time.Millisecond {
		n.told, n.toldAt = n.changes, now
		n.Topology(n.topology(now))
	}
	return networkTick
}

// age forgets stations that were silent for long and have no paths.
func (n *Network) age(now time.Time) {
	if now.Sub(n.aged) < hostAge/10 {
		return
	}
	n.aged = now
	busy := make(map[uint64]bool)
	for k := range n.paths {
		busy[k.from], busy[k.to] = true, true
	}
	for a, h := range n.hosts {
		if !busy[a] && now.Sub(h.seen) > hostAge {
			n.forget(a, h, now)
		}
	}
}

// sortedPorts are the numbers of a member's ports, in order.
func (m *member) sortedPorts() []uint32 {
	return slices.Sorted(maps.Keys(m.ports))
}
