package ofswitch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// side is a switch with three ports, and what is at their far ends.
type side struct {
	*controller
	s   *Switch
	far []*device
	in  []string // packet-ins
}

// pairs makes veths nearN, of the switch, and farN, of the test.
func pairs(t *testing.T, near, far string) (names []string, ends []*device) {
	for n := 1; n <= 3; n++ {
		a, b := fmt.Sprint(near, n), fmt.Sprint(far, n)
		ip(t, "link", "add", a, "type", "veth", "peer", "name", b)
		ip(t, "link", "set", a, "up")
		ip(t, "link", "set", b, "up")
		d, err := openDevice(b, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(d.fd) })
		names, ends = append(names, a), append(ends, d)
	}
	for n := range names {
		carries(t, names[n])
		carries(t, ends[n].name)
	}
	return names, ends
}

func newSide(t *testing.T, near, far string, inKernel bool) *side {
	t.Helper()
	names, ends := pairs(t, near, far)
	b := &side{far: ends}
	b.controller, b.s = started(t, Config{
		Pipeline: pipeline.Config{DatapathID: 1, Tables: 3, Entries: 1000, Groups: 4, Meters: 4}, Ports: names, Kernel: inKernel,
	})
	return b
}

// started starts a switch that ends with the test, and is its controller.
func started(t *testing.T, c Config) (*controller, *Switch) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c.Controllers, c.Log = append([]channel.Target{{Address: l.Addr().String()}}, c.Controllers...), func(err error) { t.Log(err) }
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- s.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		s.Close()
	})
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(50 * time.Second))
	k := &controller{t: t, Conn: conn, stop: stop}
	k.send(&of13.Hello{Bitmap: 1 << of13.Version})
	return k, s
}

// told reads messages up to one of a type, and notes packet-ins.
func (b *side) told(kind uint8) of13.Message {
	b.t.Helper()
	b.seen = func(m of13.Message) {
		if in, ok := m.(*of13.PacketIn); ok {
			b.in = append(b.in, fmt.Sprintf("%x table %d reason %d cookie %x match %v", in.Data, in.Table, in.Reason, in.Cookie, in.Match))
		}
	}
	return b.want(kind)
}

// statistics are what entries, tables, ports and groups have counted.
func (b *side) statistics() (list []string) {
	any := of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}
	for _, m := range []*of13.MultipartRequest{{Kind: of13.MultipartFlow, Flow: any}, {Kind: of13.MultipartTable}, {Kind: of13.MultipartPort, Number: of13.PortAny}, {Kind: of13.MultipartGroup, Number: of13.GroupAll}} {
		b.send(m)
		r := b.told(of13.TypeMultipartReply).(*of13.MultipartReply)
		for _, f := range r.Flows {
			list = append(list, fmt.Sprintf("table %d priority %d cookie %d %v: %d packets %d bytes", f.Table, f.Priority, f.Cookie, f.Match, f.Packets, f.Bytes))
		}
		for _, p := range r.Ports {
			list = append(list, fmt.Sprintf("port %d: %d %d %d %d %d %d", p.Port, p.RxPackets, p.TxPackets, p.RxBytes, p.TxBytes, p.RxDropped, p.TxDropped))
		}
		for _, g := range r.Groups {
			list = append(list, fmt.Sprintf("group %d: %v %v", g.Group, g.Count, g.Buckets))
		}
		list = append(list, fmt.Sprint(r.Tables))
	}
	return list
}

// frames that have come to the far ends.
func (b *side) frames() (list []string) {
	for n, d := range b.far {
		for r := (received{}); d.read(&r); {
			list = append(list, fmt.Sprintf("port %d: %x", n+1, r.frame))
		}
	}
	slices.Sort(list)
	return list
}

