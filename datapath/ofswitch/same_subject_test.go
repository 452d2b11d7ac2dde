package ofswitch

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

const samePorts = 3

// subject is one of the switches that are compared.
type subject struct {
	name    string
	receive func(port int, frame []byte) // from 0
	do      func(...of13.Message) of13.Message
	settle  func()          // until frames have been dealt with
	current func()          // until counters are those of all frames
	gather  func()          // what has come out goes into the lists
	cache   func() Counters // of the switch, which it ends
	short   bool            // bytes are not compared
	sums    bool            // of the group that selects a bucket, all are compared together

	frames, in, removed []string
}

// tell does messages and waits for a barrier.
func (s *subject) tell(list ...of13.Message) { s.do(list...) }

// answer is all that has come of what the switch was given since the lists were emptied.
func (s *subject) answer() answer {
	s.current()
	statistics := s.statistics()
	s.gather()
	for _, list := range [][]string{s.frames, s.in, s.removed, statistics} {
		slices.Sort(list)
	}
	return answer{s.frames, s.in, s.removed, statistics}
}

// comparable is an answer without what is not to be compared with that of a switch.
func (a answer) comparable(s *subject) answer {
	if s.short {
		a[2], a[3] = packetsOnly(a[2]), packetsOnly(a[3])
	}
	return a
}

func (s *subject) entries() int {
	s.do(&of13.Plain{Kind: of13.TypeBarrierRequest})
	return len(s.do(everyEntry).(*of13.MultipartReply).Flows)
}

var everyEntry = &of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}}

// statistics are those that all switches have.
func (s *subject) statistics() (list []string) {
	for _, f := range s.do(everyEntry).(*of13.MultipartReply).Flows {
		list = append(list, fmt.Sprintf("table %d priority %d cookie %d %v: %d packets %d bytes", f.Table, f.Priority, f.Cookie, sorted(f.Match), f.Packets, f.Bytes))
	}
	for _, p := range s.do(&of13.MultipartRequest{Kind: of13.MultipartPort, Number: of13.PortAny}).(*of13.MultipartReply).Ports {
		if p.Port <= samePorts {
			list = append(list, fmt.Sprintf("port %d: %d %d %d %d", p.Port, p.RxPackets, p.TxPackets, p.RxBytes, p.TxBytes))
		}
	}
	for _, g := range s.do(&of13.MultipartRequest{Kind: of13.MultipartGroup, Number: of13.GroupAll}).(*of13.MultipartReply).Groups {
		list = append(list, groupLine(&g, s.sums))
	}
	for _, m := range s.do(&of13.MultipartRequest{Kind: of13.MultipartMeter, Number: of13.MeterAll}).(*of13.MultipartReply).Meters {
		list = append(list, fmt.Sprintf("meter %d of %d flows: %d packets %d bytes, bands %v", m.Meter, m.Flows, m.In.Packets, m.In.Bytes, m.Bands))
	}
	for i, x := range s.do(&of13.MultipartRequest{Kind: of13.MultipartTable}).(*of13.MultipartReply).Tables {
		if i < sameTables {
			list = append(list, fmt.Sprintf("table %d: %d entries, %d lookups, %d matched", x.Table, x.Active, x.Lookups, x.Matched))
		}
	}
	return list
}

// groupLine has, with sums, all buckets of the group that selects one together.
func groupLine(g *of13.GroupStats, sums bool) string {
	if sums && g.Group == selects {
		all := of13.Count{}
		for _, b := range g.Buckets {
			all.Packets, all.Bytes = all.Packets+b.Packets, all.Bytes+b.Bytes
		}
		g.Buckets = []of13.Count{all}
	}
	line := fmt.Sprintf("group %d: %d packets %d bytes", g.Group, g.Count.Packets, g.Count.Bytes)
	for _, b := range g.Buckets {
		line += fmt.Sprintf(", bucket %d packets %d bytes", b.Packets, b.Bytes)
	}
	return line
}

var bytesWord = regexp.MustCompile(` \d+ bytes`)

// packetsOnly leaves out bytes of entries and groups: those of a packet that has got
// or lost tags before are as many as it had there (5.8); in Open vSwitch, as it came with.
func packetsOnly(list []string) (short []string) {
	for _, line := range list {
		short = append(short, bytesWord.ReplaceAllString(line, ""))
	}
	slices.Sort(short)
	return short
}

// sorted is a match in the order of the numbers of fields: any that has prerequisites
// first is right.
func sorted(m of13.Match) []of13.Field {
	return slices.SortedFunc(slices.Values(m.Fields), func(a, b of13.Field) int { return cmp.Compare(a.ID, b.ID) })
}

