package store

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"sublet/lease"
	"sublet/plan"
	"sublet/vnet"
)

// What a server knows that waited to lead is what the store has, whatever was written
// meanwhile, and whether it was decoded already or not.
func TestMirrorIsTheStore(t *testing.T) {
	etcd := open(t, Config{Dir: dir(t), Prefix: "/other"})
	config := Config{Endpoints: socket(etcd), Name: "one", Prefix: "/sublet", TTL: 2 * time.Second}
	config.fill()
	first := open(t, config)
	r := rand.New(rand.NewPCG(3, 0))
	write := func() {
		serial := uint64(1 + r.IntN(40))
		c := lease.Changes{Counters: lease.Counters{Serial: 40}}
		switch l := sample(serial, r.IntN(5)); r.IntN(6) {
		case 0:
			c.NoLeases = []vnet.LeaseID{l.ID()}
		case 1:
			c.Plans = []plan.Host{{Host: vnet.HostID(fmt.Sprintf("h%d", serial)), Revision: serial}}
		case 2:
			c.NoPlans = []vnet.HostID{vnet.HostID(fmt.Sprintf("h%d", serial))}
		case 3:
			c.Substrate = &vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: vnet.HostID(fmt.Sprintf("h%d", serial))}}}
		case 4:
			c.Notify = []vnet.Notify{{Tenant: vnet.TenantID(fmt.Sprintf("t%d", serial%3)), Mail: "a@example.org"}}
		default:
			c.Leases = []vnet.Lease{l}
		}
		save(t, first, c)
	}
	for range 50 {
		write()
	}
	for turn := range 6 {
		m := newMirror(first.client, config)
		for range r.IntN(40) {
			write()
		}
		if turn%2 == 1 {
			time.Sleep(2 * decodeEvery)
		}
		write()
		eventuallyThere(t, m)
		state, there, err := m.give(t.Context(), first.written)
		if err != nil || !there {
			t.Fatalf("turn %d: there: %v, %v", turn, there, err)
		}
		read, err := first.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		state.Counters, state.Ahead = read.Counters, nil // TestMirrorBooksAhead
		for _, s := range []*lease.State{&state, &read} {
			slices.SortFunc(s.Notify, func(a, b vnet.Notify) int { return compare(a.Tenant, b.Tenant) })
		}
		if !reflect.DeepEqual(state, read) {
			t.Fatalf("turn %d: the copy has\n%+v\nand the store\n%+v", turn, state, read)
		}
		if _, there, _ := m.give(t.Context(), 0); there {
			t.Error("a copy is given twice")
		}
	}
}

