package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sublet/lease"
	"sublet/plan"
	"sublet/vnet"
)

// TestMain turns a re-executed copy of the test into the writer of TestKill.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SUBLET_TEST_WRITER"); dir != "" {
		write(dir)
	}
	os.Exit(m.Run())
}

// dir is a short temporary directory: a unix socket's path must fit.
func dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

func open(t *testing.T, config Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// socket is the etcdctl access to an embedded store.
func socket(s *Store) []string {
	return []string{"unix://" + filepath.Join(s.config.Dir, SocketName)}
}

// both runs a test against an embedded store and against an external cluster.
func both(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Run("embedded", func(t *testing.T) {
		test(t, open(t, Config{Dir: dir(t), Name: "one", TTL: time.Second}))
	})
	t.Run("external", func(t *testing.T) {
		cluster := open(t, Config{Dir: dir(t), Prefix: "/other"})
		test(t, open(t, Config{Endpoints: socket(cluster), Name: "one", TTL: time.Second}))
	})
}

// rival opens a second store on the first one's etcd; it leads when the first
// one is deposed.
func rival(t *testing.T, s *Store) *Store {
	t.Helper()
	endpoints := s.config.Endpoints
	if s.embedded != nil {
		endpoints = socket(s)
	}
	return open(t, Config{Endpoints: endpoints, Name: "two", TTL: time.Second})
}

// sample is a lease with a given serial and number of nodes.
func sample(serial uint64, nodes int) vnet.Lease {
	l := vnet.Lease{Serial: serial, State: vnet.Booked, Stage: -1,
		Window: vnet.Window{Start: time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)},
		VNIs:   map[string][]vnet.VNI{}, Mapping: vnet.Mapping{Nodes: map[string]vnet.HostID{}, Links: map[string]vnet.Path{}}}
	l.Request.Tenant, l.Request.Network = "alice", vnet.VNetID(fmt.Sprintf("n%d", serial))
	for i := range nodes {
		name := fmt.Sprintf("node-with-a-long-name-%d", i)
		l.Request.Nodes = append(l.Request.Nodes, vnet.VirtualNode{Name: name, CPU: 100, Memory: 64 * vnet.MiB})
		l.Request.Links = append(l.Request.Links, vnet.VirtualLink{Name: "l" + name, Ends: [2]string{name, "r"},
			Bandwidth: [2]vnet.Bandwidth{vnet.Static(vnet.Mbit), vnet.Static(vnet.Mbit)}})
		l.Mapping.Nodes[name], l.Mapping.Links["l"+name] = "h1", vnet.Path{"h1-s1", "s1-h2"}
		l.VNIs["l"+name] = []vnet.VNI{vnet.VNI(i)}
	}
	return l
}

func TestSaveLoad(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		state, err := s.Load(t.Context())
		if err != nil || !reflect.DeepEqual(state, lease.State{}) {
			t.Fatalf("an empty store gives %+v, %v", state, err)
		}
		want := lease.State{
			Substrate: vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1", CPU: vnet.Core, Memory: vnet.GiB}}},
			Leases:    []vnet.Lease{sample(1, 1), sample(2, 1000), sample(3, 0)},
			Plans:     map[vnet.HostID]plan.Host{"h1": {Host: "h1", Revision: 7}, "h2": {Host: "h2", Revision: 3}},
			Counters:  lease.Counters{Serial: 3, Revision: 7, Store: "one", Terms: []plan.Term{{ID: "t1", From: 1}, {ID: "t2", From: 5}}},
		}
		save(t, s, lease.Changes{Counters: want.Counters, Substrate: &want.Substrate, Leases: want.Leases,
			Plans: []plan.Host{want.Plans["h1"], want.Plans["h2"]}})
		expect(t, s, want)

		want.Leases = want.Leases[:2]
		delete(want.Plans, "h2")
		gone := lease.Changes{Counters: want.Counters, NoLeases: []vnet.LeaseID{{Tenant: "alice", Network: "n3"}}, NoPlans: []vnet.HostID{"h2"}}
		save(t, s, gone)
		save(t, s, gone)
		expect(t, s, want)
	})
}

func TestManyLeases(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		want := lease.State{Counters: lease.Counters{Serial: 600}}
		for i := range uint64(600) { // more than a transaction and a page hold
			want.Leases = append(want.Leases, sample(i, 1))
		}
		save(t, s, lease.Changes{Counters: want.Counters, Leases: want.Leases})
		expect(t, s, want)
	})
}

