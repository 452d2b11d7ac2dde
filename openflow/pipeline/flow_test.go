package pipeline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sublet/openflow/of13"
)

// cached is a cache of flows as plain as can be: what a datapath may do.
type cached struct {
	*Switch
	*record
	flows  []*cachedFlow
	hits   int
	meters map[*MeterState]*meter
}

type cachedFlow struct {
	*Flow
	usage Usage
	used  int64
}

func (c *cached) Fold() {
	for _, f := range c.flows {
		c.Credit(f.Flow, f.used, f.usage)
		f.usage = Usage{}
	}
}

func (c *cached) Invalidate(stale func(*Flow) bool) {
	c.Fold()
	var kept []*cachedFlow
	for _, f := range c.flows {
		if !stale(f.Flow) {
			kept = append(kept, f)
		} else {
			c.Forget(f.Flow)
		}
	}
	c.flows = kept
}

func (c *cached) End(list []*Flow) {
	c.Invalidate(func(f *Flow) bool { return slices.Contains(list, f) })
}

// receive does a flow to a frame, or takes the frame through the tables.
func (c *cached) receive(now int64, port uint32, frame []byte) {
	var p packet
	p.load(frame, port)
	for _, f := range c.flows {
		if p.shape() == f.Shape && p.key.under(masked(&f.Key, &f.Mask), &f.Mask) && len(frame) >= f.LeastLen && p.lives(f.LeastTTL) {
			c.hits++
			if f.meter != nil {
				c.Fold() // else what a meter drops uses entries behind it that others of the same time use
			}
			f.used = now
			f.usage = Usage{Frames: f.usage.Frames + 1, Packets: f.usage.Packets + 1, Bytes: f.usage.Bytes + uint64(len(frame))}
			if !c.do(now, &p, f.Steps) {
				f.usage.Lost.Frames, f.usage.Lost.Packets, f.usage.Lost.Bytes = f.usage.Lost.Frames+1, f.usage.Lost.Packets+1, f.usage.Lost.Bytes+uint64(len(frame))
			}
			return
		}
	}
	if f, cause := c.ReceiveFlow(now, port, frame, 1); cause == CauseNone {
		c.flows = append(c.flows, &cachedFlow{Flow: f})
		c.Keep(f)
	}
}

func masked(k, mask *Key) *Key {
	v := *k
	for w := range v {
		v[w] &= mask[w]
	}
	return &v
}

func (p *packet) lives(least uint8) bool {
	return least == 0 || p.b[p.ttlAt(p.l3, p.u16(p.typeAt))] >= least
}

// PlaceMeter keeps what a meter of Flows does.
func (c *cached) PlaceMeter(packets bool, rules []MeterRule) *MeterState {
	m := &meter{rules: rules, state: &MeterState{}}
	if packets {
		m.Flags = of13.MeterPKTPS
	}
	if c.meters == nil {
		c.meters = make(map[*MeterState]*meter)
	}
	c.meters[m.state] = m
	return m.state
}

// do is false if a meter drops the packet.
func (c *cached) do(now int64, p *packet, steps []Step) bool {
	size := len(p.b)
	for i := range steps {
		p.fresh()
		switch s := &steps[i]; s.Kind {
		case StepMeter:
			if len(p.b)-size != s.Added {
				panic("a packet has another size at its meter")
			}
			if !c.meters[s.Meter].pass(now, p) {
				return false
			}
		case StepOutput:
			c.record.Send(s.Port, s.Queue, p.b)
		case StepSet:
			p.setField(&s.Field)
		case StepPushVLAN:
			p.pushVLAN(s.TPID)
			p.put16(14, s.TCI)
			p.stale = true
		case StepPopVLAN:
			p.popVLAN()
		case StepDecTTL:
			at := p.ttlAt(p.l3, p.u16(p.typeAt))
			p.setTTL(false, p.b[at]-s.TTL)
		case StepSetTTL:
			p.setTTL(false, s.TTL)
		}
	}
	return true
}

var fields = []of13.Field{
	of13.Exact(of13.EthDst, 0x020000000009), of13.Exact(of13.IPv4Dst, 0x0a000009), of13.Exact(of13.UDPDst, 99), of13.Exact(of13.IPDSCP, 5),
	of13.Exact(of13.VLANVID, of13.VLANPresent|7), of13.Exact(of13.VLANPCP, 3), of13.Exact(of13.UDPSrc, 5),
}

