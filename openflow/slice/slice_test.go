package slice

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// bed is a switch of four ports without devices, whose frames are a test's.
type bed struct {
	mu     sync.Mutex
	tables *pipeline.Switch
	hub    *channel.Hub
	sent   []string // PORT/VLAN
}

func (b *bed) Send(port, _ uint32, frame []byte) {
	b.sent = append(b.sent, fmt.Sprintf("%d/%d", port, vlanOf(frame)))
}
func (b *bed) PacketIn(m *of13.PacketIn)       { b.hub.PacketIn(m) }
func (b *bed) FlowRemoved(m *of13.FlowRemoved) { b.hub.FlowRemoved(m) }
func (b *bed) PortStatus(m *of13.PortStatus)   { b.hub.PortStatus(m) }

func (b *bed) Do(m of13.Message) (of13.Message, error) { return b.tables.Do(1, m) }
func (b *bed) Atomic(run func() error) error           { return b.tables.Atomic(run) }

// newBed runs it at an address until the test, or stop, ends it.
func newBed(t *testing.T, address string) (b *bed, stop func()) {
	t.Helper()
	return newBedAt(t, "ptcp:"+address, nil)
}

// newBedAt is newBed with where it listens for what it shows over TLS.
func newBedAt(t *testing.T, where string, conf *tls.Config) (b *bed, stop func()) {
	t.Helper()
	wake := make(chan struct{}, 1)
	b = &bed{hub: channel.NewHub(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})}
	b.tables = pipeline.New(pipeline.Config{DatapathID: 0x51, Tables: 32, Entries: 1000, Groups: 50, Meters: 50}, b)
	for n := uint32(1); n <= 4; n++ {
		b.tables.SetPort(0, of13.Port{Number: n, Name: fmt.Sprint("eth", n)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		target, err := channel.ParseTarget(where)
		if err == nil {
			err = b.hub.Run(ctx, target, conf, func(error) {})
		}
		if err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		for ctx.Err() == nil {
			b.mu.Lock()
			in, ok := b.hub.Next()
			if ok {
				b.hub.Handle(in, b)
			}
			b.mu.Unlock()
			if !ok {
				select {
				case <-ctx.Done():
				case <-wake:
				}
			}
		}
	})
	stop = sync.OnceFunc(func() { cancel(); b.hub.Close(); running.Wait() })
	t.Cleanup(stop)
	return b, stop
}

// receive gives the switch a frame, and says where it left.
func (b *bed) receive(port uint32, frame []byte) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = nil
	b.tables.Receive(1, port, frame)
	return slices.Clone(b.sent)
}

// frame is a datagram with a VLAN tag; 0: without.
func frame(t *testing.T, vlan int, source byte) []byte {
	t.Helper()
	ether := &layers.Ethernet{DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, source}, EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 0, 0, source}, DstIP: net.IP{10, 0, 0, 2}}
	udp := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	list := []gopacket.SerializableLayer{ether}
	if vlan > 0 {
		ether.EthernetType = layers.EthernetTypeDot1Q
		list = append(list, &layers.Dot1Q{VLANIdentifier: uint16(vlan), Type: layers.EthernetTypeIPv4})
	}
	buffer := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, append(list, ip, udp, gopacket.Payload(make([]byte, 30)))...); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func vlanOf(frame []byte) int {
	if frame[12] != 0x81 || frame[13] != 0 {
		return 0
	}
	return int(frame[14])<<8&0xf00 | int(frame[15])
}

// peer is a slice's controller.
type peer struct {
	t    *testing.T
	l    net.Listener
	conn net.Conn
	r    *bufio.Reader
	xid  uint32
	in   []*of13.PacketIn
	gone []*of13.FlowRemoved
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &peer{t: t, l: l}
}

func (p *peer) target() []channel.Target { return []channel.Target{{Address: p.l.Addr().String()}} }

// accept waits for the proxy, and greets it.
func (p *peer) accept() {
	p.t.Helper()
	p.l.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second))
	conn, err := p.l.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	p.conn, p.r = conn, bufio.NewReader(conn)
	p.send(&of13.Hello{Bitmap: 1 << of13.Version})
	if h, m := p.read(); h.Type != of13.TypeHello {
		p.t.Fatalf("the proxy greets with %+v", m)
	}
}

