package ofswitch

import (
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// Frames that a meter would drop come later, in their order, on both datapaths; they and
// what entry and port count are the same.
func TestFramesWaitAtMeters(t *testing.T) { onBoth(t, framesWaitAtMeters) }

func framesWaitAtMeters(t *testing.T, inKernel bool) {
	silence(t)
	names, far := pairs(t, "p", "q")
	c, _ := started(t, Config{
		Pipeline: pipeline.Config{DatapathID: 1, Tables: 2, Entries: 100, Groups: 4, Meters: 4, Hold: int64(time.Second)}, Ports: names, Kernel: inKernel,
	})
	c.send(&of13.MeterMod{Flags: of13.MeterPKTPS | of13.MeterBurst, Meter: 1, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: 200, Burst: 4}}}, metered())
	c.meter() // once the entry is there
	const frames = 60
	next := uint32(0)
	take := func() {
		t.Helper()
		got := arrives(far[1], 20*time.Second)
		if got == nil {
			t.Fatalf("frame %d did not come", next)
		}
		if n := binary.BigEndian.Uint32(got[42:]); n != next {
			t.Fatalf("frame %d came after %d", n, next-1)
		}
		next++
	}
	for n := range uint32(frames) {
		frame := ipv4(64)
		binary.BigEndian.PutUint32(frame[42:], n)
		if far[0].write(frame, nil); n < 4 {
			take() // so that the others find a flow in the kernel
			c.meter()
		}
	}
	for next < frames {
		take()
	}
	if m := c.meter(); m.In.Packets != frames || m.Bands[0].Packets != 0 {
		t.Errorf("the meter had %+v", m)
	}
	c.send(&of13.MultipartRequest{Kind: of13.MultipartPort, Number: 2})
	if p := c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Ports[0]; p.TxPackets != frames {
		t.Errorf("the port sent %d", p.TxPackets)
	}
	if !inKernel {
		return
	}
	c.send(&of13.MultipartRequest{Kind: of13.MultipartExperimenter, Experimenter: channel.Experimenter, ExpType: channel.KindCache})
	var n channel.CacheCounters
	if err := json.Unmarshal(c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Data, &n); err != nil || n.Packets == 0 || n.Upcalls["meter"] == 0 {
		t.Errorf("in the kernel %+v, %v", n, err)
	}
	time.Sleep(50 * time.Millisecond) // in which the meter fills
	was := n.Packets
	frame := ipv4(64)
	binary.BigEndian.PutUint32(frame[42:], next)
	far[0].write(frame, nil)
	take()
	c.send(&of13.MultipartRequest{Kind: of13.MultipartExperimenter, Experimenter: channel.Experimenter, ExpType: channel.KindCache})
	if err := json.Unmarshal(c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Data, &n); err != nil || n.Packets != was+1 {
		t.Errorf("once none waits, in the kernel %d and then %d, %v", was, n.Packets, err)
	}
}