func randomActions(r *rand.Rand, groups bool) (list []of13.Action) {
	for range r.IntN(6) {
		switch r.IntN(8) {
		case 0, 1:
			list = append(list, of13.Output(uint32(r.IntN(5)+1)))
		case 2:
			list = append(list, of13.Output([]uint32{of13.PortFlood, of13.PortInPort, of13.PortNormal, of13.PortController}[r.IntN(4)]))
		case 3, 4:
			list = append(list, of13.SetField(fields[r.IntN(len(fields))]))
		case 5:
			list = append(list, []of13.Action{{Type: of13.ActionPopVLAN}, {Type: of13.ActionPushVLAN, EtherType: 0x8100}}[r.IntN(2)])
		case 6:
			list = append(list, []of13.Action{{Type: of13.ActionDecNWTTL}, {Type: of13.ActionSetNWTTL, TTL: 9}}[r.IntN(2)])
		case 7:
			if groups {
				list = append(list, of13.Action{Type: of13.ActionGroup, Number: uint32(r.IntN(3) + 1)})
			}
		}
	}
	return list
}

// matches of packets that all actions may be done to, else they would be refused.
func someMatch(r *rand.Rand) (m of13.Match) {
	if r.IntN(2) == 0 {
		m.Fields = append(m.Fields, of13.Exact(of13.InPort, uint64(r.IntN(4)+1)))
	}
	m.Fields = append(m.Fields, of13.Exact(of13.EthType, 0x0800), of13.WithMask(of13.VLANVID, of13.U128{Lo: 0x1000}, of13.U128{Lo: 0x1000}), of13.Exact(of13.IPProto, 17))
	if r.IntN(2) == 0 {
		m.Fields = append(m.Fields, of13.WithMask(of13.IPv4Dst, of13.U128{Lo: uint64(0x0a000000 + r.IntN(10))}, of13.U128{Lo: 0xffffffff << r.IntN(9) & 0xffffffff}))
	}
	if r.IntN(2) == 0 {
		m.Fields = append(m.Fields, of13.Exact(of13.UDPDst, uint64(r.IntN(3))))
	}
	return m
}

func randomChange(r *rand.Rand) of13.Message {
	switch r.IntN(12) {
	case 0:
		b := []of13.Bucket{{WatchPort: uint32(r.IntN(4) + 1), WatchGroup: of13.GroupAny, Weight: 1, Actions: randomActions(r, false)}, {WatchPort: 1, WatchGroup: of13.GroupAny, Weight: 1, Actions: randomActions(r, false)}}
		kind := []uint8{of13.GroupTypeAll, of13.GroupTypeSelect, of13.GroupTypeFailover}[r.IntN(3)]
		if kind != of13.GroupTypeSelect {
			b[0].Weight, b[1].Weight = 0, 0
		}
		return &of13.GroupMod{Command: uint16(r.IntN(2)), Kind: kind, Group: uint32(r.IntN(3) + 1), Buckets: b}
	case 2:
		return randomMeter(r, of13.CommandModify)
	case 1:
		return &of13.PortMod{Port: 2, Config: uint32(r.IntN(2)) * of13.PortConfigDown, Mask: of13.PortConfigDown}
	}
	table := uint8(r.IntN(3))
	m := flow(table, uint16(r.IntN(3)), nil, someMatch(r).Fields...)
	if m.Command = uint8(r.IntN(3)); m.Command != of13.FlowModify {
		m.Command = []uint8{of13.FlowAdd, of13.FlowAdd, of13.FlowAdd, of13.FlowDelete}[r.IntN(4)]
	}
	m.Idle, m.Hard, m.Flags = uint16(r.IntN(3)), uint16(r.IntN(9)), of13.FlowSendRemoved
	m.Instructions = apply(randomActions(r, true)...)
	if r.IntN(2) == 0 {
		m.Instructions = append(m.Instructions, write(randomActions(r, true)...))
	}
	if r.IntN(3) == 0 {
		m.Instructions = append(m.Instructions, of13.Instruction{Type: of13.InstructionMeter, Meter: uint32(r.IntN(2) + 1)})
	}
	if table < 2 {
		m.Instructions = append(m.Instructions, of13.Instruction{Type: of13.InstructionGoto, Table: table + 1})
	}
	return m
}

// randomMeter lets some of the packets through, or gives some another class.
func randomMeter(r *rand.Rand, command uint16) *of13.MeterMod {
	m := &of13.MeterMod{Command: command, Meter: uint32(r.IntN(2) + 1), Flags: of13.MeterPKTPS | of13.MeterBurst}
	for range r.IntN(3) {
		m.Bands = append(m.Bands, of13.Band{Kind: []uint16{of13.BandDrop, of13.BandDSCPRemark}[r.IntN(2)], Rate: uint32(r.IntN(20) + 1), Burst: uint32(r.IntN(4) + 1), Precedence: 0})
	}
	for i := range m.Bands {
		if m.Bands[i].Kind == of13.BandDSCPRemark {
			m.Bands[i].Precedence = 1
		}
	}
	return m
}