func (p *peer) send(m of13.Message) uint32 {
	p.t.Helper()
	p.xid++
	b, err := of13.Append(nil, p.xid, m)
	if err == nil {
		_, err = p.conn.Write(b)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return p.xid
}

func (p *peer) read() (of13.Header, of13.Message) {
	p.t.Helper()
	head, err := p.r.Peek(of13.HeaderLen)
	if err != nil {
		p.t.Fatal(err)
	}
	raw := make([]byte, of13.ReadHeader(head).Length)
	if _, err := io.ReadFull(p.r, raw); err != nil {
		p.t.Fatal(err)
	}
	h, m, err := new(of13.Decoder).Decode(raw)
	if err != nil {
		p.t.Fatal(err)
	}
	return h, m
}

// ask gives the answer to a message: its reply, its error, or nil.
func (p *peer) ask(m of13.Message) (reply of13.Message, refused error) {
	p.t.Helper()
	of, barrier := p.send(m), p.send(&of13.Plain{Kind: of13.TypeBarrierRequest})
	for {
		h, m := p.read()
		switch m := m.(type) {
		case *of13.PacketIn:
			p.in = append(p.in, m)
		case *of13.FlowRemoved:
			p.gone = append(p.gone, m)
		case *of13.ErrorMessage:
			if h.XID == of {
				refused = of13.Error(uint32(m.Kind)<<16 | uint32(m.Code))
			}
		default:
			if h.XID == barrier {
				return reply, refused
			}
			if h.XID == of {
				reply = m
			}
		}
	}
}

// does wants messages done.
func (p *peer) does(list ...of13.Message) {
	p.t.Helper()
	for _, m := range list {
		if _, err := p.ask(m); err != nil {
			p.t.Fatalf("%+v: %v", m, err)
		}
	}
}

// refused wants a message refused by an error.
func (p *peer) refused(want of13.Error, m of13.Message) {
	p.t.Helper()
	if _, err := p.ask(m); err != want {
		p.t.Errorf("%+v: %v, want %v", m, err, want)
	}
}

func (p *peer) asks(kind uint16) *of13.MultipartReply {
	p.t.Helper()
	m := &of13.MultipartRequest{Kind: kind, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}, Number: of13.PortAny}
	switch kind {
	case of13.MultipartGroup:
		m.Number = of13.GroupAll
	case of13.MultipartMeter, of13.MultipartMeterConfig:
		m.Number = of13.MeterAll
	}
	r, err := p.ask(m)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.(*of13.MultipartReply)
}

// arrives waits for a packet-in.
func (p *peer) arrives() *of13.PacketIn {
	p.t.Helper()
	for len(p.in) == 0 {
		if _, m := p.read(); m.Type() == of13.TypePacketIn {
			p.in = append(p.in, m.(*of13.PacketIn))
		}
	}
	in := p.in[0]
	p.in = p.in[1:]
	return in
}

func entry(table uint8, fields []of13.Field, actions ...of13.Action) *of13.FlowMod {
	return &of13.FlowMod{
		Table: table, Priority: 5, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Match: of13.Match{Fields: fields},
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: actions}},
	}
}

func every(command uint8) *of13.FlowMod {
	return &of13.FlowMod{Command: command, Table: of13.TableAll, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny}
}

func vlan(n uint64) of13.Field { return of13.Exact(of13.VLANVID, of13.VLANPresent|n) }

// shared is a switch with slices: alice's by ports, bob's and carol's by VLAN at the
// ports that they share, and the rest.
type shared struct {
	*bed
	stop                    func()
	address                 string
	memory                  Memory
	end                     func() // of the proxy
	alice, bob, carol, rest *peer
}

func share(t *testing.T) *shared { return shareKept(t, nil) }

// shareKept is share with a memory of the proxy's.
func shareKept(t *testing.T, memory Memory) *shared {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &shared{address: l.Addr().String(), memory: memory, alice: newPeer(t), bob: newPeer(t), carol: newPeer(t), rest: newPeer(t)}
	l.Close() // not before: peers would get its port
	s.bed, s.stop = newBed(t, s.address)
	s.begin(t)
	return s
}

