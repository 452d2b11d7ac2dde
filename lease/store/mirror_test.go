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
		state.Counters = read.Counters
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