var settable = [][]of13.Field{
	{of13.Exact(of13.EthDst, 0x020000000009), of13.Exact(of13.EthSrc, 0x020000000007), of13.Exact(of13.VLANVID, of13.VLANPresent|9), of13.Exact(of13.VLANPCP, 5)},
	{of13.Exact(of13.IPv4Dst, 0x0a000009), of13.Exact(of13.IPv4Src, 0x0b0c0d0e), of13.Exact(of13.IPDSCP, 11), of13.Exact(of13.IPECN, 2), of13.Exact(of13.UDPDst, 77), of13.Exact(of13.UDPSrc, 7)},
	{{ID: of13.IPv6Dst, Value: of13.U128{Hi: 5, Lo: 6}, Mask: of13.Ones(128)}, of13.Exact(of13.IPv6FLabel, 0x12345), of13.Exact(of13.IPDSCP, 9), of13.Exact(of13.TCPSrc, 3)},
	{of13.Exact(of13.ARPOp, 2), of13.Exact(of13.ARPTPA, 0x0a000007), of13.Exact(of13.ARPSHA, 0x020000000001), of13.Exact(of13.ARPSPA, 9), of13.Exact(of13.ARPTHA, 0x22)},
	{of13.Exact(of13.NSHSPI, 0x123456), of13.Exact(of13.NSHSI, 9), of13.Exact(of13.NSHFlags, 2), of13.Exact(of13.NSHC1, 0x11), of13.Exact(of13.NSHC4, 7), of13.Exact(of13.NSHTTL, 5)},
	{of13.Exact(of13.SCTPSrc, 7), of13.Exact(of13.SCTPDst, 77), of13.Exact(of13.IPv4Dst, 0x0a000009), of13.Exact(of13.IPDSCP, 11)},
	{of13.Exact(of13.MPLSLabel, 0x12345), of13.Exact(of13.MPLSTC, 5)},
	{of13.Exact(of13.PBBISID, 0x123456)},
}

// kinds are prerequisites of the lists of settable.
var kinds = [][]of13.Field{
	nil, {of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 17)}, {of13.Exact(of13.EthType, 0x86dd), of13.Exact(of13.IPProto, 6)}, {of13.Exact(of13.EthType, 0x0806)},
	{of13.Exact(of13.EthType, of13.EthTypeNSH)}, {of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 132)}, {of13.Exact(of13.EthType, 0x8847)},
	{of13.Exact(of13.EthType, 0x88e7)},
}

// Places of some in these lists. The last ones Open vSwitch does not have.
const (
	kindUDP  = 1
	kindMPLS = 6
	kindPBB  = 7
)

var tagMatch = of13.WithMask(of13.VLANVID, of13.U128{Lo: of13.VLANPresent}, of13.U128{Lo: of13.VLANPresent})

func someActions(r *rand.Rand, kind int, tagged bool) (list []of13.Action) {
	for range r.IntN(6) {
		switch r.IntN(7) {
		case 0, 1:
			list = append(list, of13.Output(uint32(r.IntN(3)+1)))
		case 2:
			list = append(list, of13.Output([]uint32{of13.PortFlood, of13.PortInPort, of13.PortNormal, of13.PortController, of13.PortAll}[r.IntN(5)]))
		case 3:
			list = append(list, of13.SetField(settable[kind][r.IntN(len(settable[kind]))]))
			if last := list[len(list)-1]; !tagged && last.Field.ID >= of13.VLANVID && last.Field.ID <= of13.VLANPCP {
				list = list[:len(list)-1]
			}
		case 4:
			if tagged {
				list = append(list, []of13.Action{{Type: of13.ActionPopVLAN}, {Type: of13.ActionPushVLAN, EtherType: 0x88a8}}[r.IntN(2)])
			}
		case 5:
			switch {
			case kind == 4:
				list = append(list, of13.Action{Type: of13.ActionDecNSHTTL})
			case kind == 1 || kind == 2:
				list = append(list, []of13.Action{{Type: of13.ActionDecNWTTL}, {Type: of13.ActionSetNWTTL, TTL: 9}}[r.IntN(2)])
			}
		case 6:
			list = append(list, of13.Action{Type: of13.ActionGroup, Number: uint32(r.IntN(2) + 1)})
		}
	}
	return list
}