// begin runs the proxy until end.
func (s *shared) begin(t *testing.T) {
	t.Helper()
	target, err := channel.ParseTarget("tcp:" + s.address)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Switch: target, Memory: s.memory, Log: func(err error) { t.Log(err) }, Slices: []Slice{
		{Name: "alice", Controllers: s.alice.target(), Ports: []uint32{1, 2}, Tables: 4, Entries: 6, Groups: 2, Meters: 2},
		{Name: "bob", Controllers: s.bob.target(), Ports: []uint32{3, 4}, Match: []of13.Field{vlan(10)}, Tables: 4, Entries: 50, Groups: 2, Meters: 2},
		{Name: "carol", Controllers: s.carol.target(), Match: []of13.Field{vlan(20)}, Ports: []uint32{3, 4}, Tables: 4, Entries: 50, Groups: 2, Meters: 2},
		{Name: "rest", Controllers: s.rest.target(), Default: true, Tables: 2, Entries: 50, Groups: 2, Meters: 2},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	s.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.end)
	s.connected()
}

func (s *shared) connected() {
	for _, p := range []*peer{s.alice, s.bob, s.carol, s.rest} {
		p.accept()
	}
}

// Each controller sees a switch of its own, and its entries meet its packets.
func TestSlicesAreSwitches(t *testing.T) {
	s := share(t)
	f, err := s.alice.ask(&of13.Plain{Kind: of13.TypeFeaturesRequest})
	if r := f.(*of13.FeaturesReply); err != nil || r.DatapathID != 0x51 || r.Tables != 4 || r.Buffers != 0 {
		t.Errorf("features %+v, %v", f, err)
	}
	for p, want := range map[*peer][]uint32{s.alice: {1, 2}, s.bob: {3, 4}, s.rest: {1, 2, 3, 4}} {
		var have []uint32
		for _, d := range p.asks(of13.MultipartPortDesc).PortDescs {
			have = append(have, d.Number)
		}
		if !slices.Equal(have, want) {
			t.Errorf("ports %v, want %v", have, want)
		}
	}
	s.alice.does(entry(0, nil, of13.Output(of13.PortAll)))
	s.bob.does(
		&of13.FlowMod{Priority: 1, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Instructions: []of13.Instruction{{Type: of13.InstructionGoto, Table: 3}}},
		entry(3, []of13.Field{of13.Exact(of13.InPort, 3)}, of13.Output(4)))
	s.carol.does(entry(0, nil, of13.Output(of13.PortController)))
	s.rest.does(entry(0, nil, of13.Output(of13.PortFlood)))
	for _, c := range []struct {
		port uint32
		vlan int
		want string
	}{{1, 0, "2/0"}, {2, 10, "1/10"}, {3, 10, "4/10"}, {4, 10, ""}, {3, 20, ""}, {3, 0, "1/0 2/0 4/0"}, {4, 30, "1/30 2/30 3/30"}} {
		if got := strings.Join(s.receive(c.port, frame(t, c.vlan, 1)), " "); got != c.want {
			t.Errorf("by port %d with VLAN %d: %q, want %q", c.port, c.vlan, got, c.want)
		}
	}
	if in := s.carol.arrives(); in.Table != 0 || in.Buffer != of13.NoBuffer || int(in.Total) != len(in.Data) {
		t.Errorf("packet-in %+v", in)
	}
	if r := s.bob.asks(of13.MultipartFlow); len(r.Flows) != 2 || r.Flows[0].Instructions[0].Table != 3 || r.Flows[1].Table != 3 || r.Flows[1].Packets != 1 {
		t.Errorf("bob's entries %+v", r.Flows)
	}
	if r := s.alice.asks(of13.MultipartAggregate); r.Aggregate.Flows != 1 || r.Aggregate.Packets != 2 {
		t.Errorf("sums over alice's %+v", r.Aggregate)
	}
	if r := s.bob.asks(of13.MultipartTable); len(r.Tables) != 4 || r.Tables[3].Active != 1 {
		t.Errorf("bob's tables %+v", r.Tables)
	}
	if r := s.rest.asks(of13.MultipartTableFeatures); len(r.TableFeatures) != 2 || r.TableFeatures[1].Table != 1 {
		t.Errorf("tables of the rest %+v", r.TableFeatures)
	}
}

