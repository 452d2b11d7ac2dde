package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"sublet/openflow/of13"
)

const (
	hostilePort = "6653" // a controller that speaks the protocol
	noisePort   = "6654" // one that sends random bytes
)

// hostileInside is a switch's controller that does everything a controller
// can, for ever: the plan's frames are what it has the switch send.
func hostileInside(args []string) error {
	var p floodPlan
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return err
	}
	serve := func(port string, attack func(net.Conn, *rand.Rand)) error {
		listener, err := net.Listen("tcp", ":"+port)
		if err != nil {
			return err
		}
		go func() {
			for seed := uint64(0); ; seed++ {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					attack(conn, rand.New(rand.NewPCG(seed, 17)))
					conn.Close()
				}()
			}
		}()
		return nil
	}
	err := errors.Join(
		serve(hostilePort, func(conn net.Conn, r *rand.Rand) { (&hostile{Conn: conn, r: r, plan: &p}).run() }),
		serve(noisePort, noise))
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "listening")
	select {}
}

// noise greets, sends bytes by chance, and goes on until it is cut off.
func noise(conn net.Conn, r *rand.Rand) {
	hello, _ := of13.Append(nil, 1, &of13.Hello{})
	if r.IntN(2) == 0 {
		_, _ = conn.Write(hello)
	}
	junk := make([]byte, 4096)
	for {
		for i := range junk {
			junk[i] = byte(r.Uint32())
		}
		if r.IntN(2) == 0 { // a header that is right, of each type
			copy(junk, []byte{4, byte(r.IntN(30)), byte(r.IntN(16)), byte(r.Uint32())})
		}
		if _, err := conn.Write(junk); err != nil {
			return
		}
	}
}

// hostile is a controller on one connection.
type hostile struct {
	net.Conn
	r    *rand.Rand
	plan *floodPlan
	out  []byte
}

// run does a bit of all there is, again and again, until the switch goes. What
// the switch answers is read and forgotten.
func (h *hostile) run() {
	go func() { _, _ = io.Copy(io.Discard, h) }()
	h.add(&of13.Hello{Bitmap: 1 << of13.Version})
	for round := 0; h.flush() == nil; round++ {
		h.loop()
		for range 3000 { // before anything shuts a port for as long as the next round takes to come
			h.add(h.packetOut())
		}
		for range 2000 {
			h.add(h.anyMessage())
		}
		for i := range 3000 {
			h.add(h.entry(uint16(round), uint64(i)))
		}
		time.Sleep(time.Millisecond) // lets the neighbours' own programs run on a small machine
	}
}

// add writes a message, of one in eight of them with some bytes changed.
func (h *hostile) add(m of13.Message) {
	at := len(h.out)
	out, err := of13.Append(h.out, h.r.Uint32(), m)
	if err != nil {
		return
	}
	if h.out = out; h.r.IntN(8) == 0 && len(out)-at > of13.HeaderLen {
		for range 1 + h.r.IntN(4) {
			h.out[at+of13.HeaderLen+h.r.IntN(len(out)-at-of13.HeaderLen)] = byte(h.r.Uint32())
		}
	}
	if len(h.out) > 1<<16 {
		_ = h.flush()
	}
}

func (h *hostile) flush() error {
	_, err := h.Write(h.out)
	h.out = h.out[:0]
	return err
}

// loop has everything that comes go everywhere, also back: between two switches
// with two links it goes round for ever.
func (h *hostile) loop() {
	h.add(&of13.FlowMod{
		Priority: 0xffff, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{
			of13.Output(of13.PortAll), of13.Output(of13.PortInPort), of13.Output(of13.PortController),
		}}},
	})
}

// packetOut has a frame of the plan sent to some ports.
func (h *hostile) packetOut() of13.Message {
	m := &of13.PacketOut{Buffer: of13.NoBuffer, InPort: h.port(), Data: h.plan.forge(h.r)}
	for range h.r.IntN(3) {
		m.Actions = append(m.Actions, h.action())
	}
	m.Actions = append(m.Actions, of13.Output(h.port()))
	return m
}