func someEntry(r *rand.Rand) *of13.FlowMod {
	kind, tagged := r.IntN(len(kinds)), r.IntN(2) == 0
	m := output(1, kinds[kind]...)
	m.Table, m.Priority, m.Cookie = uint8(r.IntN(3)), uint16(r.IntN(4)), r.Uint64N(1000)
	if tagged {
		m.Match.Fields = append(m.Match.Fields, tagMatch)
	}
	if r.IntN(2) == 0 {
		m.Match.Fields = append(m.Match.Fields, of13.Exact(of13.InPort, uint64(r.IntN(3)+1)))
	}
	if kind == 1 && r.IntN(2) == 0 {
		m.Match.Fields = append(m.Match.Fields, of13.WithMask(of13.IPv4Dst, of13.U128{Lo: 0x0a000000}, of13.U128{Lo: 0xffffffff << r.IntN(4) & 0xffffffff}))
	}
	if kind == 2 && r.IntN(2) == 0 {
		m.Match.Fields = append(m.Match.Fields, of13.Exact(of13.TCPDst, r.Uint64N(2)))
	}
	m.Instructions = []of13.Instruction{{Type: of13.InstructionApply, Actions: someActions(r, kind, tagged)}}
	if kind == 4 && r.IntN(2) == 0 {
		m.Match.Fields = append(m.Match.Fields, of13.Exact(of13.NSHSPI, r.Uint64N(2)), of13.WithMask(of13.NSHC1, of13.U128{Lo: r.Uint64N(2)}, of13.U128{Lo: 1}))
	}
	if m.Table < 2 && r.IntN(2) == 0 {
		m.Instructions = append(m.Instructions, of13.Instruction{Type: of13.InstructionGoto, Table: m.Table + 1})
	}
	if r.IntN(6) == 0 {
		m.Command, m.Match.Fields = of13.FlowDelete, m.Match.Fields[:min(len(m.Match.Fields), 1)]
	}
	return m
}

// serviceHeader has a type of metadata, of which 3 is none, a time to live and a path;
// some are cut off.
func serviceHeader(kind, path, ttl byte, context uint32) []byte {
	h := []byte{ttl >> 2, ttl<<6 | 6, kind, 3, 0, 0, path, 7, 0, 0, 0, byte(context), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if kind == 2 {
		h[1] = ttl<<6 | 3
	}
	return h
}

func someFrame(t *testing.T, r *rand.Rand) []byte {
	t.Helper()
	mac := func() []byte { return []byte{2, 0, 0, 0, 0, byte(r.IntN(3))} }
	list := []gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: mac(), DstMAC: mac()}}
	kind := &list[0].(*layers.Ethernet).EthernetType
	for range r.IntN(4) {
		*kind = []layers.EthernetType{layers.EthernetTypeDot1Q, layers.EthernetTypeQinQ}[r.IntN(2)]
		tag := &layers.Dot1Q{VLANIdentifier: uint16(r.IntN(3)), Priority: uint8(r.IntN(2)), DropEligible: r.IntN(4) == 0}
		list, kind = append(list, tag), &tag.Type
	}
	payload := gopacket.Payload(make([]byte, 26+r.IntN(40)))
	unsummed := false // a datagram without a checksum, which stays so
	switch r.IntN(5) {
	case 4:
		*kind = of13.EthTypeNSH
		list = append(list, gopacket.Payload(serviceHeader(byte(1+r.IntN(3)), byte(r.IntN(2)), byte(r.IntN(4)), uint32(r.IntN(2)))), payload)
	case 0:
		*kind = layers.EthernetTypeARP
		list = append(list, &layers.ARP{AddrType: 1, Protocol: 0x0800, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1, SourceHwAddress: mac(), SourceProtAddress: []byte{10, 0, 0, 1}, DstHwAddress: mac(), DstProtAddress: []byte{10, 0, 0, 2}}, payload)
	case 1:
		*kind = layers.EthernetTypeIPv6
		v6 := &layers.IPv6{Version: 6, HopLimit: uint8(r.IntN(3)), TrafficClass: uint8(r.IntN(2) * 9), NextHeader: layers.IPProtocolTCP, SrcIP: make([]byte, 16), DstIP: append(make([]byte, 15), byte(r.IntN(2)))}
		tcp := &layers.TCP{SrcPort: 5, DstPort: layers.TCPPort(r.IntN(2)), DataOffset: 5}
		tcp.SetNetworkLayerForChecksum(v6)
		list = append(list, v6, tcp, payload)
	default:
		*kind = layers.EthernetTypeIPv4
		v4 := &layers.IPv4{Version: 4, TTL: uint8(r.IntN(3)), TOS: uint8(r.IntN(2) * 75), Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, byte(r.IntN(8))}}
		if r.IntN(8) == 0 {
			v4.FragOffset = 7
		}
		udp := &layers.UDP{SrcPort: 5, DstPort: layers.UDPPort(r.IntN(3))}
		udp.SetNetworkLayerForChecksum(v4)
		list, unsummed = append(list, v4, udp, payload), r.IntN(4) == 0
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, list...); err != nil {
		t.Fatal(err)
	}
	frame := b.Bytes()
	if unsummed {
		clear(frame[len(frame)-len(payload)-2:][:2])
	}
	return frame
}