// Numbers of groups and meters are each controller's own, and "all" is all of its own.
func TestNumbersAreOnesOwn(t *testing.T) {
	s := share(t)
	for _, c := range []struct {
		p   *peer
		out uint32
	}{{s.alice, 2}, {s.bob, 4}} {
		c.p.does(
			&of13.GroupMod{Kind: of13.GroupTypeIndirect, Group: 7, Buckets: []of13.Bucket{{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny, Actions: []of13.Action{of13.Output(c.out)}}}},
			&of13.MeterMod{Flags: of13.MeterPKTPS, Meter: 1, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: 1000}}},
			&of13.FlowMod{Flags: of13.FlowSendRemoved, Priority: 1, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Instructions: []of13.Instruction{
				{Type: of13.InstructionMeter, Meter: 1}, {Type: of13.InstructionApply, Actions: []of13.Action{{Type: of13.ActionGroup, Number: 7}}}}})
	}
	if a, b := s.receive(1, frame(t, 0, 1)), s.receive(3, frame(t, 10, 1)); !slices.Equal(a, []string{"2/0"}) || !slices.Equal(b, []string{"4/10"}) {
		t.Errorf("by groups of one number: %v and %v", a, b)
	}
	for _, p := range []*peer{s.alice, s.bob} {
		g, d, m := p.asks(of13.MultipartGroup).Groups, p.asks(of13.MultipartGroupDesc).GroupDescs, p.asks(of13.MultipartMeterConfig).MeterConfigs
		if len(g) != 1 || g[0].Group != 7 || g[0].Count.Packets != 1 || len(d) != 1 || d[0].Group != 7 || len(m) != 1 || m[0].Meter != 1 {
			t.Errorf("groups %+v %+v, meters %+v", g, d, m)
		}
		if i := p.asks(of13.MultipartFlow).Flows[0].Instructions; i[0].Meter != 1 || i[1].Actions[0].Number != 7 {
			t.Errorf("instructions %+v", i)
		}
	}
	s.alice.does(&of13.GroupMod{Command: of13.CommandDelete, Group: of13.GroupAll}, &of13.MeterMod{Command: of13.CommandDelete, Meter: of13.MeterAll}, every(of13.FlowDelete))
	if n := len(s.alice.asks(of13.MultipartGroupDesc).GroupDescs); n != 0 || len(s.alice.gone) != 1 || s.alice.gone[0].Table != 0 {
		t.Errorf("%d of alice's groups are there, removed were %+v", n, s.alice.gone)
	}
	if got := s.receive(3, frame(t, 10, 1)); !slices.Equal(got, []string{"4/10"}) || len(s.bob.gone) != 0 {
		t.Errorf("what alice deleted was bob's, too: %v, %+v", got, s.bob.gone)
	}
	for n := uint32(1); n <= 2; n++ {
		s.alice.does(&of13.GroupMod{Kind: of13.GroupTypeAll, Group: n})
	}
	s.alice.refused(of13.GroupModFailedOutOfGroups, &of13.GroupMod{Kind: of13.GroupTypeAll, Group: 3})
}

