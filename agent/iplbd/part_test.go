package iplbd

import (
	"context"
	"errors"
	"io"
	"log/slog"
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

// What the daemon could not make is wanted of the host all the same: audits try
// again. A step that is older than what the daemon wants does what it wants now.
func TestAuditsMakeWhatFailed(t *testing.T) {
	d := newDiamond(t)
	h, ctx := d.host("a"), t.Context()
	daemon := New("a", d.table(h, "10.1.1.1"), slog.New(slog.NewTextHandler(io.Discard, nil)))
	s := plan.Spread{Prefix: netip.MustParsePrefix("10.2.0.0/16"), By: plan.BySRv6, Paths: []plan.RelayPath{{Relays: []netip.Addr{netip.MustParseAddr("fd00::2")}}}}
	daemon.Apply([]plan.Spread{s}) // SRv6 takes a source, which the table has not
	go daemon.Run(ctx)
	p := PartOf(daemon, h)
	audit := func() []plan.Step {
		t.Helper()
		want, err := plan.Merge(plan.Host{}, p.Local(ctx)...)
		var have plan.Host
		if err := errors.Join(err, p.Observe(ctx, &have)); err != nil {
			t.Fatal(err)
		}
		return plan.Diff(want, have)
	}
	steps := audit()
	if len(steps) != 1 || steps[0].Op != plan.Add || p.Do(ctx, steps[0]) == nil {
		t.Fatalf("steps %v", steps)
	}
	if err := daemon.Call(ctx, func() { daemon.Table.Source6 = netip.MustParseAddr("fd00::1") }); err != nil {
		t.Fatal(err)
	}
	for _, step := range []plan.Step{steps[0], {Op: plan.Delete, Item: s}} {
		if err := p.Do(ctx, step); err != nil {
			t.Error(err)
		}
		if again := audit(); len(again) != 0 {
			t.Errorf("after %s: %v", step, again)
		}
	}
	daemon.Want(ctx, nil)
	if err := p.Do(ctx, steps[0]); err != nil || len(audit()) != 0 || len(observed(t, p)) != 0 {
		t.Errorf("a spread came back that nobody wants: %v, %v", err, observed(t, p))
	}
}