func TestReopen(t *testing.T) {
	config := Config{Dir: dir(t), TTL: 30 * time.Second}
	s := open(t, config)
	want := lease.State{Leases: []vnet.Lease{sample(1, 20)}, Counters: lease.Counters{Serial: 1}}
	save(t, s, lease.Changes{Counters: want.Counters, Leases: want.Leases})
	if _, err := Open(t.Context(), config); err == nil {
		t.Fatal("two servers opened one directory")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, open(t, config), want)
}

func TestDeposedLeaderWritesNothing(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		want := lease.State{Leases: []vnet.Lease{sample(1, 1)}, Counters: lease.Counters{Serial: 1}}
		save(t, s, lease.Changes{Counters: want.Counters, Leases: want.Leases})
		depose(t, s)
		next := rival(t, s)
		err := s.Save(t.Context(), lease.Changes{Counters: lease.Counters{Serial: 2}, Leases: []vnet.Lease{sample(2, 1)}})
		if !errors.Is(err, lease.ErrNotLeader) || !errors.Is(err, ErrDeposed) {
			t.Fatalf("the deposed leader's write gave %v", err)
		}
		expect(t, next, want)
		want.Leases = append(want.Leases, sample(2, 2))
		save(t, next, lease.Changes{Counters: want.Counters, Leases: want.Leases[1:]})
		expect(t, next, want)
		select {
		case <-s.Deposed():
		case <-time.After(10 * time.Second):
			t.Error("the deposed leader was not told")
		}
	})
}

// depose takes the leadership away: an external cluster's as its expiry does.
func depose(t *testing.T, s *Store) {
	t.Helper()
	if s.leader.session == nil {
		if _, err := s.client.Delete(t.Context(), s.leader.key); err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, err := s.client.Revoke(t.Context(), s.leader.session.Lease()); err != nil {
		t.Fatal(err)
	}
}

// TestSuspendedServerStillLeads stops a server with a store of its own for
// longer than any leadership in a cluster lasts.
func TestSuspendedServerStillLeads(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "SUBLET_TEST_WRITER="+dir(t), "SUBLET_TEST_TTL=1s")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Process.Kill(); child.Wait() })
	var written atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			written.Add(1)
		}
	}()
	grows(t, &written, ended)
	child.Process.Signal(syscall.SIGSTOP)
	time.Sleep(4 * time.Second)
	child.Process.Signal(syscall.SIGCONT)
	grows(t, &written, ended)
}

// grows waits until a writer has had more acknowledged.
func grows(t *testing.T, written *atomic.Int64, ended <-chan struct{}) {
	t.Helper()
	for before := written.Load(); written.Load() < before+10; {
		select {
		case <-ended:
			t.Fatal("the writer ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestSecondWaitsForFirst(t *testing.T) {
	cluster := open(t, Config{Dir: dir(t), Prefix: "/other"})
	open(t, Config{Endpoints: socket(cluster), TTL: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Config{Endpoints: socket(cluster)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second leader beside the first: %v", err)
	}
}

func TestPrivate(t *testing.T) {
	d := filepath.Join(dir(t), "data")
	if err := os.Mkdir(d, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, Config{Dir: d})
	info, err := os.Stat(d)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Open(t.Context(), Config{}); err == nil {
		t.Fatal("a store nowhere was opened")
	}
}

func save(t *testing.T, s *Store, c lease.Changes) {
	t.Helper()
	if err := s.Save(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, s *Store, want lease.State) {
	t.Helper()
	got, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("loaded %d leases, %d plans, counters %+v; want %d, %d, %+v",
			len(got.Leases), len(got.Plans), got.Counters, len(want.Leases), len(want.Plans), want.Counters)
	}
}

// TestUnfinishedWriteIsTold: of a write that took several transactions and broke off, the
// next server learns that it did.
func TestUnfinishedWriteIsTold(t *testing.T) {
	cluster := open(t, Config{Dir: dir(t), Prefix: "/other"})
	s := open(t, Config{Endpoints: socket(cluster), Name: "one", TTL: time.Second})
	twice := vnet.Waiting{Request: vnet.Request{Tenant: "t", Network: "n"}} // which etcd refuses
	c := lease.Changes{Counters: lease.Counters{Serial: 250}, Waiting: []vnet.Waiting{twice, twice}}
	for serial := range uint64(250) {
		c.Leases = append(c.Leases, sample(serial+1, 1))
	}
	if s.Save(t.Context(), c) == nil {
		t.Fatal("a key was written twice at once")
	}
	is := func(leases int, want bool) {
		t.Helper()
		state, err := s.Load(t.Context())
		if err != nil || len(state.Leases) != leases || state.Counters.Unfinished != want {
			t.Fatalf("%d leases, unfinished: %v, %v", len(state.Leases), state.Counters.Unfinished, err)
		}
	}
	is(200, true)
	c.Waiting = nil
	save(t, s, c)
	is(250, false)
}