// What leads out of a slice is refused by the error of the specification, and changes
// nothing.
func TestWhatLeadsOutIsRefused(t *testing.T) {
	s := share(t)
	out := func(actions ...of13.Action) *of13.PacketOut {
		return &of13.PacketOut{Buffer: of13.NoBuffer, InPort: of13.PortController, Data: frame(t, 10, 1), Actions: actions}
	}
	bucket := func(b of13.Bucket) *of13.GroupMod {
		return &of13.GroupMod{Kind: of13.GroupTypeIndirect, Group: 1, Buckets: []of13.Bucket{b}}
	}
	untagged, buffered := out(of13.Output(4)), entry(0, nil, of13.Output(3))
	untagged.Data, buffered.Buffer = frame(t, 0, 1), 1
	for _, c := range []struct {
		want of13.Error
		m    of13.Message
	}{
		{of13.FlowModFailedEPerm, entry(0, []of13.Field{of13.Exact(of13.InPort, 1)}, of13.Output(3))},
		{of13.FlowModFailedEPerm, entry(0, []of13.Field{vlan(20)}, of13.Output(3))},
		{of13.FlowModFailedBadTableID, entry(4, nil, of13.Output(3))},
		{of13.BadActionBadOutPort, entry(0, nil, of13.Output(1))},
		{of13.BadActionBadOutPort, entry(0, nil, of13.Output(of13.PortNormal))},
		{of13.BadActionBadOutPort, entry(0, nil, of13.Output(of13.PortLocal))},
		{of13.BadActionBadOutPort, entry(0, nil, of13.Output(of13.PortTable))},
		{of13.BadActionEPerm, entry(0, []of13.Field{vlan(10)}, of13.SetField(vlan(20)), of13.Output(3))},
		{of13.BadActionEPerm, entry(0, []of13.Field{vlan(10)}, of13.Action{Type: of13.ActionPopVLAN}, of13.Output(3))},
		{of13.BadActionEPerm, entry(0, nil, of13.Action{Type: of13.ActionPushVLAN, EtherType: 0x8100}, of13.Output(3))},
		{of13.BadActionBadOutGroup, entry(0, nil, of13.Action{Type: of13.ActionGroup, Number: 1})},
		{of13.BadInstructionBadTableID, &of13.FlowMod{Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Instructions: []of13.Instruction{{Type: of13.InstructionGoto, Table: 9}}}},
		{of13.MeterModFailedUnknownMeter, &of13.FlowMod{Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Instructions: []of13.Instruction{{Type: of13.InstructionMeter, Meter: 1}}}},
		{of13.BadRequestBufferUnknown, buffered},
		{of13.BadActionBadOutPort, bucket(of13.Bucket{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny, Actions: []of13.Action{of13.Output(1)}})},
		{of13.GroupModFailedBadWatch, bucket(of13.Bucket{WatchPort: 1, WatchGroup: of13.GroupAny})},
		{of13.GroupModFailedUnknownGroup, &of13.GroupMod{Command: of13.CommandModify, Group: 1}},
		{of13.MeterModFailedUnknownMeter, &of13.MeterMod{Command: of13.CommandModify, Meter: 1}},
		{of13.BadActionBadOutPort, out(of13.Output(2))},
		{of13.BadActionBadOutPort, out(of13.Output(of13.PortTable))},
		{of13.BadRequestEPerm, untagged},
		{of13.PortModFailedBadPort, &of13.PortMod{Port: 1}},
		{of13.PortModFailedEPerm, &of13.PortMod{Port: 3, Config: of13.PortConfigDown, Mask: of13.PortConfigDown}},
		{of13.TableModFailedBadTable, &of13.TableMod{Table: 5}},
		{of13.SwitchConfigFailedEPerm, &of13.Config{Kind: of13.TypeSetConfig, Flags: 1}},
		{of13.BadRequestBadPort, &of13.MultipartRequest{Kind: of13.MultipartPort, Number: 1}},
		{of13.BadRequestBadTableID, &of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: 7, OutPort: of13.PortAny, OutGroup: of13.GroupAny}}},
	} {
		s.bob.refused(c.want, c.m)
	}
	if n := len(s.bob.asks(of13.MultipartFlow).Flows) + len(s.bob.asks(of13.MultipartGroupDesc).GroupDescs); n != 0 {
		t.Errorf("%d entries and groups are there", n)
	}
	s.bob.does(out(of13.Output(4)))
	for n := range uint16(6) {
		m := entry(0, nil, of13.Output(1))
		m.Priority = n
		s.alice.does(m)
	}
	last := entry(0, nil, of13.Output(1))
	last.Priority = 100
	s.alice.refused(of13.FlowModFailedTableFull, last)
	s.alice.does(every(of13.FlowDelete), last)
}

