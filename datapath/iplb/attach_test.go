package iplb

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sublet/datapath/kernel"
)

// What sends by paths and what takes headers off end each by themselves; the
// table goes with the last.
func TestSenderAndRelayEndByThemselves(t *testing.T) {
	l := newLine(t, 1500)
	h, err := kernel.NewHost(kernel.Config{Host: "h", Run: t.TempDir(), Namespace: fmt.Sprintf("/proc/self/fd/%d", l.ns[1].Fd())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Unpin(h); h.Close() })
	links := func() (names []string) {
		pins, _ := os.ReadDir(filepath.Join(h.Dir("bpf"), "iplb"))
		for _, p := range pins {
			if kind, is := strings.CutPrefix(p.Name(), "link_"); is {
				names = append(names, strings.TrimRight(kind, "_0123456789"))
			}
		}
		slices.Sort(names)
		return names
	}
	begin := func() {
		tab, err := Open(h, relay1)
		if err != nil {
			t.Fatal(err)
		}
		defer tab.Close()
		if err := tab.Spread(h, "right"); err != nil {
			t.Fatal(err)
		}
		if err := tab.TakeOff(h, "left"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		first, second func(*kernel.Host) error
		between       []string
	}{
		{UnpinSender, UnpinRelay, []string{"relay"}},
		{UnpinRelay, UnpinSender, []string{"echo", "tx"}},
	} {
		begin()
		if got := links(); !slices.Equal(got, []string{"echo", "relay", "tx"}) {
			t.Fatalf("attached: %v", got)
		}
		if err := c.first(h); err != nil {
			t.Fatal(err)
		}
		if got := links(); !slices.Equal(got, c.between) {
			t.Errorf("after the first: %v, not %v", got, c.between)
		}
		if err := c.second(h); err != nil {
			t.Fatal(err)
		}
		if left, err := Left(h); left || err != nil {
			t.Errorf("after both something is left: %v, %v", left, err)
		}
	}
}

// A sender and a relay on one host, each with a table of its own, lose nothing
// of what the other changes.
func TestTwoChangeTheState(t *testing.T) {
	h, err := kernel.NewHost(kernel.Config{Host: "h", Run: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Unpin(h); h.Close() })
	const changes = 500
	var tables [2]*Table
	var work sync.WaitGroup
	for i := range tables {
		if tables[i], err = Open(h, relay1); err != nil {
			t.Fatal(err)
		}
		defer tables[i].Close()
	}
	for _, tab := range tables {
		work.Go(func() {
			for range changes {
				if err := tab.changed(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	var s iplbState
	if err := tables[0].c.Maps["states"].Lookup(uint32(0), &s); err != nil {
		t.Fatal(err)
	}
	if s.Generation != 2*changes {
		t.Errorf("%d of %d changes are left", s.Generation, 2*changes)
	}
}

// A table whose pins have the names of versions before 0.1 is taken over: what
// relays may take in goes on without being said again.
func TestFormerPinsAreTakenOver(t *testing.T) {
	h, err := kernel.NewHost(kernel.Config{Host: "h", Run: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Unpin(h); h.Close() })
	open := func() *Table {
		tab, err := Open(h, host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tab.Close)
		return tab
	}
	inside := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	if err := open().SetRelaying(Relaying{[]netip.Addr{relay1}, []netip.Prefix{netip.PrefixFrom(host, 32)}, inside, Never}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(h.Dir("bpf"), "iplb")
	for _, r := range renamed {
		if err := os.Rename(filepath.Join(dir, r.To), filepath.Join(dir, r.From)); err != nil {
			t.Fatal(err)
		}
	}
	tab := open()
	if verdict, _ := run(t, tab.Relay(), wrapped(packet(1, 50), relay1)); verdict != next {
		t.Errorf("a relay's packet: verdict %d", verdict)
	}
	if counts, err := tab.Counts(); err != nil || counts["relayed"] != 1 {
		t.Errorf("%v, %v", counts, err)
	}
	for _, r := range renamed {
		if _, err := os.Stat(filepath.Join(dir, r.From)); err == nil {
			t.Errorf("%s is still pinned", r.From)
		}
	}
}
