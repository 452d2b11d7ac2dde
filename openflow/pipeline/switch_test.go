package pipeline

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sublet/openflow/of13"
)

// record is a sink that keeps what it gets.
type record struct {
	sent    []string // PORT:QUEUE, for each frame
	frames  [][]byte
	in      []of13.PacketIn
	removed []of13.FlowRemoved
	status  []of13.PortStatus
}

func (r *record) Send(port, queue uint32, frame []byte) {
	r.sent = append(r.sent, fmt.Sprintf("%d:%d", port, queue))
	r.frames = append(r.frames, bytes.Clone(frame))
}
func (r *record) PacketIn(m *of13.PacketIn) {
	c := *m
	c.Data = bytes.Clone(m.Data)
	r.in = append(r.in, c)
}
func (r *record) FlowRemoved(m *of13.FlowRemoved) { r.removed = append(r.removed, *m) }
func (r *record) PortStatus(m *of13.PortStatus)   { r.status = append(r.status, *m) }

const second = int64(1e9)

func newSwitch(t *testing.T) (*Switch, *record) {
	r := &record{}
	s := New(Config{DatapathID: 1, Tables: 8, Entries: 100, Groups: 10, Meters: 10}, r)
	for n := range uint32(4) {
		s.SetPort(0, of13.Port{Number: n + 1, HWAddr: [6]byte{2, 0, 0, 0, 1, byte(n)}})
	}
	r.status = nil
	return s, r
}

func udp(t testing.TB, size int) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, TOS: 72, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
	u := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	u.SetNetworkLayerForChecksum(ip)
	return serialize(t, &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}, ip, u, gopacket.Payload(make([]byte, size)))
}

func serialize(t testing.TB, list ...gopacket.SerializableLayer) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, list...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func apply(a ...of13.Action) []of13.Instruction {
	return []of13.Instruction{{Type: of13.InstructionApply, Actions: a}}
}

func write(a ...of13.Action) of13.Instruction {
	return of13.Instruction{Type: of13.InstructionWrite, Actions: a}
}

func flow(table uint8, priority uint16, does []of13.Instruction, match ...of13.Field) *of13.FlowMod {
	return &of13.FlowMod{Table: table, Priority: priority, Match: of13.Match{Fields: match}, Instructions: does, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny}
}

func must(t *testing.T, s *Switch, now int64, list ...of13.Message) {
	t.Helper()
	for _, m := range list {
		if _, err := s.Do(now, m); err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
	}
}

func (r *record) expect(t *testing.T, sent ...string) {
	t.Helper()
	if fmt.Sprint(r.sent) != fmt.Sprint(sent) {
		t.Errorf("frames left by %v instead of %v", r.sent, sent)
	}
	r.sent = nil
}

var bucketTo = func(port uint32) of13.Bucket {
	return of13.Bucket{Weight: 0, WatchPort: port, WatchGroup: of13.GroupAny, Actions: []of13.Action{of13.Output(port)}}
}

func TestOutputs(t *testing.T) {
	cases := []struct {
		name string
		does []of13.Instruction
		sent []string
	}{
		{"a port", apply(of13.Output(2)), []string{"2:0"}},
		{"several, with a queue", apply(of13.Output(2), of13.Action{Type: of13.ActionSetQueue, Number: 5}, of13.Output(3)), []string{"2:0", "3:5"}},
		{"the port it came from", apply(of13.Output(1), of13.Output(of13.PortInPort)), []string{"1:0"}},
		{"all others", apply(of13.Output(of13.PortAll)), []string{"2:0", "3:0", "4:0"}},
		{"no action", nil, nil},
		{"a port that is not there", apply(of13.Output(77)), nil},
		{"set: last output counts", []of13.Instruction{write(of13.Output(2)), {Type: of13.InstructionGoto, Table: 1}}, []string{"3:0"}},
		{"set: cleared", []of13.Instruction{write(of13.Output(2)), {Type: of13.InstructionGoto, Table: 2}}, nil},
		{"set: after a miss", []of13.Instruction{write(of13.Output(2)), {Type: of13.InstructionGoto, Table: 3}}, nil},
		{"set: a group instead of the output", []of13.Instruction{write(of13.Output(2), of13.Action{Type: of13.ActionGroup, Number: 1})}, []string{"4:0"}},
		{"metadata", []of13.Instruction{{Type: of13.InstructionMetadata, Metadata: 0x12ff, Mask: 0xff00}, {Type: of13.InstructionGoto, Table: 4}}, []string{"2:0"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, r := newSwitch(t)
			must(t, s, 0, &of13.GroupMod{Kind: of13.GroupTypeIndirect, Group: 1, Buckets: []of13.Bucket{bucketTo(4)}}, flow(0, 5, c.does), flow(0, 4, apply(of13.Output(4))),
				flow(1, 0, []of13.Instruction{write(of13.Output(3))}), flow(2, 0, []of13.Instruction{{Type: of13.InstructionClear}}),
				flow(4, 0, apply(of13.Output(2)), of13.Exact(of13.Metadata, 0x1200)))
			s.Receive(0, 1, udp(t, 20))
			r.expect(t, c.sent...)
		})
	}
}

