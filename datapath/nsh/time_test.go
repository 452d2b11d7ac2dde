package nsh

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hold makes the node f pass frames from i0 to o0 after a time in it.
func (g *testGround) hold(each time.Duration) {
	g.in(g.f, "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
	in, out := g.packets(g.f, "i0"), g.packets(g.f, "o0")
	stop, ended := make(chan struct{}), sync.WaitGroup{}
	ended.Go(func() {
		b := make([]byte, 2048)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if n, err := unix.Read(in, b); err == nil {
				time.Sleep(each)
				_, _ = unix.Write(out, b[:n])
			}
		}
	})
	g.t.Cleanup(func() { close(stop); ended.Wait() })
}

// The time that functions add is taken of one packet in 61: of a node until a packet
// is back, whatever others it has meanwhile.
func TestTimeOfFunctions(t *testing.T) {
	const holds = 3 * time.Millisecond
	g := newGround(t)
	p1, p2 := g.planes(Function{Name: "ids", Kind: Node, In: "fi0", Out: "fo0"})
	g.set(p1, p2)
	g.hold(holds)
	var packets [8][]byte
	for number := uint64(0); ; {
		for i := range packets {
			packets[i] = binary.BigEndian.AppendUint64(nil, number)
			number++
		}
		g.send(g.a, "192.168.7.1:4000", "192.168.7.2:4000", packets[:]...)
		eventually(t, "packets come back from the node", func() bool { return g.h2.hop(t, there, 254).Returned >= number })
		if g.h2.hop(t, there, 254).Timed >= 2 && g.h1.hop(t, there, 255).Timed > 0 {
			break
		}
		if number > 61*100 {
			t.Fatalf("of %d packets the time of %d was taken", number, g.h2.hop(t, there, 254).Timed)
		}
	}
	if c := g.h2.hop(t, there, 254); time.Duration(c.Spent) < time.Duration(c.Timed)*holds {
		t.Errorf("%d packets took %s in a node that holds each for %s", c.Timed, time.Duration(c.Spent), holds)
	}
	if c := g.h1.hop(t, there, 255); c.Timed == 0 || c.Spent == 0 {
		t.Errorf("%d packets took %s at a firewall", c.Timed, time.Duration(c.Spent))
	}
	for _, c := range []Counts{g.h1.hop(t, there, 254), g.h2.hop(t, there, 253)} {
		if c.Timed != 0 {
			t.Errorf("a hop that is no function took time: %+v", c)
		}
	}
}
