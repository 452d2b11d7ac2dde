package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/report"
	"sublet/trust"
	"sublet/vnet"
)

// watcher is a client's stream, as it came so far.
type watcher struct {
	mu     sync.Mutex
	events []api.Event
	err    error
	stop   func()
	done   chan struct{}
}

func watch(t *testing.T, c *api.Client, tenant vnet.TenantID, last string) *watcher {
	ctx, stop := context.WithCancel(within(t))
	w := &watcher{done: make(chan struct{}), stop: stop}
	t.Cleanup(stop)
	go func() {
		defer close(w.done)
		w.err = c.Watch(ctx, tenant, last, func(e api.Event) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
			return nil
		})
	}()
	return w
}

func (w *watcher) seen() []api.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// samples are all that were said.
func (w *watcher) samples(t *testing.T) (list []report.Sample) {
	for _, e := range w.seen() {
		some, err := e.Samples()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, some...)
	}
	return list
}

// until waits for a sample.
func (w *watcher) until(t *testing.T, what string, is func(report.Sample) bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !slices.ContainsFunc(w.samples(t), is); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s among %+v", what, w.samples(t))
		}
	}
}

func state(id vnet.LeaseID, s vnet.State) func(report.Sample) bool {
	return func(one report.Sample) bool {
		return one.Kind == report.KindLease && one.Lease == id && one.State == report.State(s)
	}
}

// speaking answers every question for samples of a host with those of all
// leases, whatever scope was asked for, in the short form.
func (r *rig) speaking(host vnet.HostID, leases ...vnet.LeaseID) {
	r.speakingAs(host, false, leases...)
}

// speakingAs is speaking, of an agent that knows no short form if former is set.
func (r *rig) speakingAs(host vnet.HostID, former bool, leases ...vnet.LeaseID) {
	r.t.Helper()
	kept := report.NewHeads(7)
	l, err := net.Listen("unix", r.agentSocket(host))
	if err != nil {
		r.t.Fatal(err)
	}
	number := uint64(0)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		number++
		round := report.Round{Number: number, At: time.Now()}
		for _, id := range append(leases, vnet.LeaseID{}) {
			s := report.Sample{Host: "h9", Kind: "vxlink", Key: id.String(), Lease: id, At: round.At}
			s.Count(report.Entered, report.Packets, number)
			round.Samples = append(round.Samples, s)
		}
		if former {
			_ = json.NewEncoder(w).Encode([]report.Round{round})
			return
		}
		p := report.Packed{Era: 7, Rounds: []report.PackedRound{kept.Pack(round)}}
		have, _ := strconv.Atoi(req.URL.Query().Get("heads"))
		p.Heads, p.From = kept.Since(7, have)
		_, _ = w.Write(p.Encode())
	})}
	go server.Serve(l)
	r.t.Cleanup(func() { server.Close() })
}

// A tenant sees samples and changes of state of their leases only, the operator
// all, also in the place of one tenant.
func TestWatchShowsEachWhatIsHis(t *testing.T) { watchedByEach(t, false) }

// So it is with an agent of a former version.
func TestWatchOfFormerAgents(t *testing.T) { watchedByEach(t, true) }

func watchedByEach(t *testing.T, former bool) {
	r := newRig(t)
	mine, theirs := vnet.LeaseID{Tenant: "daemon", Network: "net"}, vnet.LeaseID{Tenant: "bin", Network: "net"}
	r.speakingAs("h1", former, mine, theirs)
	r.agents()
	for uid := 1; uid <= 2; uid++ {
		must[api.Admission](t)(r.as(uid).Admit(within(t), pair("net", vnet.Mbit), false))
	}
	all, first, second, third := watch(t, r.as(0), "", ""), watch(t, r.as(1), "", ""), watch(t, r.as(2), "", ""), watch(t, r.as(3), "", "")
	instead := watch(t, r.as(0), "daemon", "")
	counted := func(id vnet.LeaseID) func(report.Sample) bool {
		return func(s report.Sample) bool {
			return s.Kind == "vxlink" && s.Lease == id && s.Host == "h1" && s.Value(report.Entered, report.Packets) > 1
		}
	}
	for _, w := range []*watcher{all, first, instead} {
		w.until(t, "sample of daemon's", counted(mine))
		w.until(t, "running lease of daemon's", state(mine, vnet.Running))
	}
	all.until(t, "sample of the host's own", counted(vnet.LeaseID{}))
	must[vnet.Lease](t)(r.as(2).Release(within(t), theirs))
	for _, w := range []*watcher{all, second} {
		w.until(t, "sample of bin's", counted(theirs))
		w.until(t, "ended lease of bin's", state(theirs, vnet.Ended))
	}
	must[api.Aftermath](t)(r.as(0).SetDown(within(t), "links", "wire", true))
	all.until(t, "broken link", func(s report.Sample) bool {
		return s.Kind == report.KindLink && s.Key == "wire" && s.State == report.Down
	})
	must[api.Aftermath](t)(r.as(0).SetDown(within(t), "links", "wire", false))
	for name, w := range map[vnet.TenantID]*watcher{"daemon": first, "bin": second, "sys": third} {
		for _, s := range w.samples(t) {
			if s.Lease.Tenant != name {
				t.Errorf("%s was told %+v", name, s)
			}
		}
	}
	if len(third.seen()) > 0 {
		t.Errorf("who has no lease was told %+v", third.seen())
	}
	for _, s := range instead.samples(t) {
		if s.Lease != mine {
			t.Errorf("in the place of daemon the operator was told %+v", s)
		}
	}
	wantError(t, "another tenant's", r.as(1).Watch(within(t), "bin", "", nil), api.ErrForbidden)
	wantError(t, "without a name", r.as(65534).Watch(within(t), "", "", nil), api.ErrForbidden)
}

