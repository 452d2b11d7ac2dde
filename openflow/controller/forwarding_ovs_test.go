package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"sublet/openflow/controller"
	"sublet/openflow/of13"
)

// forwarding serves the switches of an address by Forwarding, until stop is called.
func forwarding(t *testing.T, at netip.AddrPort) (f *controller.Forwarding, where netip.AddrPort, stop func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	f = controller.NewForwarding(log)
	f.Serve(1)
	where, stop = serve(t, controller.Config{Listen: at, App: f.App, Tick: f.Tick, Log: log})
	return f, where, stop
}

// serve runs a controller until stop, which may be called again, or the test's end.
func serve(t *testing.T, c controller.Config) (at netip.AddrPort, stop func()) {
	t.Helper()
	served, err := controller.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- served.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return served.Address(), stop
}

// passage is packets of an ethertype that come in at port 1.
func passage(id, kbps, out uint32) controller.Passage {
	return controller.Passage{ID: id, Kbps: kbps, Out: out, Match: of13.Match{Fields: []of13.Field{of13.Exact(of13.InPort, 1), of13.Exact(of13.EthType, 0x88b0+uint64(id))}}}
}

// connected waits until the switch is.
func connected(t *testing.T, f *controller.Forwarding) {
	t.Helper()
	eventually(t, func() error { _, err := f.Proven(1); return err })
}

// passages wants the entries of bridge 1 to do what is told, each by a meter of its
// own, and no more.
func (r *ring) passages(does ...string) error {
	flows, meters := r.ofctl("dump-flows", 1), r.ofctl("dump-meters", 1)
	for _, want := range append(does, ",NORMAL") {
		if !strings.Contains(flows, want+"\n") {
			return fmt.Errorf("nothing does %s:\n%s", want, flows)
		}
	}
	if n := strings.Count(flows, "actions=meter:"); n != len(does)+1 || strings.Count(meters, "type=drop") != n {
		return fmt.Errorf("not %d entries and meters:\n%s%s", len(does)+1, flows, meters)
	}
	return nil
}

// mended wants passage 1 to be told as put right.
func mended(t *testing.T, f *controller.Forwarding, lost bool) {
	t.Helper()
	eventually(t, func() error {
		list := f.Mended(1)
		if was, told := list[1]; !told || was != lost {
			return fmt.Errorf("%v is told instead of 1: %v", list, lost)
		}
		return nil
	})
}

// Passages are there when Put returns, and gone after Drop; one that the switch refuses
// is an error, and leaves the others as they are. What another hand does to them is
// undone, also when the switch has lost all. Another process finds them in force, leaves
// alone what it wants too, and takes away what it does not want once it is settled.
func TestForwardingOnOpenVSwitch(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		t.Skip("Open vSwitch is not installed")
	}
	f, at, stop := forwarding(t, netip.MustParseAddrPort("127.0.0.1:0"))
	if err := f.Put(t.Context(), 1, passage(1, 1000, 2)); !errors.Is(err, controller.ErrNotConnected) {
		t.Fatalf("a switch that is not connected: %v", err)
	}
	f.Rest(1, 50000)
	r := newRing(t, "OpenFlow13", "tcp:"+at.String())
	connected(t, f)
	for _, p := range []controller.Passage{passage(1, 1000, 2), passage(2, 2000, 3), passage(3, 3000, 3)} {
		if err := f.Put(t.Context(), 1, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.passages(",output:2", ",output:3"); err == nil {
		t.Error("three passages are two")
	}
	var refusal of13.Error
	if err := f.Put(t.Context(), 1, passage(4, 1000, 0xffffff00+5)); !errors.As(err, &refusal) {
		t.Errorf("a port that is none: %v", err)
	}
	if err := f.Put(t.Context(), 1, passage(3, 0, 3)); err != nil { // with what meets no passage
		t.Fatal(err)
	}
	if flows, meters := r.ofctl("dump-flows", 1), r.ofctl("dump-meters", 1); strings.Count(flows, "actions=meter:") != 4 || strings.Count(meters, "type=drop") != 3 {
		t.Errorf("a passage without a rate of its own:\n%s%s", flows, meters)
	}
	if err := f.Drop(t.Context(), 1, 3); err != nil {
		t.Fatal(err)
	}
	whole := func() error { return r.passages(",output:2", ",output:3") }
	eventually(t, whole)
	if err := f.Put(t.Context(), 1, passage(1, 1000, 3)); err != nil { // another port
		t.Fatal(err)
	}
	if err := f.Put(t.Context(), 1, passage(1, 1500, 2)); err != nil { // and another rate
		t.Fatal(err)
	}
	if err := whole(); err != nil || !strings.Contains(r.ofctl("dump-meters", 1), "rate=1500 ") {
		t.Errorf("%v\n%s", err, r.ofctl("dump-meters", 1))
	}
	for _, harm := range [][]string{{"del-flows"}, {"mod-flows", "dl_type=0x88b1,actions=drop"}, {"del-meters"}} {
		r.ofctl(harm[0], 1, harm[1:]...)
		t.Logf("%v is put right after %s", harm, eventually(t, whole))
		mended(t, f, harm[0] != "mod-flows")
	}
	r.restart()
	r.appears("br1.mgmt")
	eventually(t, whole)
	mended(t, f, true)
	r.run("ovs-vsctl", r.db(), "set-controller", "br1", "tcp:127.0.0.1:1") // nobody is there
	eventually(t, func() error {
		if _, err := f.Proven(1); err == nil {
			return errors.New("it is connected still")
		}
		return nil
	})
	r.run("ovs-vsctl", r.db(), "set-controller", "br1", "tcp:"+at.String())
	connected(t, f)
	eventually(t, func() error {
		if list, err := f.Proven(1); err != nil || len(list) != 2 {
			return fmt.Errorf("%v %w", list, err)
		}
		return nil
	})
	if list := f.Mended(1); list != nil {
		t.Errorf("a switch that was away and lost nothing is told to have lost %v", list)
	}

	stop()
	f, _, _ = forwarding(t, at)
	f.Rest(1, 50000)
	connected(t, f)
	if err := f.Put(t.Context(), 1, passage(2, 2000, 3)); err != nil {
		t.Fatal(err)
	}
	if err := whole(); err != nil {
		t.Errorf("another process took something away before it knew all: %v", err)
	}
	f.Settle(1)
	eventually(t, func() error { return r.passages(",output:3") })
}