// Whatever is done to a packet, its checksums are right after it, and what is
// undone leaves it as it was.
func TestActionsKeepPacketsWhole(t *testing.T) {
	frame := udp(t, 40)
	do := func(kind uint16, ether uint16) of13.Action { return of13.Action{Type: kind, EtherType: ether} }
	s, r := newSwitch(t)
	for name, list := range map[string][]of13.Action{
		"nothing": {},
		"VLAN":    {do(of13.ActionPushVLAN, 0x8100), of13.SetField(of13.Exact(of13.VLANVID, of13.VLANPresent|9)), do(of13.ActionPushVLAN, 0x88a8), do(of13.ActionPopVLAN, 0), do(of13.ActionPopVLAN, 0)},
		"MPLS":    {do(of13.ActionPushMPLS, 0x8847), do(of13.ActionPushMPLS, 0x8848), do(of13.ActionPopMPLS, 0x8847), do(of13.ActionPopMPLS, 0x0800)},
		"PBB":     {do(of13.ActionPushPBB, 0x88e7), of13.SetField(of13.Exact(of13.EthDst, 1)), do(of13.ActionPopPBB, 0)},
		"fields": {of13.SetField(of13.Exact(of13.IPv4Dst, 0x0a010203)), of13.SetField(of13.Exact(of13.UDPDst, 9)), of13.SetField(of13.Exact(of13.IPDSCP, 1)),
			of13.SetField(of13.Exact(of13.IPv4Dst, 0x0a000002)), of13.SetField(of13.Exact(of13.UDPDst, 2000)), of13.SetField(of13.Exact(of13.IPDSCP, 18))},
		"time to live": {do(of13.ActionDecNWTTL, 0), {Type: of13.ActionSetNWTTL, TTL: 64}},
	} {
		r.frames = nil
		must(t, s, 0, flow(0, 1, apply(append(list, of13.Output(2))...), of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 17)))
		s.Receive(0, 1, frame)
		if len(r.frames) != 1 || !bytes.Equal(r.frames[0], frame) {
			t.Errorf("%s: %x instead of %x", name, r.frames, frame)
		}
	}
}

func TestGroups(t *testing.T) {
	s, r := newSwitch(t)
	group := func(kind uint8, buckets ...of13.Bucket) {
		must(t, s, 0, &of13.GroupMod{Command: of13.CommandDelete, Group: of13.GroupAll}, &of13.GroupMod{Kind: kind, Group: 1, Buckets: buckets}, flow(0, 1, apply(of13.Action{Type: of13.ActionGroup, Number: 1})))
	}
	group(of13.GroupTypeAll, bucketTo(2), bucketTo(3))
	s.Receive(0, 1, udp(t, 20))
	r.expect(t, "2:0", "3:0")
	group(of13.GroupTypeFailover, bucketTo(2), bucketTo(3))
	s.Receive(0, 1, udp(t, 20))
	s.SetPort(0, of13.Port{Number: 2, State: of13.PortStateDown})
	s.Receive(0, 1, udp(t, 20))
	r.expect(t, "2:0", "3:0")
	a, b := bucketTo(3), bucketTo(4)
	a.Weight, b.Weight = 1, 3
	group(of13.GroupTypeSelect, a, b)
	frame, count := udp(t, 20), map[string]int{}
	for i := range 4000 {
		frame[26], frame[27] = byte(i), byte(i>>8) // address of the source
		s.Receive(0, 1, frame)
		s.Receive(0, 1, frame)
		if n := len(r.sent); r.sent[n-1] != r.sent[n-2] {
			t.Fatal("a flow changed its bucket")
		}
		count[r.sent[len(r.sent)-1]]++
	}
	if count["3:0"] < 900 || count["3:0"] > 1100 {
		t.Errorf("%v of 4000 flows at weights 1 and 3", count)
	}
}