// entry is one of many that differ.
func (h *hostile) entry(round uint16, i uint64) of13.Message {
	return &of13.FlowMod{
		Table: uint8(h.r.IntN(9)), Priority: round, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
		Match:        of13.Match{Fields: []of13.Field{of13.Exact(of13.EthDst, i), of13.WithMask(of13.EthSrc, of13.U128{Lo: i}, of13.U128{Lo: h.r.Uint64() >> 16})}},
		Instructions: h.instructions(),
	}
}

// anyMessage is one of a random type with random contents.
func (h *hostile) anyMessage() of13.Message {
	r := h.r
	switch r.IntN(14) {
	case 0, 1, 2:
		return &of13.FlowMod{
			Cookie: r.Uint64(), CookieMask: h.few(), Table: uint8(r.IntN(10)), Command: uint8(r.IntN(6)), Idle: uint16(r.IntN(3)), Hard: uint16(r.IntN(3)),
			Priority: uint16(r.Uint32()), Buffer: of13.NoBuffer - uint32(r.IntN(2))*r.Uint32(), OutPort: h.port(), OutGroup: h.port(), Flags: uint16(r.IntN(64)),
			Match: h.match(), Instructions: h.instructions(),
		}
	case 3, 4:
		m := &of13.GroupMod{Command: uint16(r.IntN(4)), Kind: uint8(r.IntN(5)), Group: h.group()}
		for range r.IntN(4) {
			m.Buckets = append(m.Buckets, of13.Bucket{Weight: uint16(r.Uint32()), WatchPort: h.port(), WatchGroup: h.group(), Actions: h.actions()})
		}
		return m
	case 5:
		return &of13.MeterMod{Command: uint16(r.IntN(4)), Flags: uint16(r.IntN(16)), Meter: h.group(), Bands: []of13.Band{
			{Kind: uint16(1 + r.IntN(2)), Rate: r.Uint32(), Burst: r.Uint32(), Precedence: uint8(r.Uint32())},
		}}
	case 6:
		return &of13.PortMod{Port: h.port(), HWAddr: h.plan.MACs[r.IntN(len(h.plan.MACs))], Config: r.Uint32() & 0x64, Mask: r.Uint32() & 0x64}
	case 7:
		return &of13.TableMod{Table: uint8(r.Uint32()), Config: r.Uint32()}
	case 8:
		return &of13.Role{Role: uint32(r.IntN(5)), Generation: r.Uint64()}
	case 9:
		return &of13.Async{Kind: of13.TypeSetAsync, PacketIn: [2]uint32{r.Uint32(), r.Uint32()}, PortStatus: [2]uint32{r.Uint32(), r.Uint32()}, FlowRemove: [2]uint32{r.Uint32(), r.Uint32()}}
	case 10:
		return &of13.MultipartRequest{Kind: uint16(r.IntN(14)), Flags: uint16(r.IntN(2)), Number: h.port(), Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}}
	case 11:
		return &of13.Experimenter{Experimenter: 0x4f4e4600, Kind: 2300, Data: []byte{0, 0, 0, byte(r.IntN(4)), 0, byte(r.IntN(8)), 0, byte(r.IntN(4))}} // bundles
	case 12:
		return &of13.Config{Kind: of13.TypeSetConfig, Flags: uint16(r.IntN(4)), MissSendBytes: uint16(r.Uint32())}
	}
	return &of13.Plain{Kind: uint8(r.IntN(30))}
}

// few has few bits.
func (h *hostile) few() uint64 { return 1 << h.r.IntN(64) }

// port is one that is there, that is special, or that is not there.
func (h *hostile) port() uint32 {
	switch h.r.IntN(4) {
	case 0:
		return 0xfffffff8 + uint32(h.r.IntN(8))
	case 1:
		return h.r.Uint32()
	}
	return uint32(h.r.IntN(6))
}

