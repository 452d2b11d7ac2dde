package vxlink

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// Verdicts of linux/pkt_cls.h.
const (
	actShot     = 2
	actRedirect = 7
)

// buffer is struct __sk_buff (linux/bpf.h), as far as the kernel lets a test set it.
type buffer struct {
	_           [2]uint32
	Mark        uint32
	_           [5]uint32
	Priority    uint32
	_           uint32
	Index       uint32
	_           [30]uint32
	Segments    uint32
	_           [2]uint32
	SegmentSize uint32
	_           [3]uint32
}

// packet is what a program gets.
type packet struct {
	frame       []byte
	index, mark uint32
	segment     uint32 // size; 0: one frame
}

// table is what the programs look up.
type table struct {
	ends    map[uint32]vxlinkEnd
	tunnels map[uint32]uint32
}

// outcome is what a program does with a packet.
type outcome struct {
	verdict        uint32
	mark, priority uint32
	slot           uint32 // whose counters change
	counts         vxlinkCounts
}

// port, trunk and forward are the slow reference of vxlink.bpf.c.
func (t table) port(p packet) outcome {
	slot := p.index - bpf.FirstDevice
	if slot >= bpf.Slots {
		return t.drop(p, 0, vxlinkDropDROP_UNKNOWN)
	}
	return t.forward(p, slot)
}

func (t table) trunk(p packet) outcome {
	slot, ok := t.tunnels[p.mark]
	if !ok || slot >= bpf.Slots {
		return t.drop(p, 0, vxlinkDropDROP_UNKNOWN)
	}
	return t.forward(p, slot)
}

func (t table) forward(p packet, slot uint32) outcome {
	e := t.ends[slot]
	if e.Action == vxlinkActionFWD_CLOSED {
		return t.drop(p, slot, vxlinkDropDROP_CLOSED)
	}
	if e.From != p.index {
		return t.drop(p, slot, vxlinkDropDROP_STRANGER)
	}
	o := outcome{verdict: actRedirect, mark: e.Mark, priority: e.Priority, slot: slot}
	o.counts.Packets, o.counts.Bytes = wire(p)
	if e.Action == vxlinkActionFWD_TUNNEL {
		o.counts.Uncounted = unseen(p, e)
	}
	return o
}

// unseen is what a queue of Linux 6.12 leaves out of a frame behind a tunnel's
// headers: it adds, for each further segment, what lies before the outer UDP or GRE
// header and what it takes for a TCP header's length there.
func unseen(p packet, e vxlinkEnd) uint64 {
	header, tcp := headers(p.frame)
	if p.segment == 0 || header >= len(p.frame) || !tcp {
		return 0
	}
	packets, bytes := wire(p)
	outer, words := uint64(50), uint64(e.Mark>>20&15)
	if e.Gre != 0 {
		outer, words = 42, uint64(p.frame[4]>>4)
	}
	seen := 14 + 20 + words*4
	long := uint64(len(p.frame)) + outer
	segments := (long - seen + uint64(p.segment) - 1) / uint64(p.segment)
	return max(bytes+outer*packets, long+(segments-1)*seen) - (long + (segments-1)*seen)
}

func (t table) drop(p packet, slot uint32, cause vxlinkDrop) outcome {
	o := outcome{verdict: actShot, mark: p.mark, slot: slot}
	o.counts.Drops[cause] = 1
	return o
}

// wire is what a packet is on a wire: its segments, each with its headers.
func wire(p packet) (packets, bytes uint64) {
	bytes = uint64(len(p.frame))
	length, _ := headers(p.frame)
	header := uint64(length)
	if p.segment == 0 || header >= bytes {
		return 1, bytes
	}
	payload, size := bytes-header, uint64(p.segment)
	packets = (payload + size - 1) / size
	return packets, payload + packets*header
}

// headers is how long those before a frame's data are, and whether TCP's is the last.
func headers(b []byte) (length int, tcp bool) {
	at, kind := 12, uint16(0)
	for range 3 {
		if len(b) < at+2 {
			return 0, false
		}
		kind = binary.BigEndian.Uint16(b[at:])
		at += 2
		if kind != 0x8100 && kind != 0x88a8 {
			break
		}
		at += 2
	}
	if len(b) < at+20 || kind != 0x0800 && kind != 0x86dd {
		return 0, false
	}
	next := b[at+9]
	length = int(b[at]&15) * 4
	if kind == 0x86dd {
		next, length = b[at+6], 40
	}
	at += length
	switch {
	case next == 17:
		return at + 8, false
	case next != 6 || len(b) < at+13:
		return 0, false
	}
	return at + int(b[at+12]>>4)*4, true
}

// rig runs the programs in a namespace with devices of slots 1 to 4 and one
// that is nobody's.
type rig struct {
	t *testing.T
	*programs
	table
	space   *os.File
	foreign uint32
}