// What is booked in a book that begins with what was worked out ahead is what the store's
// leases take, whatever came, changed and went before, the substrate too.
func TestMirrorBooksAhead(t *testing.T) {
	etcd := open(t, Config{Dir: dir(t), Prefix: "/other"})
	config := Config{Endpoints: socket(etcd), Name: "one", Prefix: "/sublet", TTL: 2 * time.Second}
	config.fill()
	first := open(t, config)
	sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1", CPU: 64 * vnet.Core, Memory: 64 * vnet.GiB}, {Name: "h2", CPU: 64 * vnet.Core, Memory: 64 * vnet.GiB}},
		Links: []vnet.SubstrateLink{{Name: "l", Ends: [2]string{"h1", "h2"}, Capacity: 10 * vnet.Gbit}}}
	now := time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)
	book := lease.New(sub)
	write := func() {
		save(t, first, book.Changes())
		book.Saved()
	}
	admit := func(n int) {
		ten := vnet.Static(10 * vnet.Mbit)
		r := vnet.Request{Tenant: "alice", Network: vnet.VNetID(fmt.Sprintf("n%d", n)), Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "a", Host: "h1", CPU: 100}, {Name: "b", Host: "h2", CPU: 100}},
			Links: []vnet.VirtualLink{{Name: "ab", Ends: [2]string{"a", "b"}, Bandwidth: [2]vnet.Bandwidth{ten, ten}}}}}
		if _, err := book.Admit(now, r, 1000); err != nil {
			t.Fatal(err)
		}
		write()
	}
	release := func(n int) {
		if err := book.Release(now, vnet.LeaseID{Tenant: "alice", Network: vnet.VNetID(fmt.Sprintf("n%d", n))}); err != nil {
			t.Fatal(err)
		}
		write()
	}
	for n := range 20 {
		admit(n)
	}
	m := newMirror(first.client, config)
	time.Sleep(3 * decodeEvery)
	release(3)
	admit(20)
	if _, err := book.SetHostDrained(now, "h2", true); err != nil {
		t.Fatal(err)
	}
	write()
	time.Sleep(3 * decodeEvery)
	release(4) // neither is decoded
	release(5)
	state, there, err := m.give(t.Context(), first.written)
	if err != nil || !there || state.Ahead == nil {
		t.Fatalf("there: %v, ahead: %v, %v", there, state.Ahead, err)
	}
	read, err := first.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state.Counters = read.Counters
	made, err := lease.Restore(now, state)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := lease.Restore(now, read)
	if err != nil {
		t.Fatal(err)
	}
	is, was := made.Loads(vnet.Window{Start: now}), plain.Loads(vnet.Window{Start: now})
	if !reflect.DeepEqual(is, was) || is[0].Steps[0].Booked != 180*vnet.Mbit {
		t.Errorf("%+v is booked, and %+v by the store", is, was)
	}
}

func compare(a, b vnet.TenantID) int {
	if a < b {
		return -1
	}
	return 1
}

// eventuallyThere waits until a copy has read the store.
func eventuallyThere(t *testing.T, m *mirror) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if m.mu.Lock(); m.values != nil {
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
	}
	t.Fatal("the copy has not read the store")
}

// A server that takes over has what the one before it wrote last, without reading it;
// a copy that is not there or lags behind is not waited for.
func TestTakingOverReadsNoLeases(t *testing.T) {
	etcd := open(t, Config{Dir: dir(t), Prefix: "/other"})
	join := func(name string) *Cluster {
		c, err := Join(t.Context(), Config{Endpoints: socket(etcd), Name: name, Address: "192.0.2.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	one := join("one")
	if err := one.AddServer(t.Context(), Server{Name: "two", Address: "192.0.2.1:1"}, ""); err != nil {
		t.Fatal(err)
	}
	two := join("two")
	first, err := one.Lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Load(t.Context()); err != nil || first.mirror != nil {
		t.Fatalf("a book was read, and the copy is kept: %v", err)
	}
	led := make(chan *Store)
	go func() {
		s, err := two.Lead(t.Context())
		if err != nil {
			t.Error(err)
		}
		led <- s
	}()
	time.Sleep(2 * decodeEvery)
	save(t, first, lease.Changes{Counters: lease.Counters{Serial: 2}, Leases: []vnet.Lease{sample(1, 1), sample(2, 1)}})
	save(t, first, lease.Changes{Counters: lease.Counters{Serial: 3}, Leases: []vnet.Lease{sample(3, 1)}, NoLeases: []vnet.LeaseID{sample(1, 1).ID()}})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := <-led
	defer second.Close()
	written := second.written
	state, there, err := second.fromMirror(t.Context(), written)
	if err != nil || !there || len(state.Leases) != 2 || state.Leases[1].Serial != 3 {
		t.Fatalf("the copy: %v, %v, %+v", there, err, state.Leases)
	}
	read, err := second.Load(t.Context())
	if err != nil || !reflect.DeepEqual(read.Leases, state.Leases) {
		t.Errorf("the store has %+v, %v", read.Leases, err)
	}
	m := newMirror(second.client, second.config)
	eventuallyThere(t, m)
	if _, there, _ := m.give(t.Context(), written+1000); there {
		t.Error("a copy that lags behind was given")
	}
}
