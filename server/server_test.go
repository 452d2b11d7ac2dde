package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/api"
	"sublet/lease/store"
	"sublet/plan"
	"sublet/report"
	"sublet/trust"
	"sublet/vnet"
)

// rig is a server on a real socket with a real store, in this process.
type rig struct {
	t      testing.TB
	dir    string
	limits Limits
	policy *vnet.Policy
	log    *lockedBuffer
	sub    vnet.Substrate
	check  Checker
	events string // directory; "": none are kept

	store  *store.Store
	server *Server
	stop   func()
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newRig(t testing.TB) *rig { return newRigOn(t, twoHosts()) }

func newRigOn(t testing.TB, sub vnet.Substrate) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, log: &lockedBuffer{}, sub: sub, check: allKept}
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

// twoHosts share one link of 1 Gbit/s.
func twoHosts() vnet.Substrate {
	return vnet.Substrate{
		Hosts: []vnet.SubstrateNode{
			{Name: "h1", Site: "lyon", CPU: 64 * vnet.Core, Memory: 64 * vnet.GiB},
			{Name: "h2", Site: "lille", CPU: 64 * vnet.Core, Memory: 64 * vnet.GiB},
		},
		Links: []vnet.SubstrateLink{{Name: "wire", Ends: [2]string{"h1", "h2"}, Capacity: vnet.Gbit, Ports: [2]vnet.Port{
			{Interface: "p0", Address: addr("192.0.2.1")}, {Interface: "p0", Address: addr("192.0.2.2")}}}},
	}
}

// start opens store and server, and serves.
func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.store, err = store.Open(context.Background(), store.Config{Dir: filepath.Join(r.dir, "data")}); err != nil {
		r.t.Fatal(err)
	}
	tokens, err := trust.OpenTokens(filepath.Join(r.dir, "tokens.json"), time.Now)
	if err != nil {
		r.t.Fatal(err)
	}
	server, err := New(context.Background(), Config{Store: r.store, Tokens: tokens, Substrate: &r.sub, Limits: r.limits, Policy: r.policy, Journal: r.events,
		Checker: func(ctx context.Context, job CheckJob) (vnet.Verdict, error) { return r.check(ctx, job) },
		Log:     slog.New(slog.NewJSONHandler(r.log, nil))})
	if err != nil {
		r.t.Fatal(err)
	}
	r.server = server
	l, err := Listen(filepath.Join(r.dir, "run"), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("serve: %v", err)
		}
		if err := r.store.Close(); err != nil {
			r.t.Errorf("close the store: %v", err)
		}
	})
}

func (r *rig) socket() string { return filepath.Join(r.dir, "run", api.SocketName) }

// as is a client that the kernel presents as another user.
func (r *rig) as(uid int) *api.Client {
	if uid == os.Geteuid() {
		return api.NewClient(r.socket())
	}
	if os.Geteuid() != 0 {
		r.t.Skip("being another user takes root")
	}
	c := api.NewClientOver(r.socket(), func(ctx context.Context) (net.Conn, error) { return dialAs(uid, r.socket()) })
	r.t.Cleanup(c.Close)
	return c
}

// dialAs connects with another effective user: of this thread only, which is
// not used again.
func dialAs(uid int, socket string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		keep := ^uintptr(0)
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(uid), keep); e != 0 {
			err = e
			return
		}
		conn, err = net.Dial("unix", socket)
	}()
	<-done
	return conn, err
}

// agents play every host's agent: they do what they are told at once.
func (r *rig) agents() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, h := range r.sub.Hosts {
		running.Go(func() { r.agent(ctx, h.Name) })
	}
	r.t.Cleanup(func() { cancel(); running.Wait() })
}

func (r *rig) agent(ctx context.Context, host vnet.HostID) {
	c := r.as(os.Geteuid())
	defer c.Close()
	for after := (plan.Origin{}); ctx.Err() == nil; {
		p, err := c.Plan(ctx, host, after)
		if err == nil {
			err = c.Report(ctx, report.Report{Host: host, Revision: p.Revision, Tried: p.Revision, Agent: r.agentSocket(host)})
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // the server restarts
			continue
		}
		after = p.Origin()
	}
}

func (r *rig) agentSocket(host vnet.HostID) string {
	return filepath.Join(r.dir, "agent-"+string(host)+".sock")
}

// pair is a request of two nodes on two hosts and one link.
func pair(name string, rate vnet.Rate) vnet.Request {
	return vnet.Request{Network: vnet.VNetID(name), Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{{Name: "a", Host: "h1", CPU: 100, Memory: 64 * vnet.MiB}, {Name: "b", Host: "h2"}},
		Links: []vnet.VirtualLink{{Name: "ab", Ends: [2]string{"a", "b"},
			Bandwidth: [2]vnet.Bandwidth{vnet.Static(rate), vnet.Static(rate)}}},
	}}
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// must fails the test on an error.
func must[T any](t testing.TB) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}