func newRig(t *testing.T) *rig {
	b := newBench(t)
	p, _ := b.host("h")
	r, err := p.programs()
	check(t, err)
	g := &rig{t: t, programs: r, table: table{ends: map[uint32]vxlinkEnd{}, tunnels: map[uint32]uint32{}}}
	g.space, err = kernel.NewNamespace(func() error {
		c, err := kernel.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		for slot := uint32(1); slot < 5; slot++ {
			if err := c.Do(kernel.NewLinkAt(number(slot), "d"+strconv.Itoa(int(slot)), "bridge", nil)); err != nil {
				return err
			}
		}
		if err := c.Do(kernel.NewLink("other", "bridge", nil)); err != nil {
			return err
		}
		other, err := c.LinkByName("other")
		g.foreign = uint32(other.Index)
		return err
	})
	check(t, err)
	t.Cleanup(func() { g.space.Close() })
	return g
}

func (g *rig) end(slot uint32, e vxlinkEnd) {
	g.t.Helper()
	g.table.ends[slot] = e
	check(g.t, g.setEnd(slot, e))
}

func (g *rig) tunnel(vni, slot uint32) {
	g.t.Helper()
	g.table.tunnels[vni] = slot
	check(g.t, g.programs.tunnels.Put(vni, slot))
}

// run gives a packet to a program; slot is the one whose counters to read.
func (g *rig) run(program *ebpf.Program, p packet, slot uint32) outcome {
	before, err := g.counts(slot)
	check(g.t, err)
	var after buffer
	verdict, err := program.Run(&ebpf.RunOptions{
		Data: p.frame, Context: buffer{Mark: p.mark, Index: p.index, SegmentSize: p.segment}, ContextOut: &after,
	})
	if err != nil {
		g.t.Fatalf("%d bytes %x, %+v: %v", len(p.frame), p.frame[:min(60, len(p.frame))], p.segment, err)
	}
	now, err := g.counts(slot)
	check(g.t, err)
	o := outcome{verdict: verdict, mark: after.Mark, priority: after.Priority, slot: slot}
	o.counts.Packets, o.counts.Bytes, o.counts.Uncounted = now.Packets-before.Packets, now.Bytes-before.Bytes, now.Uncounted-before.Uncounted
	for i := range now.Drops {
		o.counts.Drops[i] = now.Drops[i] - before.Drops[i]
	}
	return o
}

// compare fails unless a program does with a packet what its reference model does.
func (g *rig) compare(what string, program *ebpf.Program, reference func(packet) outcome, p packet) {
	g.t.Helper()
	want := reference(p)
	if got := g.run(program, p, want.slot); got != want {
		g.t.Fatalf("%s: %+v\ngot  %+v\nwant %+v", what, p, got, want)
	}
}

// furnish fills the tables with an end of each kind.
func (g *rig) furnish() {
	own := [6]byte{2, 0, 0, 0, 0, 7}
	g.end(1, vxlinkEnd{From: uint32(number(1)), Device: uint32(number(2)), Action: vxlinkActionFWD_PEER, Mac: own})
	g.end(2, vxlinkEnd{From: uint32(number(2)), Device: uint32(number(1)), Action: vxlinkActionFWD_QUEUE, Mac: own})
	g.end(3, vxlinkEnd{From: uint32(number(3)), Device: uint32(number(4)), Action: vxlinkActionFWD_TUNNEL, Mark: 77 | 1<<20, Priority: 0x10010})
	g.end(9, vxlinkEnd{From: uint32(number(4)), Device: uint32(number(4)), Action: vxlinkActionFWD_TUNNEL, Mark: 83 | 15<<20, Priority: 0x10010, Gre: 1})
	g.end(5, vxlinkEnd{From: uint32(number(4)), Device: uint32(number(3)), Action: vxlinkActionFWD_PEER, Mac: own})
	g.end(6, vxlinkEnd{From: uint32(number(4)), Device: uint32(number(4)), Action: vxlinkActionFWD_TUNNEL, Mark: 79 | 15<<20, Priority: 0x10011})
	g.end(7, vxlinkEnd{From: uint32(number(1)), Device: uint32(number(3)), Action: vxlinkActionFWD_PEER, Mac: own})
	for vni, slot := range map[uint32]uint32{77: 5, 78: 6, 80: 7, 81: 8, 82: bpf.Slots, 83: 9} {
		g.tunnel(vni, slot)
	}
}

// frame of a kind to the node behind the ports of the rig.
func frame(length int, head ...byte) []byte {
	f := make([]byte, max(length, 14+len(head)-2))
	copy(f, []byte{2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 9})
	copy(f[12:], head)
	return f
}