// Frames of a slice by addresses do not become others by what was in them, nor those of
// a slice by DSCP by a meter.
func TestPacketsStayOfTheirSlice(t *testing.T) {
	byAddress := &view{Slice: &Slice{Match: []of13.Field{of13.Exact(of13.EthDst, 1)}}}
	for action, want := range map[uint16]error{of13.ActionPushVLAN: nil, of13.ActionPushPBB: nil, of13.ActionPopPBB: of13.BadActionEPerm, of13.ActionEncap: of13.BadActionEPerm, of13.ActionDecap: of13.BadActionEPerm} {
		if _, err := byAddress.actions([]of13.Action{{Type: action}}, false); err != want {
			t.Errorf("action %d: %v", action, err)
		}
	}
	byPort := &view{Slice: &Slice{Ports: []uint32{1}}}
	if _, err := byPort.actions([]of13.Action{{Type: of13.ActionPopPBB}}, false); err != nil {
		t.Error(err)
	}
	byDSCP := &view{Slice: &Slice{Match: []of13.Field{of13.Exact(of13.EthType, 0x800), of13.Exact(of13.IPDSCP, 10)}, Meters: 4}}
	byDSCP.meters = newNumbers(newPool(), 1, 4)
	for kind, want := range map[uint16]error{of13.BandDrop: nil, of13.BandDSCPRemark: of13.MeterModFailedBadBand} {
		if _, _, err := byDSCP.change(&of13.MeterMod{Meter: uint32(kind), Bands: []of13.Band{{Kind: kind, Rate: 1}}}); err != want {
			t.Errorf("band %d: %v", kind, err)
		}
	}
}

// A packet-in with fields that OpenFlow 1.3 does not know ends nothing; what else cannot
// be read does.
func TestPacketsOfUnknownFieldsEndNothing(t *testing.T) {
	raw, err := of13.Append(nil, 0, &of13.PacketIn{Buffer: of13.NoBuffer, Match: of13.Match{Fields: []of13.Field{of13.Exact(of13.InPort, 1), of13.Exact(of13.TunnelID, 7)}}, Data: make([]byte, 60)})
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(raw, []byte{0x80, 0, byte(of13.TunnelID) << 1, 8})
	copy(raw[at:], []byte{0, 1, 31 << 1, 8}) // NXM of Open vSwitch
	echo, _ := of13.Append(nil, 1, &of13.Echo{Reply: true})
	u := newUpstream(writeless{}, func() {})
	r := bufio.NewReaderSize(bytes.NewReader(slices.Concat(raw, echo, []byte{4, 13, 0, 8, 0, 0, 0, 0})), of13.MaxLen+1)
	for range 2 {
		if err := u.one(r); err != nil {
			t.Fatal(err)
		}
	}
	if h, ok, _ := u.answer(1); len(u.events) != 0 || ok {
		t.Errorf("became %v %v", u.events, h)
	}
	if err := u.one(r); err == nil {
		t.Error("a packet-out that is none was taken")
	}
}

type writeless struct{ net.Conn }

func (writeless) SetReadDeadline(time.Time) error { return nil }

// The default slice may send packets as the switch does by itself, which others may not.
func TestDefaultSliceMayUseNormal(t *testing.T) {
	s := share(t)
	s.rest.does(entry(0, nil, of13.Output(of13.PortNormal)))
	if got := s.receive(3, frame(t, 0, 1)); !slices.Equal(got, []string{"1/0", "2/0", "4/0"}) {
		t.Errorf("a frame to everybody went to %v", got)
	}
	if got := s.receive(1, frame(t, 0, 1)); len(got) != 0 {
		t.Errorf("alice's frame went to %v", got)
	}
	s.alice.refused(of13.BadActionBadOutPort, entry(0, nil, of13.Output(of13.PortNormal)))
}