// A chain of groups that sends the packet on four times each meets no more than so many buckets.
func TestBucketsOfAPacketAreBounded(t *testing.T) {
	s, r := newSwitch(t)
	const groups = 9
	for n := uint32(groups); n > 0; n-- {
		bucket := of13.Bucket{Actions: []of13.Action{{Type: of13.ActionGroup, Number: n + 1}}, WatchPort: of13.PortAny, WatchGroup: of13.GroupAny}
		if n == groups {
			bucket = bucketTo(2)
		}
		must(t, s, 0, &of13.GroupMod{Kind: of13.GroupTypeAll, Group: n, Buckets: []of13.Bucket{bucket, bucket, bucket, bucket}})
	}
	must(t, s, 0, flow(0, 1, apply(of13.Action{Type: of13.ActionGroup, Number: 1})))
	for range 2 {
		r.sent = nil
		s.Receive(0, 1, udp(t, 20))
		if n := len(r.sent); n == 0 || n > maxMet {
			t.Errorf("a packet left %d times", n)
		}
	}
}

// Groups with many buckets each, which lead to one another in a chain, are looked at once
// each when one of them changes: there are 20 to the power of 9 ways through these.
func TestWideChainsOfGroups(t *testing.T) {
	s, r := newSwitch(t)
	to := func(group uint32) *of13.GroupMod {
		m := &of13.GroupMod{Kind: of13.GroupTypeAll, Group: group, Buckets: []of13.Bucket{bucketTo(2)}}
		for range 20 * min(group-1, 1) {
			m.Buckets = append(m.Buckets, of13.Bucket{Actions: []of13.Action{{Type: of13.ActionGroup, Number: group - 1}}, WatchPort: of13.PortAny, WatchGroup: of13.GroupAny})
		}
		return m
	}
	for n := range uint32(10) {
		must(t, s, 0, to(n+1))
	}
	first := to(1)
	first.Command, first.Buckets = of13.CommandModify, []of13.Bucket{{Actions: []of13.Action{{Type: of13.ActionGroup, Number: 10}}}}
	if _, err := s.Do(0, first); err != of13.GroupModFailedLoop {
		t.Errorf("a loop: %v", err)
	}
	must(t, s, 0, flow(0, 1, apply(of13.Action{Type: of13.ActionGroup, Number: 10})))
	s.Receive(0, 1, udp(t, 20))
	if n := len(r.sent); n == 0 || n > maxMet {
		t.Errorf("a packet left %d times", n)
	}
}

// Groups are live by the ports that they watch, and by groups, also those that watch one
// another, however many ways there are.
func TestGroupsThatWatchGroups(t *testing.T) {
	s, r := newSwitch(t)
	watching := func(group, watched uint32) of13.Bucket {
		b := bucketTo(3)
		b.WatchPort, b.WatchGroup = of13.PortAny, watched
		return b
	}
	for n := uint32(1); n <= 8; n++ {
		m := &of13.GroupMod{Kind: of13.GroupTypeFailover, Group: n, Buckets: []of13.Bucket{bucketTo(2)}}
		for range 30 * min(n-1, 1) {
			m.Buckets = append(m.Buckets, watching(n, n-1))
		}
		if n > 1 {
			m.Buckets = m.Buckets[1:]
		}
		must(t, s, 0, m)
	}
	ring := func(group, watched uint32, more ...of13.Bucket) {
		must(t, s, 0, &of13.GroupMod{Kind: of13.GroupTypeFailover, Group: group, Buckets: append([]of13.Bucket{watching(group, watched)}, more...)})
	}
	ring(9, 10)
	ring(10, 9, watching(10, 1))
	must(t, s, 0, flow(0, 1, apply(of13.Action{Type: of13.ActionGroup, Number: 8}, of13.Action{Type: of13.ActionGroup, Number: 9})))
	s.SetPort(0, of13.Port{Number: 2, State: of13.PortStateDown})
	s.Receive(0, 1, udp(t, 20))
	r.expect(t)
	s.SetPort(0, of13.Port{Number: 2})
	s.Receive(0, 1, udp(t, 20))
	r.expect(t, "3:0", "3:0")
}

