package store

import (
	"errors"
	"testing"
	"time"

	"sublet/lease"
	"sublet/vnet"
)

// A write of the leader's whose answer was lost, and that comes into force after a
// later one was read or written, does nothing.
func TestLateWriteDoesNothing(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		save(t, s, lease.Changes{Counters: lease.Counters{Serial: 1}, Leases: []vnet.Lease{sample(1, 1)}})
		late := s.written // what a write under way depends on
		want := lease.State{Counters: lease.Counters{Serial: 2}, Leases: []vnet.Lease{sample(1, 1), sample(2, 1)}}
		save(t, s, lease.Changes{Counters: want.Counters, Leases: want.Leases[1:]})
		s.written = late
		if err := s.Save(t.Context(), lease.Changes{Counters: lease.Counters{Serial: 2}, NoLeases: []vnet.LeaseID{want.Leases[1].ID()}}); !errors.Is(err, errChanged) {
			t.Fatalf("a write after a later one gave %v", err)
		}
		s.doubt = true // as when an answer was lost
		expect(t, s, want)
		s.doubt, s.written = false, late
		if s.begin(t.Context()); s.written <= late {
			t.Errorf("reading did not put an end to lost writes: %d, %d before", s.written, late)
		}
	})
}

// A leader knows until when it leads, and a store of its own for ever.
func TestLeads(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		if !s.Leads() {
			t.Fatal("the leader does not know that it leads")
		}
		if s.leader.session == nil {
			return
		}
		s.leader.until.Store(int64(time.Since(s.leader.began)))
		if s.Leads() {
			t.Error("leadership that was not confirmed in time counts")
		}
	})
}

// Only servers that were added take part, and each learns who leads.
func TestServersOfAStore(t *testing.T) {
	ctx := t.Context()
	etcd := open(t, Config{Dir: dir(t), Prefix: "/other"})
	join := func(name, address string) (*Cluster, error) {
		c, err := Join(ctx, Config{Endpoints: socket(etcd), Name: name, Address: address})
		if err == nil {
			t.Cleanup(func() { c.Close() })
			go c.Follow(ctx)
		}
		return c, err
	}
	one, err := join("one", "192.0.2.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := join("two", "192.0.2.2:1"); !errors.Is(err, ErrNoMember) {
		t.Fatalf("a server that was not added: %v", err)
	}
	if err := one.AddServer(ctx, Server{Name: "two", Address: "192.0.2.2:1"}, ""); err != nil {
		t.Fatal(err)
	}
	if err := one.AddServer(ctx, Server{Name: "two", Address: "192.0.2.3:1"}, ""); !errors.Is(err, ErrMember) {
		t.Errorf("a server added twice: %v", err)
	}
	if _, err := join("one", "192.0.2.9:1"); err == nil {
		t.Error("a server at another address was let in")
	}
	two, err := join("two", "192.0.2.2:1")
	if err != nil {
		t.Fatal(err)
	}
	first, err := one.Lead(ctx)
	if err != nil {
		t.Fatal(err)
	}
	awaitLeader(t, two, "one")
	if err := two.Gone(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	second, err := two.Lead(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	awaitLeader(t, one, "two")
	if err := first.Save(ctx, lease.Changes{Counters: lease.Counters{Serial: 9}}); !errors.Is(err, ErrDeposed) {
		t.Errorf("who was declared gone wrote: %v", err)
	}
	if err := two.RemoveServer(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-one.Removed():
	case <-time.After(20 * time.Second):
		t.Error("the removed server was not told")
	}
}

func awaitLeader(t *testing.T, c *Cluster, name string) {
	t.Helper()
	for deadline := time.After(20 * time.Second); ; {
		leader, changed := c.Leader()
		if leader.Name == name {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%q leads, want %q", leader.Name, name)
		}
	}
}