// Who comes back with the last event's id gets what followed, and nothing
// twice; with an id that means nothing they get a gap and the present states.
func TestWatchGoesOnAfterTheLastEvent(t *testing.T) {
	r := newRig(t)
	r.agents()
	c := r.as(os.Geteuid())
	before := watch(t, c, "", "")
	id := must[api.Admission](t)(c.Admit(within(t), pair("net", vnet.Mbit), false)).Lease.ID()
	before.until(t, "running lease", state(id, vnet.Running))
	before.stop()
	<-before.done
	last := before.seen()[len(before.seen())-1].ID
	must[api.Aftermath](t)(c.SetDown(within(t), "links", "wire", true))
	must[api.Aftermath](t)(c.SetDown(within(t), "links", "wire", false))
	after := watch(t, c, "", last)
	after.until(t, "mended link", func(s report.Sample) bool { return s.Kind == report.KindLink && s.State == report.Up })
	seen := after.samples(t)
	if !slices.ContainsFunc(seen, func(s report.Sample) bool { return s.Kind == report.KindLink && s.State == report.Down }) {
		t.Errorf("that the link broke was lost: %+v", seen)
	}
	ids := make(map[string]bool)
	for _, e := range append(before.seen()[len(before.seen())-1:], after.seen()...) {
		if ids[e.ID] {
			t.Errorf("event %s came twice", e.ID)
		}
		ids[e.ID] = true
	}
	for _, lost := range []string{"x-1", strings.Repeat("9", 40), last + "0", "-"} {
		again := watch(t, c, "", lost)
		again.until(t, "present state", state(id, vnet.Running))
		if first := again.seen()[0]; first.Name != api.EventGap {
			t.Errorf("after %q came %+v first", lost, first)
		}
	}
}

// A reader that stops reading is dropped and told why; others get every event
// meanwhile, and the server keeps no more than its bound.
func TestSlowWatcherHarmsNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow := must[net.Conn](t)(net.Dial("unix", r.socket()))
	defer slow.Close()
	fmt.Fprintf(slow, "GET /v1/watch HTTP/1.1\r\nHost: sublet\r\n\r\n")
	lines := bufio.NewReader(slow)
	must[string](t)(lines.ReadString('\n'))
	quick := watch(t, r.as(os.Geteuid()), "", "")
	quick.until(t, "first state", func(report.Sample) bool { return true })
	f := r.server.feeds.list(true)[0]
	const events = 3 * feedBytesOfAll >> 16
	for i := range events {
		one := report.Sample{Kind: "test", Key: fmt.Sprint(i), Why: strings.Repeat("x", 1<<16)}
		f.add(api.EventState, one)
		quick.until(t, "event "+one.Key, func(s report.Sample) bool { return s.Kind == "test" && s.Key == one.Key })
		quick.mu.Lock()
		quick.events = quick.events[len(quick.events)-1:]
		quick.mu.Unlock()
	}
	_ = slow.SetReadDeadline(time.Now().Add(20 * time.Second))
	text := ""
	for !strings.Contains(text, "more slowly") {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the slow reader was told nothing: %v", err)
		}
		text = line
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		r.server.feeds.mu.Lock()
		left := r.server.feeds.total
		r.server.feeds.mu.Unlock()
		if left == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d watch, one reads", left)
		}
	}
}

// Watchers of one tenant, tenants who watch, and the time that feeds are kept
// are bounded.
func TestWatchersAreBounded(t *testing.T) {
	f, now := newFeeds(), time.Now()
	caller := func(i int) trust.Caller {
		name := vnet.TenantID(fmt.Sprint("t", i))
		return trust.Caller{Name: string(name), Tenant: name, Account: name}
	}
	var leave []func()
	for range mostWatchersOfTenant {
		_, one, err := f.enter(caller(0), "t0", now)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, one)
	}
	tooMuch := func(i int) bool {
		_, _, err := f.enter(caller(i), caller(i).Tenant, now)
		var p *api.Problem
		return errors.As(err, &p) && p.Status == http.StatusTooManyRequests
	}
	if !tooMuch(0) {
		t.Errorf("more than %d watchers of one tenant", mostWatchersOfTenant)
	}
	leave[0]()
	for i := 1; i < mostFeeds; i++ {
		if tooMuch(i) {
			t.Fatalf("tenant %d was refused", i)
		}
	}
	if !tooMuch(mostFeeds) || len(f.open) != mostFeeds {
		t.Errorf("%d feeds", len(f.open))
	}
	for _, one := range leave[1:] {
		one()
	}
	if tooMuch(mostFeeds) || len(f.open) != mostFeeds || f.open["t0"] != nil {
		t.Error("a feed that nobody watches was kept for its tenant")
	}
	f.mu.Lock()
	f.open["t1"].watchers = 0
	f.clean(now.Add(keepFeed + time.Hour))
	f.mu.Unlock()
	if len(f.open) != mostFeeds-1 {
		t.Errorf("%d feeds are kept", len(f.open))
	}
}

// Elsewhere the operator watches over TLS; a host's certificate watches nothing.
func TestWatchOverTLS(t *testing.T) {
	r, ours := newRig(t), newAuthority(t)
	address := serveTLS(t, r, ours)
	w := watch(t, ours.client(address, "operator", ours), "", "")
	w.until(t, "host", func(s report.Sample) bool { return s.Kind == report.KindHost && s.Key == "h1" && s.State == report.Up })
	w.until(t, "link", func(s report.Sample) bool {
		return s.Kind == report.KindLink && s.Key == "wire" && s.State == report.Up
	})
	wantError(t, "a host", ours.client(address, "h1", ours).Watch(within(t), "", "", nil), api.ErrForbidden)
}