// note keeps what a controller is told.
func (s *subject) note(m of13.Message) {
	switch m := m.(type) {
	case *of13.PacketIn:
		s.in = append(s.in, fmt.Sprintf("%x of %d table %d reason %d cookie %x match %v", m.Data, m.Total, m.Table, m.Reason, m.Cookie, sorted(m.Match)))
	case *of13.FlowRemoved:
		s.removed = append(s.removed, fmt.Sprintf("table %d priority %d cookie %d reason %d idle %d hard %d %v: %d packets %d bytes", m.Table, m.Priority, m.Cookie, m.Reason, m.Idle, m.Hard, sorted(m.Match), m.Packets, m.Bytes))
	}
}

func (s *subject) left(port int, frame []byte) {
	s.frames = append(s.frames, fmt.Sprintf("port %d: %s", port, hex.EncodeToString(frame)))
}

// modelled is the sink of the model.
type modelled struct{ *subject }

func (m modelled) Send(port, _ uint32, frame []byte)  { m.left(int(port), frame) }
func (m modelled) PacketIn(in *of13.PacketIn)         { m.note(in) }
func (m modelled) FlowRemoved(gone *of13.FlowRemoved) { m.note(gone) }
func (modelled) PortStatus(*of13.PortStatus)          {}

func sameConfig() pipeline.Config {
	return pipeline.Config{DatapathID: 1, Tables: sameTables, Entries: 10000, Groups: 8, Meters: 4}
}

// newModel is the tables in this process, gone through entry by entry.
func newModel(t *testing.T) *subject {
	s := &subject{name: "model", settle: func() {}, gather: func() {}}
	tables := pipeline.New(sameConfig(), modelled{s})
	tables.Plain = true
	for n := range uint32(samePorts) {
		tables.SetPort(monotonic(), of13.Port{Number: n + 1})
	}
	s.current = func() { tables.Expire(monotonic()) }
	s.receive = func(port int, frame []byte) { tables.Receive(monotonic(), uint32(port+1), slices.Clone(frame)) }
	s.do = func(list ...of13.Message) (reply of13.Message) {
		for _, m := range list {
			switch m.(type) {
			case *of13.Plain: // a barrier
				tables.Expire(monotonic())
				continue
			case *of13.Async: // of the channel
				continue
			}
			var err error
			if reply, err = tables.Do(monotonic(), m); err != nil {
				t.Fatalf("model: %+v: %v", m, err)
			}
		}
		return reply
	}
	return s
}

// newDatapath is a switch on devices.
func newDatapath(t *testing.T, near, far string, inKernel bool) *subject {
	t.Helper()
	names, ends := pairs(t, near, far)
	k, running := started(t, Config{Pipeline: sameConfig(), Ports: names, Kernel: inKernel})
	k.SetDeadline(time.Now().Add(sameTime()))
	s := &subject{name: map[bool]string{false: "process datapath", true: "kernel datapath"}[inKernel]}
	s.overChannel(k)
	s.receive = func(port int, frame []byte) { ends[port].write(frame, nil) }
	one := &of13.MultipartRequest{Kind: of13.MultipartPort, Number: 1}
	s.gather = func() {
		for n, d := range ends {
			for r := (received{}); d.read(&r); {
				s.left(n+1, r.frame)
			}
		}
	}
	s.settle = func() { s.do(one); s.gather() } // before statistics, frames that wait are taken
	s.current = func() {}
	if inKernel {
		s.cache = func() Counters {
			k.stop()
			c, _ := running.Counters()
			return c
		}
	}
	for _, d := range ends {
		unix.SetsockoptInt(d.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	}
	return s
}

// overChannel does messages by a connection.
func (s *subject) overChannel(k *controller) {
	k.seen = func(m of13.Message) {
		if e, ok := m.(*of13.Echo); ok && !e.Reply {
			k.send(&of13.Echo{Reply: true, Data: e.Data})
		}
		s.note(m)
	}
	s.do = func(list ...of13.Message) of13.Message {
		k.t.Helper()
		if _, asks := list[0].(*of13.MultipartRequest); asks {
			k.send(list...)
			return whole(k)
		}
		k.send(append(slices.Clip(list), &of13.Plain{Kind: of13.TypeBarrierRequest})...)
		return k.want(of13.TypeBarrierReply)
	}
}

// whole reads all parts of a reply.
func whole(k *controller) of13.Message {
	all := *k.want(of13.TypeMultipartReply).(*of13.MultipartReply)
	for more := all.Flags; more&of13.MultipartMore != 0; {
		r := k.want(of13.TypeMultipartReply).(*of13.MultipartReply)
		all.Flows, more = append(all.Flows, r.Flows...), r.Flags
	}
	return &all
}

// sameTime is how long the test may take.
func sameTime() time.Duration {
	size, _ := strconv.Atoi(os.Getenv(soakSize))
	return soakTime + 2*time.Minute + time.Duration(max(*samePackets, size))*5*time.Millisecond
}
