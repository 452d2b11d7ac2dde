package controller

import (
	"time"

	"sublet/openflow/of13"
)

// Bounds of what a learning switch remembers: addresses are in two generations,
// of which the older is forgotten when the younger is full or old. So memory is
// bounded whatever addresses come, and what is in use stays.
const (
	generation    = 16384
	generationAge = 150 * time.Second // an unused address is known for one to two of these
	entryIdle     = 60                // seconds; of flow entries
	entryPriority = 1
	learntCookie  = ours // of no run (Cookies)
)

// Learning is a learning switch (IEEE 802.1D, 7.8): a packet to an address that
// was seen goes to its port, and an entry makes the switch send what follows; one
// to another address goes to all ports.
type Learning struct {
	young, old map[uint64]uint32 // ports by address
	since      time.Time         // the young one began

	flow    of13.FlowMod
	out     of13.PacketOut
	fields  [3]of13.Field
	action  [1]of13.Action
	command [1]of13.Instruction
}

// NewLearning makes one for a switch.
func NewLearning() App {
	return &Learning{young: make(map[uint64]uint32), old: make(map[uint64]uint32)}
}

// Connected lets the switch hand over what meets no entry, whole.
func (l *Learning) Connected(s *Switch) {
	s.Send(&of13.FlowMod{
		Command: of13.FlowAdd, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{{Type: of13.ActionOutput, Number: of13.PortController, MaxLen: of13.NoMaxLen}}}},
	})
}

// PacketIn learns where the sender is and sends the packet on.
func (l *Learning) PacketIn(s *Switch, m *of13.PacketIn, now time.Time) {
	const addresses, ethernet = 12, 14
	port := inPort(m.Match)
	if len(m.Data) < ethernet || port == 0 {
		return
	}
	to, from := address(m.Data[:6]), address(m.Data[6:addresses])
	if linkLocal(to) {
		return // for the bridge itself: never forwarded (IEEE 802.1D, 7.12.6)
	}
	if !group(from) {
		l.learn(from, port, now)
	}
	next, known := l.young[to]
	if !known {
		next, known = l.old[to]
	}
	switch {
	case group(to) || !known:
		l.send(s, m, port, of13.PortFlood)
	case next != port:
		l.install(s, m, port, next, from, to)
	}
}

// learn notes where an address is.
func (l *Learning) learn(from uint64, port uint32, now time.Time) {
	at, known := l.young[from]
	if !known && len(l.young) >= generation || now.Sub(l.since) > generationAge {
		l.young, l.old, l.since, known = l.old, l.young, now, false
		clear(l.young)
	}
	if !known || at != port {
		l.young[from] = port
	}
}

// install makes the switch send packets between two addresses on. A packet that
// the switch kept goes with it.
func (l *Learning) install(s *Switch, m *of13.PacketIn, in, out uint32, from, to uint64) {
	l.fields = [3]of13.Field{of13.Exact(of13.InPort, uint64(in)), of13.Exact(of13.EthDst, to), of13.Exact(of13.EthSrc, from)}
	l.action[0] = of13.Output(out)
	l.command[0] = of13.Instruction{Type: of13.InstructionApply, Actions: l.action[:]}
	l.flow = of13.FlowMod{
		Command: of13.FlowAdd, Cookie: learntCookie, Idle: entryIdle, Priority: entryPriority, Buffer: m.Buffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
		Match: of13.Match{Fields: l.fields[:]}, Instructions: l.command[:],
	}
	s.Send(&l.flow)
	if m.Buffer == of13.NoBuffer {
		l.send(s, m, in, out)
	}
}

// send sends one packet, from where the switch keeps it or with its bytes.
func (l *Learning) send(s *Switch, m *of13.PacketIn, in, out uint32) {
	l.action[0] = of13.Output(out)
	l.out = of13.PacketOut{Buffer: m.Buffer, InPort: in, Actions: l.action[:]}
	if m.Buffer == of13.NoBuffer {
		l.out.Data = m.Data
	}
	s.Send(&l.out)
}

func inPort(m of13.Match) uint32 {
	for _, f := range m.Fields {
		if f.ID == of13.InPort {
			return uint32(f.Value.Lo)
		}
	}
	return 0
}

func address(b []byte) (a uint64) {
	for _, octet := range b {
		a = a<<8 | uint64(octet)
	}
	return a
}

func group(a uint64) bool { return a>>40&1 != 0 }

func linkLocal(a uint64) bool { return a&^0xf == 0x0180c2000000 }