// A packet-out that leads through the tables as often as it can, where each entry sends
// as often as it can, is bounded.
func TestPacketOutsAreBounded(t *testing.T) {
	s, r := newSwitch(t)
	many := func(to uint32) []of13.Action {
		return slices.Repeat([]of13.Action{{Type: of13.ActionOutput, Number: to}}, 3900)
	}
	for _, to := range []uint32{of13.PortFlood, of13.PortInPort, 9} { // the last is not there
		r.sent = nil
		must(t, s, 0, flow(0, 1, apply(many(to)...)), &of13.PacketOut{Buffer: of13.NoBuffer, InPort: 1, Actions: many(of13.PortTable), Data: udp(t, 20)})
		if n := len(r.sent); to != 9 && n != maxSent || to == 9 && n != 0 {
			t.Errorf("a packet-out left %d times by %d", n, to)
		}
		if s.done > maxDone {
			t.Errorf("%d actions were done", s.done)
		}
	}
}

// Flows stay at their buckets of a select group whose other buckets come and go.
func TestFlowsKeepTheirBuckets(t *testing.T) {
	s, r := newSwitch(t)
	var buckets []of13.Bucket
	for port := uint32(2); port <= 4; port++ {
		b := bucketTo(port)
		b.Weight = uint16(port)
		buckets = append(buckets, b)
	}
	chosen := func() (ports [900]string) {
		frame := udp(t, 20)
		for i := range ports {
			frame[26], frame[27] = byte(i), byte(i>>8) // address of the source
			r.sent = nil
			s.Receive(0, 1, frame)
			ports[i] = strings.Join(r.sent, " ")
		}
		return ports
	}
	must(t, s, 0, &of13.GroupMod{Kind: of13.GroupTypeSelect, Group: 1, Buckets: buckets}, flow(0, 1, apply(of13.Action{Type: of13.ActionGroup, Number: 1})))
	all := chosen()
	must(t, s, 0, &of13.GroupMod{Command: of13.CommandModify, Kind: of13.GroupTypeSelect, Group: 1, Buckets: buckets[1:]})
	for i, port := range chosen() {
		if all[i] != "2:0" && port != all[i] {
			t.Fatalf("flow %d went from %s to %s when the bucket to 2 was taken away", i, all[i], port)
		}
	}
	must(t, s, 0, &of13.GroupMod{Command: of13.CommandModify, Kind: of13.GroupTypeSelect, Group: 1, Buckets: []of13.Bucket{buckets[2], buckets[0], buckets[1]}})
	if chosen() != all {
		t.Error("flows are elsewhere when all buckets are there again, in another order")
	}
}

func TestMeters(t *testing.T) {
	for _, c := range []struct {
		flags, kind uint16
		rate, burst uint32
		passed      int // of 1000 packets of 125 bytes in a second
	}{
		{of13.MeterPKTPS | of13.MeterBurst, of13.BandDrop, 100, 10, 110}, {of13.MeterKBPS | of13.MeterBurst, of13.BandDrop, 500, 100, 600},
		{of13.MeterKBPS, of13.BandDrop, 2000, 0, 1000},
	} {
		s, r := newSwitch(t)
		must(t, s, 0, &of13.MeterMod{Flags: c.flags, Meter: 1, Bands: []of13.Band{{Kind: c.kind, Rate: c.rate, Burst: c.burst}}},
			flow(0, 1, append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: 1}}, apply(of13.Output(2))...)))
		for i := range 1000 {
			s.Receive(int64(i)*1e6, 1, udp(t, 125-42))
		}
		if n := len(r.sent); n < c.passed-2 || n > c.passed+2 {
			t.Errorf("%+v: %d packets passed", c, n)
		}
	}
}

