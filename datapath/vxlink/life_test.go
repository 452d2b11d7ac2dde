package vxlink

import (
	"net"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
	"sublet/internal/stall"
	"sublet/plan"
	"sublet/vnet"
)

// stream sends numbered datagrams from a node to another until stop, and
// tells how many it sent and how many arrived.
type stream struct {
	to   *net.UDPConn
	stop chan struct{}
	sent chan int

	watch *stall.Watch // since its beginning
}

func (b *bench) stream(from, to string, address string) *stream {
	b.t.Helper()
	s := &stream{stop: make(chan struct{}), sent: make(chan int), watch: stall.Start()}
	inside := func(path string, f func() error) {
		ns, err := kernel.OpenNamespace(path)
		check(b.t, err)
		defer ns.Close()
		check(b.t, kernel.In(ns, f))
	}
	inside(to, func() (err error) {
		s.to, err = net.ListenUDP("udp4", &net.UDPAddr{Port: 9000})
		return err
	})
	check(b.t, s.to.SetReadBuffer(16<<20))
	var out net.Conn
	inside(from, func() (err error) {
		out, err = net.Dial("udp4", address+":9000")
		return err
	})
	go func() {
		defer out.Close()
		for n := 0; ; n++ {
			select {
			case <-s.stop:
				s.sent <- n
				return
			default:
			}
			if _, err := out.Write([]byte("counted")); err != nil {
				n-- // such as a queue that is full
			}
			time.Sleep(150 * time.Microsecond) // the kernel keeps 1,000 frames for a processor that is late
		}
	}()
	return s
}

// end tells how many datagrams were lost of how many.
func (s *stream) end() (lost, sent int) {
	close(s.stop)
	sent = <-s.sent
	got, buffer := 0, make([]byte, 64)
	for got < sent {
		s.to.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		if _, err := s.to.Read(buffer); err != nil {
			break
		}
		got++
	}
	s.to.Close()
	return sent - got, sent
}

// lostNone ends it, and sees to it that nothing was lost that the machine has not held up.
func (s *stream) lostNone(t *testing.T) {
	t.Helper()
	lost, sent := s.end()
	switch report := s.watch.Stop(); {
	case sent < 100:
		t.Errorf("%d datagrams were sent", sent)
	case lost > 0 && (testing.Short() || report.Explains(float64(lost)/float64(sent))): // short: other packages run beside it
		t.Skipf("not measured: %d of %d datagrams lost; %s", lost, sent, report)
	case lost > 0:
		t.Errorf("%d of %d datagrams lost; %s", lost, sent, report)
	}
}

// programsOn lists what runs for the demo lease on a host: program numbers and
// link numbers as the kernel has them.
func (b *bench) programsOn(h *kernel.Host) string {
	b.t.Helper()
	out := b.in(h.Path(plan.Fabric(demo)), "tc", "filter", "show", "dev", "l0a", "ingress")
	out += b.in(h.Namespace, "tc", "filter", "show", "dev", plan.Trunk(demo), "ingress")
	links, _ := filepath.Glob(filepath.Join(h.Dir("bpf"), "vxlink", "trunk_*"))
	for _, pin := range links {
		out += b.in(h.Namespace, "stat", "-c", "%n %i", pin)
	}
	return out
}

// An agent that ends leaves everything to the next one, which touches nothing.
func TestAnotherAgentTakesOver(t *testing.T) {
	b := newBench(t)
	parts, nodes, hosts := b.connect(500 * vnet.Mbit)
	b.ping(nodes[0], address(1))
	s := b.stream(nodes[0], nodes[1], address(1).String())
	before := b.programsOn(hosts[0])
	r := parts[0].loaded
	for _, f := range []interface{ Close() error }{r.port, r.trunk, r.closed, r.ends, r.counters, r.tunnels, r.record, r.spreads} {
		check(t, f.Close())
	}
	other, link := New(hosts[0]), across(0, 500*vnet.Mbit)
	has(t, other, uplink(), link)
	add(t, other, uplink(), link)
	if after := b.programsOn(hosts[0]); after != before {
		t.Errorf("the new agent changed\n%sto\n%s", before, after)
	}
	time.Sleep(100 * time.Millisecond)
	s.lostNone(t)
	remove(t, other, link)
}

// Newer programs replace older ones under load without a packet lost.
func TestUpgradeLosesNothing(t *testing.T) {
	b := newBench(t)
	parts, nodes, hosts := b.connect(500 * vnet.Mbit)
	b.ping(nodes[0], address(1))
	s := b.stream(nodes[0], nodes[1], address(1).String())
	seen := make(map[string]bool)
	for range 20 {
		for i, p := range parts {
			b.upgrade(p.loaded)
			if have := observe(t, p); len(plan.Of[plan.VxLink](have)) != 1 || reflect.DeepEqual(plan.Of[plan.VxLink](have)[0], across(i, 500*vnet.Mbit)) {
				t.Errorf("older programs are not seen: %v", have)
			}
			add(t, p, across(i, 500*vnet.Mbit))
			has(t, p, uplink(), across(i, 500*vnet.Mbit))
		}
		seen[b.programsOn(hosts[0])] = true
		time.Sleep(10 * time.Millisecond)
	}
	if len(seen) != 20 {
		t.Errorf("%d versions ran of 20", len(seen))
	}
	s.lostNone(t)
}

// upgrade loads the programs once more: to the kernel and to Observe these are
// others. The maps stay.
func (b *bench) upgrade(r *programs) {
	b.t.Helper()
	spec, err := loadVxlink()
	check(b.t, err)
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{
		vxlinkMapEnds: r.ends, vxlinkMapCounters: r.counters, vxlinkMapTunnels: r.tunnels, vxlinkMapRecords: r.record,
		vxlinkMapSpreads: r.spreads,
	}})
	check(b.t, err)
	r.port, r.trunk, r.closed = c.Programs[vxlinkProgVxlinkPort], c.Programs[vxlinkProgVxlinkTrunk], c.Programs[vxlinkProgVxlinkClosed]
	check(b.t, r.number())
}