// A proxy that ends, and another one that begins with what it remembered, lose nothing of
// slices, and no frame while there is none.
func TestSlicesOutliveTheProxy(t *testing.T) {
	files, err := OpenFiles(t.TempDir(), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	s := shareKept(t, files)
	group := func(n, out uint32) of13.Message {
		return &of13.GroupMod{Kind: of13.GroupTypeIndirect, Group: n, Buckets: []of13.Bucket{{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny, Actions: []of13.Action{of13.Output(out)}}}}
	}
	meter := &of13.MeterMod{Flags: of13.MeterPKTPS, Meter: 5, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: 1000}}}
	through := entry(0, nil, of13.Action{Type: of13.ActionGroup, Number: 7})
	through.Instructions = append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: 5}}, through.Instructions...)
	s.alice.does(meter, group(7, 2), through)
	s.bob.does(group(7, 4), entry(0, nil, of13.Action{Type: of13.ActionGroup, Number: 7}))
	forwards := func() {
		t.Helper()
		if a, b := s.receive(1, frame(t, 0, 1)), s.receive(3, frame(t, 10, 1)); !slices.Equal(a, []string{"2/0"}) || !slices.Equal(b, []string{"4/10"}) {
			t.Errorf("frames went to %v and %v", a, b)
		}
	}
	forwards()
	s.end()
	forwards()
	s.begin(t)
	forwards()
	flows, groups, meters := s.alice.asks(of13.MultipartFlow).Flows, s.alice.asks(of13.MultipartGroup).Groups, s.alice.asks(of13.MultipartMeterConfig).MeterConfigs
	if len(flows) != 1 || flows[0].Packets != 3 || len(groups) != 1 || groups[0].Group != 7 || groups[0].Count.Packets != 3 || len(meters) != 1 || meters[0].Meter != 5 {
		t.Errorf("alice has entries %+v, groups %+v, meters %+v", flows, groups, meters)
	}
	s.alice.does(group(1, 1), &of13.GroupMod{Command: of13.CommandDelete, Group: 7})
	s.alice.does(every(of13.FlowDelete), entry(0, nil, of13.Action{Type: of13.ActionGroup, Number: 1}))
	if got := s.receive(3, frame(t, 10, 1)); !slices.Equal(got, []string{"4/10"}) {
		t.Errorf("what alice changed was bob's, too: %v", got)
	}
}

// When the switch begins anew, so do the controllers.
func TestSwitchBeginsAnew(t *testing.T) {
	s := share(t)
	s.alice.does(entry(0, nil, of13.Output(of13.PortAll)))
	s.stop()
	s.bed, s.stop = newBed(t, s.address)
	s.connected()
	if n := len(s.alice.asks(of13.MultipartFlow).Flows); n != 0 {
		t.Errorf("%d entries are there", n)
	}
	s.alice.does(entry(0, nil, of13.Output(of13.PortAll)))
	if got := s.receive(1, frame(t, 0, 1)); !slices.Equal(got, []string{"2/0"}) {
		t.Errorf("a frame went to %v", got)
	}
}

// Whatever a controller asks for, frames of its slice leave by its ports as frames of
// its slice, and those of others go their way.
func TestHostileControllerStaysInItsSlice(t *testing.T) {
	s := share(t)
	s.alice.does(entry(0, nil, of13.Output(of13.PortAll)))
	s.carol.does(entry(0, nil, of13.Output(of13.PortAll)))
	r := rand.New(rand.NewPCG(4, 2))
	for range 1500 {
		_, err := s.bob.ask(anything(r))
		var refused of13.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		port, source := uint32(3+r.IntN(2)), byte(r.IntN(256))
		for _, to := range s.receive(port, frame(t, 10, source)) {
			if to != "3/10" && to != "4/10" {
				t.Fatalf("a frame of bob's left as %s", to)
			}
		}
	}
	if a, b := s.receive(1, frame(t, 10, 1)), s.receive(3, frame(t, 20, 1)); !slices.Equal(a, []string{"2/10"}) || !slices.Equal(b, []string{"4/20"}) {
		t.Errorf("frames of others left by %v and %v", a, b)
	}
	for _, p := range []*peer{s.alice, s.carol} {
		if n := len(p.asks(of13.MultipartFlow).Flows); n != 1 || len(p.in) > 0 {
			t.Errorf("%d entries, %d packet-ins of others", n, len(p.in))
		}
	}
}