// Both datapaths send the same frames, tell controllers the same and count the
// same, whatever is in the tables and whatever changes in them.
func TestDatapathsAreEqual(t *testing.T) {
	t.Parallel()
	if !within(t) {
		return
	}
	silence(t)
	process, kernel := newSide(t, "p", "q", false), newSide(t, "r", "s", true)
	hits := 0
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 3))
		for _, b := range []*side{process, kernel} {
			b.send(&of13.FlowMod{Command: of13.FlowDelete, Table: of13.TableAll, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny},
				&of13.GroupMod{Command: of13.CommandDelete, Group: of13.GroupAll},
				&of13.GroupMod{Kind: of13.GroupTypeAll, Group: 1, Buckets: []of13.Bucket{{WatchGroup: of13.GroupAny, WatchPort: of13.PortAny, Actions: []of13.Action{of13.SetField(settable[0][0]), of13.Output(2)}},
					{WatchGroup: of13.GroupAny, WatchPort: of13.PortAny, Actions: []of13.Action{{Type: of13.ActionPushVLAN, EtherType: 0x8100}, of13.Output(3)}}, {WatchGroup: of13.GroupAny, WatchPort: of13.PortAny, Actions: []of13.Action{of13.Output(1)}}}},
				&of13.GroupMod{Kind: of13.GroupTypeSelect, Group: 2, Buckets: []of13.Bucket{{Weight: 1, WatchGroup: of13.GroupAny, WatchPort: of13.PortAny, Actions: []of13.Action{of13.Output(2)}}, {Weight: 2, WatchGroup: of13.GroupAny, WatchPort: of13.PortAny, Actions: []of13.Action{of13.Output(3)}}}})
		}
		for round := range 12 {
			var changes []of13.Message
			for range 1 + 20/(round+1) {
				changes = append(changes, someEntry(r))
			}
			changes = append(changes, &of13.Plain{Kind: of13.TypeBarrierRequest})
			for _, b := range []*side{process, kernel} {
				b.send(changes...)
				b.told(of13.TypeBarrierReply)
			}
			for range 12 {
				port, frame := r.IntN(3), someFrame(t, r)
				for range 3 {
					process.far[port].write(frame, nil)
					kernel.far[port].write(frame, nil)
				}
				kernel.statistics() // which waits for the flow
				process.statistics()
				kernel.far[port].write(frame, nil)
				process.far[port].write(frame, nil)
			}
			a, b := process.statistics(), kernel.statistics()
			what := fmt.Sprintf("seed %d round %d", seed, round)
			differ(t, what+" statistics", a, b)
			differ(t, what+" frames", process.frames(), kernel.frames())
			slices.Sort(process.in)
			slices.Sort(kernel.in)
			differ(t, what+" packet-ins", process.in, kernel.in)
			process.in, kernel.in = nil, nil
			if t.Failed() {
				t.Fatalf("after %+v", changes)
			}
		}
	}
	kernel.stop()
	counters, _ := kernel.s.Counters()
	for _, n := range counters.Upcalls {
		hits += int(n)
	}
	if all := 3 * 12 * 12 * 4; hits > all*9/10 {
		t.Errorf("%d of %d frames came to the process: %v", hits, all, counters)
	}
}

// differ says in what two lists do.
func differ(t *testing.T, what string, want, got []string) {
	t.Helper()
	missing, more := beyond(want, got), beyond(got, want)
	if len(missing)+len(more) > 0 {
		t.Errorf("%s: %d lines, %d of them lacking and %d too many", what, len(got), len(missing), len(more))
	}
	for _, line := range missing[:min(len(missing), 5)] {
		t.Errorf("%s: lacks %s", what, line)
	}
	for _, line := range more[:min(len(more), 5)] {
		t.Errorf("%s: has %s", what, line)
	}
}

// beyond is what of a list is not in another one, each line as often as it is.
func beyond(list, other []string) (more []string) {
	left := make(map[string]int)
	for _, line := range other {
		left[line]++
	}
	for _, line := range list {
		if left[line]--; left[line] < 0 {
			more = append(more, line)
		}
	}
	return more
}
