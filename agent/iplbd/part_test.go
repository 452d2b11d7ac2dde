package iplbd

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// leasedTunnel is tunnel 7 from a to b over m1.
func leasedTunnel() plan.Spread {
	return plan.Spread{
		Prefix: netip.MustParsePrefix("10.1.6.2/32"), VNI: 7, Interface: "w1", Mode: plan.HashMode, By: plan.ByUDP,
		Paths: []plan.RelayPath{{Relays: []netip.Addr{netip.MustParseAddr("10.255.0.2")}, Lease: vnet.LeaseID{Tenant: "alice", Network: "net"}}},
	}
}

func unlocked() (io.Closer, error) { return io.NopCloser(nil), nil }

func observed(t *testing.T, p *Part) []plan.Spread {
	t.Helper()
	var have plan.Host
	if err := p.Observe(context.Background(), &have); err != nil {
		t.Fatal(err)
	}
	return plan.Of[plan.Spread](have)
}

// A part does what a plan says, takes over what an earlier one left, and leaves
// nothing when nothing is wanted; another's table is not its own.
func TestPartKeepsTunnels(t *testing.T) {
	d := newDiamond(t)
	h, s, ctx := d.host("a"), leasedTunnel(), context.Background()
	p := NewPart(h, unlocked)
	if have := observed(t, p); have != nil {
		t.Errorf("at first: %v", have)
	}
	for range 2 { // it is safe to repeat
		if err := p.Do(ctx, plan.Step{Op: plan.Add, Item: s}); err != nil {
			t.Fatal(err)
		}
	}
	if have := observed(t, p); !reflect.DeepEqual(have, []plan.Spread{s}) {
		t.Errorf("%+v, want %+v", have, s)
	}
	if status, err := p.Ask(ctx); err != nil || len(status.Prefixes) != 1 || status.Prefixes[0].VNI != 7 || status.Prefixes[0].Paths[0].Lease != "alice/net" {
		t.Errorf("%+v, %v", status, err)
	}
	p.Close()
	busy := NewPart(h, func() (io.Closer, error) { return nil, errors.New("another process has it") })
	if have := observed(t, busy); have != nil {
		t.Errorf("another's table shows %v", have)
	}
	if err := busy.Do(ctx, plan.Step{Op: plan.Add, Item: s}); err == nil {
		t.Error("another's table was changed")
	}
	next := NewPart(h, unlocked)
	defer next.Close()
	if have := observed(t, next); len(have) != 1 || have[0].VNI != 7 || reflect.DeepEqual(have[0], s) {
		t.Errorf("taken over: %+v", have)
	}
	s.Paths[0].Relays = []netip.Addr{netip.MustParseAddr("10.255.0.3")}
	if err := next.Do(ctx, plan.Step{Op: plan.Set, Item: s}); err != nil {
		t.Fatal(err)
	}
	if have := observed(t, next); !reflect.DeepEqual(have, []plan.Spread{s}) {
		t.Errorf("%+v, want %+v", have, s)
	}
	if err := next.Do(ctx, plan.Step{Op: plan.Delete, Item: s}); err != nil {
		t.Fatal(err)
	}
	if left, err := iplb.Left(h); left || err != nil || observed(t, next) != nil {
		t.Errorf("left: %t, %v", left, err)
	}
}

// tunnelled sends packets of tunnel 7 until stopped, as many bytes in a round as
// flows of these sizes.
func (d *diamond) tunnelled(sizes []int) (stop func()) {
	d.t.Helper()
	var conn net.Conn
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1) })
		return err
	}}
	if err := kernel.In(d.ns["a"], func() (err error) { conn, err = dialer.Dial("udp4", "10.1.6.2:4789"); return err }); err != nil {
		d.t.Fatal(err)
	}
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, size := range sizes {
				packet := make([]byte, size)
				packet[0], packet[6] = 8, 7
				_, _ = conn.Write(packet) // refused: nobody listens
			}
			select {
			case <-end:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() { close(end); <-done; conn.Close() }
}

// What is spread by load goes where leases leave room: with a tunnel on one path
// that carries more than all flows together, they take the other.
func TestFlowsGoRoundLeases(t *testing.T) {
	d := newDiamond(t)
	d.relays()
	daemon, ctx := d.start([]plan.Spread{spreadOfTwo()}, func(d *Daemon) { d.Rearrange = 100 * time.Millisecond })
	p := PartOf(daemon, d.host("a"))
	if err := p.Do(ctx, plan.Step{Op: plan.Add, Item: leasedTunnel()}); err != nil {
		t.Fatal(err)
	}
	sizes := []int{600, 600, 600, 600, 600, 600, 600, 600}
	defer d.flows(sizes)()
	silence := d.tunnelled(slices.Repeat(sizes, 2))
	until(t, ctx, daemon, "flows leave the path of the lease", func(p PrefixStatus, s Status) bool {
		return len(s.Prefixes) == 2 && s.Prefixes[1].Paths[0].Packets > 0 && p.Paths[0].Flows <= 1 && p.Paths[1].Flows >= 7
	})
	silence()
	until(t, ctx, daemon, "flows take both paths again", func(p PrefixStatus, s Status) bool {
		return p.Paths[0].Flows >= 3 && p.Paths[1].Flows >= 3
	})
	if err := p.Do(ctx, plan.Step{Op: plan.Delete, Item: leasedTunnel()}); err != nil {
		t.Fatal(err)
	}
	if s, err := daemon.Ask(ctx); err != nil || len(s.Prefixes) != 1 {
		t.Errorf("%+v, %v", s.Prefixes, err)
	}
}