// Every branch of the programs, once.
func TestProgramBranches(t *testing.T) {
	g := newRig(t)
	g.furnish()
	plain := frame(60, 0x08, 0x06)
	tcp4 := frame(3054, append(append([]byte{0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6}, make([]byte, 22)...), 0x80)...)
	tcp6 := frame(3054, append(append([]byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 6}, make([]byte, 45)...), 0x50)...)
	udp4 := frame(3054, 0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17)
	tagged := frame(3054, append(append([]byte{0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6}, make([]byte, 22)...), 0x50)...)
	device := func(slot uint32) uint32 { return uint32(number(slot)) }
	check(t, kernel.In(g.space, func() error {
		for what, p := range map[string]packet{
			"to the node":         {plain, device(1), 5, 0},
			"to another address":  {frame(60, 0, 0)[:0:0], device(1), 5, 0},
			"through a queue":     {plain, device(2), 5, 0},
			"into a tunnel":       {plain, device(3), 5, 0},
			"by a closed end":     {plain, device(4), 5, 0},
			"by a device of none": {plain, g.foreign, 5, 0},
			"segments of IPv4":    {tcp4, device(3), 0, 1000},
			"segments of IPv6":    {tcp6, device(3), 0, 1000},
			"segments of UDP":     {udp4, device(3), 0, 1000},
			"segments with tags":  {tagged, device(3), 0, 1000},
			"segments of another": {frame(3000, 0x12, 0x34), device(3), 0, 1000},
			"segments of GRE":     {frame(3000, 0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 47), device(3), 0, 1000},
			"headers cut short":   {frame(40, 0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6), device(3), 0, 1000},
			"header is all":       {frame(50, append(append([]byte{0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6}, make([]byte, 22)...), 0xf0)...), device(3), 0, 10},
		} {
			if len(p.frame) == 0 {
				p.frame = append([]byte{2, 0, 0, 0, 0, 8}, plain[6:]...)
			}
			g.compare(what, g.programs.port, g.table.port, p)
		}
		for what, p := range map[string]packet{
			"out of a tunnel":            {plain, device(4), 77, 0},
			"to another address":         {append([]byte{255, 255, 255, 255, 255, 255}, plain[6:]...), device(4), 77, 0},
			"relayed":                    {plain, device(4), 78, 0},
			"relayed in GRE":             {plain, device(4), 83, 0},
			"segments in GRE":            {tcp4, device(4), 83, 1000},
			"segments of IPv6 in GRE":    {append([]byte{2, 0, 0, 0, 0x70, 7}, tcp6[6:]...), device(4), 83, 1000},
			"by a stranger's trunk":      {plain, device(4), 80, 0},
			"to a closed end":            {plain, device(4), 81, 0},
			"to an end that cannot be":   {plain, device(4), 82, 0},
			"with the number of none":    {plain, device(4), 99, 0},
			"with no number":             {plain, device(4), 0, 0},
			"segments, out of a tunnel":  {tcp4, device(4), 77, 1400},
			"segments of one, relayed":   {tcp4, device(4), 78, 65000},
			"segments, not for the node": {append([]byte{1, 0, 0x5e, 0, 0, 1}, udp4[6:]...), device(4), 77, 100},
		} {
			g.compare(what, g.programs.trunk, g.table.trunk, p)
		}
		g.compare("nobody encapsulates", g.programs.closed, func(p packet) outcome { return g.table.drop(p, 0, vxlinkDropDROP_UNTAKEN) }, packet{plain, g.foreign, 9, 0})
		return nil
	}))
}

// Random and malformed packets: SUBLET_PACKETS sets how many.
func TestRandomPackets(t *testing.T) {
	g := newRig(t)
	g.furnish()
	n, err := strconv.Atoi(os.Getenv("SUBLET_PACKETS"))
	if err != nil {
		n = 30_000
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	check(t, kernel.In(g.space, func() error {
		for range n {
			p := randomPacket(r, g.foreign)
			if r.IntN(2) == 0 {
				g.compare("port", g.programs.port, g.table.port, p)
			} else {
				g.compare("trunk", g.programs.trunk, g.table.trunk, p)
			}
		}
		return nil
	}))
}

// randomPacket is one whose headers are often nearly right.
func randomPacket(r *rand.Rand, foreign uint32) packet {
	b := make([]byte, 15+r.IntN(1600)) // the kernel tests with no less
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	if r.IntN(2) == 0 {
		copy(b, []byte{2, 0, 0, 0, 0, 7})
	}
	at := 12
	for range r.IntN(4) {
		if len(b) > at+4 {
			copy(b[at:], [][]byte{{0x81, 0}, {0x88, 0xa8}}[r.IntN(2)])
			at += 4
		}
	}
	copy(b[at:], [][]byte{{8, 0, 0x45}, {8, 0, 0x4f}, {0x86, 0xdd, 0x60}, {8, 6}, {}}[r.IntN(5)])
	if next := at + []int{8, 11}[r.IntN(2)]; len(b) > next {
		b[next] = []byte{6, 17, 47, 1}[r.IntN(4)]
	}
	if kind := binary.BigEndian.Uint16(b[12:]); len(b) < 54 && (kind == 0x0800 || kind == 0x86dd) {
		b = append(b, make([]byte, 54-len(b))...) // likewise
	}
	p := packet{frame: b, index: uint32(number(uint32(1 + r.IntN(4)))), mark: uint32(74 + r.IntN(12))}
	if r.IntN(8) == 0 {
		p.index = foreign
	}
	if r.IntN(3) > 0 {
		p.segment = uint32(1 + r.IntN(2000))
	}
	return p
}