// anything is a message that changes something, whatever it says.
func anything(r *rand.Rand) of13.Message {
	ports := []uint32{1, 2, 3, 4, of13.PortAll, of13.PortFlood, of13.PortInPort, of13.PortNormal, of13.PortController, of13.PortTable, of13.PortLocal}
	port := func() uint32 { return ports[r.IntN(len(ports))] }
	action := func() of13.Action {
		switch r.IntN(8) {
		case 0:
			return of13.SetField(vlan(uint64([]int{10, 20, 30}[r.IntN(3)])))
		case 1:
			return of13.Action{Type: of13.ActionPopVLAN}
		case 2:
			return of13.Action{Type: of13.ActionPushVLAN, EtherType: 0x8100}
		case 3:
			return of13.Action{Type: of13.ActionGroup, Number: uint32(r.IntN(3))}
		case 4:
			return of13.SetField(of13.Exact(of13.EthDst, uint64(r.IntN(5))))
		case 5:
			return of13.Action{Type: of13.ActionPushMPLS, EtherType: 0x8847}
		}
		return of13.Output(port())
	}
	var actions []of13.Action
	for range r.IntN(4) {
		actions = append(actions, action())
	}
	fields := [][]of13.Field{nil, {of13.Exact(of13.InPort, uint64(1+r.IntN(4)))}, {vlan(uint64([]int{10, 20}[r.IntN(2)]))}, {of13.Exact(of13.EthSrc, 0x020000000000|uint64(r.IntN(256)))}}
	switch r.IntN(6) {
	case 0:
		return &of13.GroupMod{Command: uint16(r.IntN(3)), Kind: uint8(r.IntN(4)), Group: uint32(r.IntN(4)), Buckets: []of13.Bucket{{WatchPort: port(), WatchGroup: of13.GroupAny, Actions: actions}}}
	case 1:
		return &of13.PacketOut{Buffer: of13.NoBuffer, InPort: port(), Actions: actions, Data: make([]byte, 60)}
	case 2:
		return &of13.PortMod{Port: uint32(1 + r.IntN(4)), Config: uint32(r.IntN(128)), Mask: uint32(r.IntN(128))}
	case 3:
		return every(of13.FlowDelete)
	}
	m := entry(uint8(r.IntN(6)), fields[r.IntN(len(fields))], actions...)
	m.Priority, m.Command = uint16(r.IntN(3)), uint8(r.IntN(3))
	if m.Instructions[0].Type = of13.InstructionApply; r.IntN(3) == 0 {
		m.Instructions[0].Type = of13.InstructionWrite
	}
	if r.IntN(2) == 0 {
		m.Instructions = append(m.Instructions, of13.Instruction{Type: of13.InstructionGoto, Table: uint8(r.IntN(8))})
	}
	return m
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	to := []channel.Target{{Address: "192.0.2.1:6653"}}
	good := Slice{Name: "a", Controllers: to, Ports: []uint32{1}, Tables: 1, Entries: 1}
	other := Slice{Name: "b", Controllers: to, Ports: []uint32{2}, Tables: 1, Entries: 1}
	with := func(change func(*Slice)) []Slice {
		s := other
		change(&s)
		return []Slice{good, s}
	}
	if err := (&Config{Slices: []Slice{good, other}}).Check(); err != nil {
		t.Error(err)
	}
	for want, list := range map[string][]Slice{
		"state one":               nil,
		"two of that name":        with(func(s *Slice) { s.Name = "a" }),
		"also of slice a":         with(func(s *Slice) { s.Ports = []uint32{2, 1} }),
		"also of slice a: ":       with(func(s *Slice) { s.Ports, s.Match = nil, []of13.Field{vlan(1)} }),
		"state its controller":    with(func(s *Slice) { s.Controllers = nil }),
		"states neither":          with(func(s *Slice) { s.Default = true }),
		"or that it is":           with(func(s *Slice) { s.Ports = nil }),
		"stands twice":            with(func(s *Slice) { s.Ports = []uint32{2, 2} }),
		"have 301 tables":         with(func(s *Slice) { s.Tables = 300 }),
		"needs a table":           with(func(s *Slice) { s.Entries = 0 }),
		"state ports":             with(func(s *Slice) { s.Match = []of13.Field{of13.Exact(of13.InPort, 1)} }),
		"BadPrereq":               with(func(s *Slice) { s.Match = []of13.Field{of13.Exact(of13.IPv4Src, 1)} }),
		"only one may be the def": {{Name: "a", Controllers: to, Default: true, Tables: 1, Entries: 1}, {Name: "b", Controllers: to, Default: true, Tables: 1, Entries: 1}},
	} {
		if err := (&Config{Slices: list}).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
