package ofswitch

import (
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
)

// counters of the cache of a switch.
func (c *controller) counters() (n channel.CacheCounters) {
	c.t.Helper()
	c.send(&of13.MultipartRequest{Kind: of13.MultipartExperimenter, Experimenter: channel.Experimenter, ExpType: channel.KindCache})
	if err := json.Unmarshal(c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Data, &n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// Thousands of changes beside thousands of flows end those that they concern, and no
// others: these stay in the kernel.
func TestChangesLeaveOtherFlows(t *testing.T) {
	if !within(t) {
		return
	}
	const flows, changes = 1000, 2000
	far := wires(t)
	c := runningAs(t, func(c *Config) { c.Kernel, c.Pipeline.Entries = true, flows+changes+10 })
	udp := func(to uint32) []byte {
		b := frameOf(8, 0, 0x45, 0, 0, 66, 0, 0, 0, 0, 64, 17)
		binary.BigEndian.PutUint32(b[26:], 0x0a000001)
		binary.BigEndian.PutUint32(b[30:], to)
		binary.BigEndian.PutUint16(b[38:], 46)
		return b
	}
	entry := func(to uint32) *of13.FlowMod {
		return output(2, of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPv4Dst, uint64(to)))
	}
	for n := range uint32(flows) {
		c.send(entry(n))
	}
	c.send(&of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	for n := range uint32(flows) {
		far[0].write(udp(n), nil)
		if arrives(far[1], 10*time.Second) == nil {
			t.Fatalf("frame %d does not arrive", n)
		}
	}
	before := c.counters()
	if before.Flows != flows {
		t.Fatalf("%d flows are in the kernel of %d", before.Flows, flows)
	}
	for n := range uint32(changes) {
		c.send(entry(1<<24 + n))
	}
	away := entry(7)
	away.Command = of13.FlowDeleteStrict
	better := entry(8)
	better.Priority, better.Instructions[0].Actions = 9, []of13.Action{of13.Output(3)}
	c.send(away, better, &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	for n, port := range map[uint32]int{6: 1, 8: 2, 9: 1} {
		far[0].write(udp(n), nil)
		if arrives(far[port], 10*time.Second) == nil {
			t.Errorf("flow %d does not arrive at port %d", n, port+1)
		}
	}
	far[0].write(udp(7), nil)
	if got := arrives(far[1], 50*time.Millisecond); got != nil {
		t.Errorf("a flow goes on without its entry: %x", got)
	}
	if now := c.counters(); now.Upcalls["first"] != before.Upcalls["first"]+2 {
		t.Errorf("%d frames came to the process, of which two were not known", now.Upcalls["first"]-before.Upcalls["first"])
	}
}

// The fuller the cache, the sooner flows leave that nobody uses.
func TestFlowsLeaveSoonerWhereRoomIsScarce(t *testing.T) {
	last := flowIdle
	if idle(0) != last || idle(maxFlows/2) != last {
		t.Errorf("%v, %v", idle(0), idle(maxFlows/2))
	}
	for n := range maxFlows + 1 {
		now := idle(n)
		if now > last || now < time.Second {
			t.Fatalf("%d flows: %v behind %v", n, now, last)
		}
		last = now
	}
	if last != time.Second {
		t.Errorf("%v of a full cache", last)
	}
}
