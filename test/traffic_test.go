package test

import (
	"fmt"
	"testing"
	"time"
)

// What passes a link is counted, in both directions, and what its queue drops.
//
//	h1:  b ---near--- a           h2
//	                  |
//	                  +----far---- c      200 kbit/s; far, towards c: 10 Mbit/s
func TestTrafficIsCounted(t *testing.T) {
	l := newLab(t, "demo")
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h1}, {name: c, host: h2}]
links:
  - {name: near, ends: [a, b], rate: 200kbit}
  - {name: far, ends: [c, a], rate: 200kbit, reverse: {rate: 10Mbit}}
`)
	type traffic struct {
		Packets          uint64
		Bytes            uint64
		DeliveredPackets uint64 `json:"delivered_packets"`
		Drops            map[string]uint64
	}
	type view struct {
		Links []struct {
			Name, From string
			Traffic    *traffic
		}
	}
	counted := func(link, from string) traffic {
		t.Helper()
		for _, k := range decode[[]view](t, l.must("leases", "n", "-o", "json"))[0].Links {
			if k.Name == link && k.From == from && k.Traffic != nil {
				return *k.Traffic
			}
		}
		t.Fatalf("no counters of %s from %s", link, from)
		return traffic{}
	}
	const pings = 50
	for _, to := range []string{"b", "c"} {
		before := counted("far", "a")
		if to == "b" {
			before = counted("near", "a")
		}
		l.must("exec", "n/a", "--", "ping", "-q", "-c", fmt.Sprint(pings), "-i", "0.02", "-s", "100", to)
		link, back := "far", "c"
		if to == "b" {
			link, back = "near", "b"
		}
		out, in := counted(link, "a"), counted(link, back)
		if n := out.Packets - before.Packets; n < pings || n > pings+20 || out.Bytes-before.Bytes < pings*142 {
			t.Errorf("%d pings to %s: %d packets of %d bytes sent", pings, to, n, out.Bytes-before.Bytes)
		}
		if out.DeliveredPackets < before.DeliveredPackets+pings || in.Packets < pings || in.DeliveredPackets < pings {
			t.Errorf("%d pings to %s: %+v there, %+v back", pings, to, out, in)
		}
	}
	for link, nodes := range map[string][2]string{"near": {"a", "b"}, "far": {"c", "a"}} {
		from, to := nodes[0], nodes[1]
		// A socket for each datagram, or the first would wait for the queue.
		flood := fmt.Sprintf("for i in $(seq 200); do head -c 1400 /dev/zero > /dev/udp/$(getent hosts %s | cut -d' ' -f1)/9; done", to)
		l.must("exec", "n/"+from, "--", "bash", "-c", flood)
		eventually(t, 5*time.Second, func() error {
			if now := counted(link, from); now.Drops["queue"] == 0 || now.DeliveredPackets >= now.Packets {
				return fmt.Errorf("a queue of %s cannot have taken all: %+v", link, now)
			}
			return nil
		})
	}
}
