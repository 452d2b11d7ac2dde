package ofswitch

import (
	"encoding/binary"
	"math"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sublet/openflow/of13"
)

func tc(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("tc", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("tc %s: %v: %s", args, err, out)
	}
}

// Two flows that both want all of a port get what their queues have, within 1 %, and
// together no more than the port has. Both always wait, so how often this machine
// stands still does not matter.
func TestQueuesShareAPort(t *testing.T) { onBoth(t, queuesShareAPort) }

func queuesShareAPort(t *testing.T, inKernel bool) {
	const rate = 16e6 / 8 // bytes per second
	far := wires(t)
	tc(t, "qdisc add dev p2 root handle 1: htb default 1")
	tc(t, "class add dev p2 parent 1: classid 1:fffe htb rate 16mbit ceil 16mbit burst 8k cburst 8k")
	tc(t, "class add dev p2 parent 1:fffe classid 1:1 htb rate 8kbit ceil 16mbit")
	tc(t, "class add dev p2 parent 1:fffe classid 1:3 htb rate 4mbit ceil 4mbit burst 4k cburst 4k")
	tc(t, "class add dev p2 parent 1:fffe classid 1:4 htb rate 8mbit ceil 16mbit burst 8k cburst 8k")
	ip(t, "link", "set", "p1", "alias", "12.5Mbit")
	c := running(t, inKernel)
	c.send(&of13.MultipartRequest{Kind: of13.MultipartPortDesc})
	for i, want := range []of13.Port{
		{CurrentSpeed: 12_500, MaxSpeed: 12_500, Current: 1 << 10},
		{CurrentSpeed: 16_000, MaxSpeed: 10_000_000, Current: 1 << 6}, // a veth pair tells 10 Gbit/s
	} {
		if p := c.want(of13.TypeMultipartReply).(*of13.MultipartReply).PortDescs; len(p) < 2 || p[i].CurrentSpeed != want.CurrentSpeed || p[i].MaxSpeed != want.MaxSpeed || p[i].Current != want.Current {
			t.Fatalf("port %d: %+v", i+1, p)
		}
		c.send(&of13.MultipartRequest{Kind: of13.MultipartPortDesc})
	}
	c.want(of13.TypeMultipartReply)
	c.send(toQueue(1, 2), toQueue(2, 3), &of13.QueueConfigRequest{Port: 2})
	q := c.want(of13.TypeQueueGetConfigReply).(*of13.QueueConfigReply).Queues
	if len(q) != 3 || q[1].Queue != 2 || q[1].Properties[0] != (of13.QueueProperty{Kind: 1, Rate: 250}) || q[1].Properties[1] != (of13.QueueProperty{Kind: 2, Rate: 250}) {
		t.Fatalf("queues %+v", q)
	}
	var stop atomic.Bool
	defer stop.Store(true)
	go func() { // alone on its socket
		for !stop.Load() {
			for range 8 {
				far[0].write(queued(1), nil)
				far[0].write(queued(2), nil)
			}
			time.Sleep(500 * time.Microsecond)
		}
	}()
	sentBy(t, c, 40000) // both queues are full
	begin, before := time.Now(), sentBy(t, c, 0)
	after := sentBy(t, c, uint64(before[2]+before[3]+4e6))
	took := time.Since(begin).Seconds()
	limited, rest := after[2]-before[2], after[3]-before[3]
	if share := limited / (limited + rest); math.Abs(share/0.25-1) > 0.01 {
		t.Errorf("the queue of 4 of 16 Mbit/s had %.2f %%", 100*share)
	}
	if got := (limited + rest) / took; got > rate*1.02 {
		t.Errorf("a port of %.0f byte/s sent %.0f", rate, got)
	}
}

// toQueue is an entry for packets of a kind.
func toQueue(kind byte, queue uint32) *of13.FlowMod {
	m := output(2, of13.Exact(of13.EthSrc, 0x020000000000|uint64(kind)))
	m.Instructions[0].Actions = append([]of13.Action{{Type: of13.ActionSetQueue, Number: queue}}, m.Instructions[0].Actions...)
	return m
}

// queued is a frame of such a kind.
func queued(kind byte) []byte {
	b := make([]byte, 1000)
	copy(b, []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, kind})
	binary.BigEndian.PutUint16(b[12:], 0x88b5)
	return b
}

// sentBy waits until queues 2 and 3 of port 2 have sent so many bytes, and says how
// many each has.
func sentBy(t *testing.T, c *controller, least uint64) (bytes [4]float64) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c.send(&of13.MultipartRequest{Kind: of13.MultipartQueue, Number: 2, Queue: of13.QueueAll})
		for _, q := range c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Queues {
			bytes[q.Queue] = float64(q.Bytes)
		}
		if bytes[2] > 0 && bytes[3] > 0 && uint64(bytes[2]+bytes[3]) >= least {
			return bytes
		}
		if time.Now().After(end) {
			t.Fatalf("queues have sent %v", bytes)
		}
	}
}