// Every second packet is above half the rate: it goes on with a higher drop precedence.
func TestMeterRemarks(t *testing.T) {
	s, r := newSwitch(t)
	must(t, s, 0, &of13.MeterMod{Flags: of13.MeterPKTPS | of13.MeterBurst, Meter: 1, Bands: []of13.Band{{Kind: of13.BandDSCPRemark, Rate: 500, Burst: 1, Precedence: 1}}},
		flow(0, 1, append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: 1}}, apply(of13.Output(2))...)))
	marks := map[byte]int{}
	for i := range 1000 {
		s.Receive(int64(i)*1e6, 1, udp(t, 80))
		marks[r.frames[i][15]>>2]++
	}
	if marks[18] != 500 || marks[20] != 500 {
		t.Errorf("classes %v", marks)
	}
}

func TestTimeoutsAndFlowRemoved(t *testing.T) {
	s, r := newSwitch(t)
	idle, hard := flow(0, 1, apply(of13.Output(2))), flow(1, 2, nil)
	idle.Idle, idle.Flags, idle.Cookie = 2, of13.FlowSendRemoved, 7
	hard.Hard, hard.Flags = 3, of13.FlowSendRemoved
	must(t, s, 0, idle, hard)
	s.Receive(second, 1, udp(t, 20))
	s.Expire(2 * second)
	if len(r.removed) != 0 {
		t.Fatalf("too early: %+v", r.removed)
	}
	s.Expire(3 * second)
	if len(r.removed) != 2 || s.entries != 0 {
		t.Fatalf("%+v", r.removed)
	}
	for _, m := range r.removed {
		if m.Table == 0 && (m.Reason != of13.RemovedIdle || m.Packets != 1 || m.Bytes != 62 || m.Cookie != 7 || m.Seconds != 3) || m.Table == 1 && m.Reason != of13.RemovedHard {
			t.Errorf("%+v", m)
		}
	}
}

func TestPacketIns(t *testing.T) {
	s, r := newSwitch(t)
	toController := of13.Output(of13.PortController)
	must(t, s, 0, flow(0, 0, apply(toController)), flow(0, 1, apply(toController), of13.Exact(of13.InPort, 2)),
		flow(0, 1, apply(of13.Action{Type: of13.ActionSetNWTTL, TTL: 1}, of13.Action{Type: of13.ActionDecNWTTL}, of13.Output(2)), of13.Exact(of13.InPort, 3)))
	for port := range uint32(3) {
		s.Receive(0, port+1, udp(t, 20))
	}
	for i, reason := range []uint8{of13.PacketNoMatch, of13.PacketAction, of13.PacketInvalidTTL} {
		if m := r.in[i]; m.Reason != reason || m.Match.Fields[0] != of13.Exact(of13.InPort, uint64(i+1)) || len(m.Data) != 62 {
			t.Errorf("%+v", m)
		}
	}
	r.expect(t)
}

// What a set or a bucket sends to controllers has no entry's cookie (7.4.1).
func TestPacketInsOfSetsHaveNoCookie(t *testing.T) {
	s, r := newSwitch(t)
	toController := of13.Output(of13.PortController)
	entries := []*of13.FlowMod{
		flow(0, 1, apply(toController), of13.Exact(of13.InPort, 1)), flow(0, 1, []of13.Instruction{write(toController)}, of13.Exact(of13.InPort, 2)),
		flow(0, 1, apply(of13.Action{Type: of13.ActionGroup, Number: 1}), of13.Exact(of13.InPort, 3)),
	}
	must(t, s, 0, &of13.GroupMod{Group: 1, Buckets: []of13.Bucket{{Actions: []of13.Action{toController}}}})
	for i, e := range entries {
		e.Cookie = 7
		must(t, s, 0, e)
		s.Receive(0, uint32(i+1), udp(t, 20))
	}
	for i, want := range []uint64{7, ^uint64(0), ^uint64(0)} {
		if len(r.in) != len(entries) || r.in[i].Cookie != want {
			t.Fatalf("%+v", r.in)
		}
	}
}
