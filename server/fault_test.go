package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/lease/store"
	"sublet/trust"
	"sublet/vnet"
)

// TestMain turns a re-executed copy of the test into the server that
// TestKilledServer kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SUBLET_TEST_SERVER"); dir != "" {
		fmt.Fprintln(os.Stderr, serveFor(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serveFor serves until it is killed.
func serveFor(dir string) error {
	s, err := store.Open(context.Background(), store.Config{Dir: filepath.Join(dir, "data")})
	if err != nil {
		return err
	}
	sub := twoHosts()
	server, err := New(context.Background(), Config{Store: s, Substrate: &sub})
	if err != nil {
		return err
	}
	l, err := Listen(filepath.Join(dir, "run"), nil)
	if err != nil {
		return err
	}
	if certs := os.Getenv("SUBLET_TEST_CERTS"); certs != "" {
		port, err := trust.ListenTLS("127.0.0.1:0", filepath.Join(certs, "operator.crt"), filepath.Join(certs, "operator.key"), filepath.Join(certs, "ca.crt"))
		if err != nil {
			return err
		}
		fmt.Println(port.Addr())
		return server.Serve(context.Background(), l, port)
	}
	return server.Serve(context.Background(), l)
}

// TestKilledServer kills servers -9 while they admit and release: what was
// answered is what the next one says.
func TestKilledServer(t *testing.T) {
	r := newRig(t)
	r.stop()
	ctx, c := within(t), r.as(os.Geteuid())
	answered := make(map[vnet.VNetID]vnet.State)
	for round := range 3 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "SUBLET_TEST_SERVER="+r.dir)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		for _, err := c.Hosts(ctx); err != nil; _, err = c.Hosts(ctx) {
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		compare(t, answered, must[[]vnet.Lease](t)(c.Leases(ctx)))
		time.AfterFunc(time.Duration(50+rand.IntN(200))*time.Millisecond, func() { child.Process.Kill() })
		t.Logf("killed after %d answers: %v", len(answered), busy(ctx, c, round, answered))
		child.Wait()
	}
	r.start()
	compare(t, answered, must[[]vnet.Lease](t)(c.Leases(ctx)))
}

// busy admits and releases until the server is gone, and notes what was
// answered; what was asked and not answered may be either way.
func busy(ctx context.Context, c *api.Client, round int, answered map[vnet.VNetID]vnet.State) error {
	for i := 0; ; i++ {
		name := vnet.VNetID(fmt.Sprintf("n%d-%d", round, i))
		a, err := c.Admit(ctx, pair(string(name), vnet.Mbit), false)
		if err != nil {
			return err
		}
		answered[name] = vnet.Deploying
		if i%2 == 0 {
			continue
		}
		delete(answered, name)
		if _, err := c.Release(ctx, a.Lease.ID()); err != nil {
			return err
		}
		answered[name] = vnet.Ended
	}
}

func compare(t *testing.T, answered map[vnet.VNetID]vnet.State, leases []vnet.Lease) {
	t.Helper()
	stored := make(map[vnet.VNetID]vnet.State)
	for _, l := range leases {
		stored[l.Request.Network] = l.State
	}
	for name, state := range answered {
		forgotten := state == vnet.Ended && stored[name] == "" // the history is bounded
		if stored[name] != state && !forgotten {
			t.Errorf("%s was answered %s and is %q", name, state, stored[name])
		}
	}
}

// faultyStore refuses to save on demand.
type faultyStore struct {
	lease.Store
	err error
}

func (f *faultyStore) Save(ctx context.Context, c lease.Changes) error {
	if f.err != nil {
		return f.err
	}
	return f.Store.Save(ctx, c)
}

func TestWhatIsNotSavedHasNotHappened(t *testing.T) {
	r := newRig(t)
	broken := &faultyStore{Store: r.store}
	server := must[*Server](t)(New(t.Context(), Config{Store: broken}))
	operator := &call{Caller: trust.Caller{Operator: true, Tenant: "root"}}
	ask := api.Ask{Request: pair("net", vnet.Mbit)}
	ask.Request.Tenant = "root"
	broken.err = errors.New("the disk is gone")
	if _, err := server.admit(t.Context(), operator, ask); problemOf(err).Status != 503 {
		t.Fatalf("an admission that was not saved gave %v", err)
	}
	broken.err = nil
	server.tick(t.Context())
	if _, err := server.leaseOf(vnet.LeaseID{Tenant: "root", Network: "net"}); problemOf(err).Status != 404 {
		t.Fatalf("the lease that was not saved is there: %v", err)
	}
	must[api.Admission](t)(server.admit(t.Context(), operator, ask))
	broken.err = fmt.Errorf("save: %w", lease.ErrNotLeader)
	ask.Request.Network = "net2"
	if _, err := server.admit(t.Context(), operator, ask); problemOf(err).Status != 503 {
		t.Fatalf("a deposed server's admission gave %v", err)
	}
	err := server.Serve(t.Context())
	wantError(t, "serving after being deposed", err, lease.ErrNotLeader)
}

// TestFullStoreIsRead lets a lease's window end while the store is full: what
// is stored can be read, nothing can be changed, and when there is space again
// the window ends.
func TestFullStoreIsRead(t *testing.T) {
	r := newRig(t)
	full := &faultyStore{Store: r.store}
	now := time.Now()
	config := Config{Store: full, Substrate: &r.sub, Now: func() time.Time { return now }}
	server := must[*Server](t)(New(t.Context(), config))
	operator := &call{Caller: trust.Caller{Operator: true, Tenant: "root"}}
	ask := api.Ask{Request: pair("net", vnet.Mbit)}
	ask.Request.Tenant, ask.Request.For = "root", time.Minute
	must[api.Admission](t)(server.admit(t.Context(), operator, ask))

	full.err, now = fmt.Errorf("save: %w", lease.ErrFull), now.Add(time.Hour)
	server.tick(t.Context())
	for name, s := range map[string]*Server{"running": server, "restarted": must[*Server](t)(New(t.Context(), config))} {
		ask.Request.Network = "net2"
		if _, err := s.admit(t.Context(), operator, ask); problemOf(err).Status != 507 {
			t.Errorf("%s: an admission on a full store gave %v", name, err)
		}
		if l := must[vnet.Lease](t)(s.leaseOf(vnet.LeaseID{Tenant: "root", Network: "net"})); l.State == vnet.Ended {
			t.Errorf("%s: a window's end that could not be stored is told", name)
		}
	}
	full.err = nil
	server.tick(t.Context())
	if l := must[vnet.Lease](t)(server.leaseOf(vnet.LeaseID{Tenant: "root", Network: "net"})); l.State != vnet.Ended {
		t.Errorf("with space again the lease is %s", l.State)
	}
	ask.Request.Network = "net2"
	must[api.Admission](t)(server.admit(t.Context(), operator, ask))
}

func TestDefectIsNotFatal(t *testing.T) {
	r := newRig(t)
	server := must[*Server](t)(New(t.Context(), Config{Store: r.store}))
	err := server.change(func(time.Time, *lease.Book) error { panic("defect") })
	if p := problemOf(err); p.Status != 500 || strings.Contains(p.Detail, "defect") {
		t.Errorf("a defect is told as %+v", p)
	}
	if err := server.look(func(time.Time, *lease.Book) error { return nil }); err != nil {
		t.Errorf("after a defect: %v", err)
	}
}