func (h *hostile) group() uint32 {
	if h.r.IntN(8) == 0 {
		return 0xfffffffc + uint32(h.r.IntN(4))
	}
	return uint32(h.r.IntN(300))
}

func (h *hostile) field() of13.Field {
	id := of13.FieldID(h.r.IntN(int(of13.NumFields)))
	v := of13.U128{Hi: h.r.Uint64(), Lo: h.r.Uint64()}
	if h.r.IntN(4) > 0 {
		v = v.And(of13.Ones(of13.Fields[id].Bits))
	}
	if of13.Fields[id].Maskable && h.r.IntN(2) == 0 {
		return of13.WithMask(id, v, of13.U128{Hi: h.r.Uint64(), Lo: h.r.Uint64()}.And(of13.Ones(of13.Fields[id].Bits)))
	}
	return of13.ExactU128(id, v)
}

// match has fields whose prerequisites it has, most of the time.
func (h *hostile) match() (m of13.Match) {
	base := [][]of13.Field{
		nil, {of13.Exact(of13.InPort, uint64(h.port()))}, {of13.Exact(of13.EthType, 0x0800)}, {of13.Exact(of13.EthType, 0x86dd)}, {of13.Exact(of13.EthType, 0x0806)},
		{of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 6)}, {of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 17)},
		{of13.Exact(of13.EthType, 0x8847)}, {of13.Exact(of13.EthType, 0x88e7)}, {of13.Exact(of13.VLANVID, of13.VLANPresent)},
	}
	m.Fields = append(m.Fields, base[h.r.IntN(len(base))]...)
	context := of13.NewContext()
	for i := range m.Fields {
		context.Learn(&m.Fields[i])
	}
	for range h.r.IntN(6) {
		if f := h.field(); context.Allows(f.ID) || h.r.IntN(50) == 0 {
			m.Fields = append(m.Fields, f)
		}
	}
	return m
}

var actionTypes = []uint16{
	of13.ActionOutput, of13.ActionCopyTTLOut, of13.ActionCopyTTLIn, of13.ActionSetMPLSTTL, of13.ActionDecMPLSTTL, of13.ActionPushVLAN, of13.ActionPopVLAN,
	of13.ActionPushMPLS, of13.ActionPopMPLS, of13.ActionSetQueue, of13.ActionGroup, of13.ActionSetNWTTL, of13.ActionDecNWTTL, of13.ActionSetField,
	of13.ActionPushPBB, of13.ActionPopPBB, of13.ActionExperimenter,
}

func (h *hostile) action() of13.Action {
	types := []uint16{0x8100, 0x88a8, 0x8847, 0x8848, 0x88e7, 0x0800, 0x86dd, uint16(h.r.Uint32())}
	a := of13.Action{
		Type: actionTypes[h.r.IntN(len(actionTypes))], MaxLen: uint16(h.r.Uint32()), EtherType: types[h.r.IntN(len(types))],
		TTL: uint8(h.r.Uint32()), Number: h.port(), Data: make([]byte, 8*h.r.IntN(3)),
	}
	if a.Type == of13.ActionGroup {
		a.Number = h.group()
	}
	if a.Type == of13.ActionSetField {
		a.Field = h.field()
	}
	return a
}

func (h *hostile) actions() (list []of13.Action) {
	for range h.r.IntN(5) {
		list = append(list, h.action())
	}
	return append(list, of13.Output(h.port()))
}

func (h *hostile) instructions() (list []of13.Instruction) {
	for _, kind := range []uint16{of13.InstructionMeter, of13.InstructionApply, of13.InstructionClear, of13.InstructionWrite, of13.InstructionMetadata, of13.InstructionGoto} {
		if h.r.IntN(3) == 0 {
			list = append(list, of13.Instruction{Type: kind, Table: uint8(h.r.IntN(10)), Metadata: h.r.Uint64(), Mask: h.r.Uint64(), Meter: h.group(), Actions: h.actions()})
		}
	}
	return list
}