func randomFrame(t *testing.T, r *rand.Rand) []byte {
	ip := &layers.IPv4{Version: 4, TTL: uint8(r.IntN(3) + 1), TOS: uint8(r.IntN(2) * 72), Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, byte(r.IntN(10))}}
	u := &layers.UDP{SrcPort: layers.UDPPort(r.IntN(3)), DstPort: layers.UDPPort(r.IntN(3))}
	u.SetNetworkLayerForChecksum(ip)
	mac := func() []byte { return []byte{2, 0, 0, 0, 0, byte(r.IntN(3))} }
	list := []gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: mac(), DstMAC: mac(), EthernetType: layers.EthernetTypeDot1Q}}
	for n := r.IntN(3); n >= 0; n-- {
		kind := layers.EthernetTypeDot1Q
		if n == 0 {
			kind = layers.EthernetTypeIPv4
		}
		list = append(list, &layers.Dot1Q{VLANIdentifier: uint16(r.IntN(2)), Priority: uint8(r.IntN(2)), Type: kind})
	}
	return serialize(t, append(list, ip, u, gopacket.Payload(make([]byte, r.IntN(40))))...)
}

// A switch whose cache does flows sends the same frames, tells the same of them
// and counts the same as one that takes each frame through the tables, one entry
// after another, while tables, groups and ports change and entries run out.
func TestFlowsAreWhatTheTablesDo(t *testing.T) {
	hits, all := 0, 0
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 2))
		plain, sent := newSwitch(t)
		plain.Plain = true
		with := &cached{record: &record{}}
		with.Switch, with.record = newSwitch(t)
		with.Cache, with.Meters = with, with
		for _, s := range []*Switch{plain, with.Switch} {
			for n := range uint32(2) {
				must(t, s, 0, meterMod(of13.MeterMod{Meter: n + 1, Flags: of13.MeterPKTPS | of13.MeterBurst, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: 20, Burst: 2}}}))
			}
		}
		for step := range 1000 {
			now := int64(step) * second / 100
			if r.IntN(12) == 0 {
				m := randomChange(r)
				if p, ok := m.(*of13.PortMod); ok {
					p.HWAddr = plain.ports[p.Port].HWAddr
				}
				_, err := plain.Do(now, m)
				if _, err2 := with.Do(now, m); err != err2 {
					t.Fatalf("%+v: %v and %v", m, err, err2)
				}
			}
			if step%10 == 0 {
				plain.Expire(now)
				with.Expire(now)
			}
			port, frame := uint32(r.IntN(4)+1), randomFrame(t, r)
			plain.Receive(now, port, frame)
			with.receive(now, port, frame)
			all++
			sameRecords(t, fmt.Sprintf("seed %d step %d: frame %x of port %d", seed, step, frame, port), sent, with.record)
			if t.Failed() {
				t.FailNow()
			}
			*sent, *with.record = record{}, record{}
		}
		sameCounts(t, plain, with.Switch)
		hits += with.hits
	}
	if hits < all/20 {
		t.Errorf("%d of %d packets met a flow", hits, all)
	}
}

func sameRecords(t *testing.T, what string, a, b *record) {
	t.Helper()
	if !reflect.DeepEqual(a.sent, b.sent) || !reflect.DeepEqual(a.in, b.in) || len(a.removed) != len(b.removed) {
		t.Errorf("%s: %v, %+v, %v instead of %v, %+v, %v", what, b.sent, b.in, b.removed, a.sent, a.in, a.removed)
		return
	}
	for i := range a.frames {
		if !bytes.Equal(a.frames[i], b.frames[i]) {
			t.Errorf("%s: frame %d is %x instead of %x", what, i, b.frames[i], a.frames[i])
		}
	}
	total := func(list []of13.FlowRemoved) (n of13.Count) {
		for _, m := range list {
			n = of13.Count{Packets: n.Packets + m.Packets, Bytes: n.Bytes + m.Bytes}
		}
		return n
	}
	if total(a.removed) != total(b.removed) {
		t.Errorf("%s: entries went with %+v instead of %+v", what, b.removed, a.removed)
	}
}

func sameCounts(t *testing.T, a, b *Switch) {
	t.Helper()
	for _, m := range []*of13.MultipartRequest{
		{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}},
		{Kind: of13.MultipartTable}, {Kind: of13.MultipartPort, Number: of13.PortAny}, {Kind: of13.MultipartGroup, Number: of13.GroupAll},
		{Kind: of13.MultipartMeter, Number: of13.MeterAll},
	} {
		x, _ := a.Do(100*second, m)
		y, _ := b.Do(100*second, m)
		if !reflect.DeepEqual(x, y) {
			t.Errorf("%+v instead of %+v", y, x)
		}
	}
}
