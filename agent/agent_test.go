package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// fakeKernel is a Part for every kind: a kernel that is a map, prints what is
// done to it, and fails when told to.
type fakeKernel struct {
	mu    sync.Mutex
	items map[string]plan.Item
	log   []string
	fail  func(plan.Step) error // error of the reply
	lost  bool                  // with fail: the step is done all the same
	kinds []plan.Kind           // nil: all
	blind error                 // that it cannot be looked at
}

func newFake() *fakeKernel { return &fakeKernel{items: make(map[string]plan.Item)} }

func (k *fakeKernel) Kinds() []plan.Kind {
	if k.kinds != nil {
		return k.kinds
	}
	return plan.Kinds
}

func (k *fakeKernel) Observe(_ context.Context, h *plan.Host) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, item := range k.items {
		h.Add(item)
	}
	return k.blind
}

func (k *fakeKernel) Do(_ context.Context, s plan.Step) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, s.String())
	var err error
	if k.fail != nil {
		err = k.fail(s)
	}
	if err != nil && !k.lost {
		return err
	}
	key := fmt.Sprint(s.Item.Kind(), s.Item.Key())
	if s.Op == plan.Delete {
		delete(k.items, key)
	} else {
		k.items[key] = s.Item
	}
	return err
}

func (k *fakeKernel) has() string {
	var h plan.Host
	_ = k.Observe(context.Background(), &h)
	return h.String()
}

func (k *fakeKernel) forget(kind plan.Kind, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.items, fmt.Sprint(kind, key))
}

var lease = vnet.LeaseID{Tenant: "alice", Network: "net"}

func host(revision uint64, nodes ...string) plan.Host {
	h := plan.Host{Host: "h1", Revision: revision}
	for _, n := range nodes {
		h.Add(plan.VNode{Lease: lease, Node: n})
	}
	return h
}

func TestReconcileReadsAgainAfterAnError(t *testing.T) {
	for _, lost := range []bool{false, true} {
		k := newFake()
		k.lost = lost
		times := 0
		k.fail = func(plan.Step) error {
			if times++; times <= 2 {
				return errors.New("no buffer space available")
			}
			return nil
		}
		want := host(1, "a", "b", "c")
		r := Reconcile(t.Context(), want, []Part{k}, 1)
		if len(r.Errors) != 0 || k.has() != want.String() {
			t.Errorf("reply lost %v: errors %v, host has\n%swants\n%s", lost, r.Errors, k.has(), want)
		}
	}
}

func TestReconcileDoesWhatItCanAndNamesTheRest(t *testing.T) {
	k := newFake()
	k.fail = func(s plan.Step) error {
		if s.Item.Key() == "alice.net.b" {
			return errors.New("permission denied")
		}
		return nil
	}
	r := Reconcile(t.Context(), host(1, "a", "b", "c"), []Part{k}, DefaultWorkers)
	if k.has() != host(1, "a", "c").String() {
		t.Errorf("host has\n%s", k.has())
	}
	if got := fmt.Sprint(r.Errors); got != "[node b cannot be made: permission denied]" {
		t.Errorf("errors are %s", got)
	}
}

// TestReconcileDeletesManyAtOnce: deletions wait for the kernel, together.
func TestReconcileDeletesManyAtOnce(t *testing.T) {
	for workers, want := range map[int]int{1: 1, DefaultWorkers: DefaultWorkers * deleting} {
		synctest.Test(t, func(t *testing.T) {
			k := &slowKernel{fakeKernel: newFake()}
			var names []string
			for i := range 100 {
				names = append(names, fmt.Sprintf("n%02d", i))
			}
			Reconcile(t.Context(), host(1, names...), []Part{k}, workers)
			if k.most != workers {
				t.Errorf("%d workers: added %d nodes at once", workers, k.most)
			}
			k.most = 0
			Reconcile(t.Context(), host(2), []Part{k}, workers)
			if k.most != want || k.has() != host(2).String() {
				t.Errorf("%d workers: deleted %d nodes at once, want %d; left\n%s", workers, k.most, want, k.has())
			}
		})
	}
}

// slowKernel takes a second for every step and counts how many are under way.
type slowKernel struct {
	*fakeKernel
	now, most int
}

func (k *slowKernel) count(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now += n
	k.most = max(k.most, k.now)
}

func (k *slowKernel) Do(ctx context.Context, s plan.Step) error {
	k.count(1)
	time.Sleep(time.Second)
	k.count(-1)
	return k.fakeKernel.Do(ctx, s)
}

func TestReconcileTwiceChangesNothing(t *testing.T) {
	k := newFake()
	Reconcile(t.Context(), host(1, "a"), []Part{k}, 1)
	k.log = nil
	if r := Reconcile(t.Context(), host(1, "a"), []Part{k}, 1); r.Steps != 0 || len(k.log) != 0 {
		t.Errorf("did %v", k.log)
	}
}

// fakeServer hands out plans and keeps reports; down makes it unreachable.
type fakeServer struct {
	mu      sync.Mutex
	text    string // handed out instead of plan, if it is not ""
	plan    plan.Host
	reports []report.Report
	down    bool
}

func (s *fakeServer) Plan(ctx context.Context, _ vnet.HostID, after plan.Origin) (plan.Host, error) {
	s.mu.Lock()
	current, down, text := s.plan, s.down, s.text
	s.mu.Unlock()
	if text != "" {
		return plan.Unseal([]byte(text))
	}
	if down {
		return plan.Host{}, errors.New("connection refused")
	}
	if current.Origin() == after {
		sleep(ctx, auditEvery)
	}
	return current, ctx.Err()
}

func (s *fakeServer) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *fakeServer) Report(_ context.Context, r report.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errors.New("connection refused")
	}
	s.reports = append(s.reports, r)
	return nil
}

func start(t *testing.T, k Part, s *fakeServer, copyFile string) context.CancelFunc {
	ctx, cancel := context.WithCancel(t.Context())
	a := &Agent{Host: "h1", Source: s, Parts: []Part{k}, Copy: copyFile, Log: slog.New(slog.DiscardHandler), Workers: 1}
	done := make(chan struct{})
	go func() { a.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

func TestAgentAppliesRepairsAndReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s := newFake(), &fakeServer{}
		s.plan = host(7, "a")
		stop := start(t, k, s, filepath.Join(t.TempDir(), "plan.json"))
		defer stop()
		sleep(t.Context(), auditEvery)
		if k.has() != host(7, "a").String() {
			t.Fatalf("host has %q", k.has())
		}
		k.forget(plan.KindVNode, "alice.net.a")
		sleep(t.Context(), 2*auditEvery)
		if k.has() != host(7, "a").String() {
			t.Fatalf("not repaired: host has %q", k.has())
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		last := s.reports[len(s.reports)-1]
		if last.Revision != 7 || last.Drift != 1 {
			t.Errorf("last report is %+v, want revision 7 and one repair", last)
		}
	})
}

// A plan that is to begin with those of other hosts is begun at its instant, and not before;
// one that would have it wait for long is not waited for.
func TestAgentBeginsAtTheInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s := newFake(), &fakeServer{plan: host(7, "a")}
		stop := start(t, k, s, filepath.Join(t.TempDir(), "plan.json"))
		defer stop()
		sleep(t.Context(), auditEvery)
		begun := func(revision uint64, wait time.Duration) time.Duration {
			next := host(revision, "a", fmt.Sprint("b", revision))
			next.Begins = time.Now().Add(wait)
			s.mu.Lock()
			s.plan = next
			s.mu.Unlock()
			asked := time.Now()
			for k.has() != next.String() && time.Since(asked) < time.Minute {
				sleep(t.Context(), 10*time.Millisecond)
			}
			return time.Since(asked)
		}
		const asks = auditEvery + 100*time.Millisecond // how often the server of this test is asked
		if took := begun(8, -time.Hour); took > asks {
			t.Errorf("late it took %s", took)
		}
		if took := begun(9, asks+300*time.Millisecond); took < asks+300*time.Millisecond || took > asks+400*time.Millisecond {
			t.Errorf("with an instant after %s it took %s", asks+300*time.Millisecond, took)
		}
		if took := begun(10, time.Hour); took > asks+mostWait {
			t.Errorf("with an instant after an hour it took %s", took)
		}
	})
}

// What took long to build is looked at as soon as anything else.
func TestAgentLooksAgainSoonAfterALongPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s := &slowKernel{fakeKernel: newFake()}, &fakeServer{plan: host(7, "a", "b", "c", "d", "e")}
		stop := start(t, k, s, filepath.Join(t.TempDir(), "plan.json"))
		defer stop()
		sleep(t.Context(), 6*time.Second)
		if k.has() != s.plan.String() {
			t.Fatalf("host has %q", k.has())
		}
		k.forget(plan.KindVNode, "alice.net.a")
		sleep(t.Context(), auditEvery+2*time.Second)
		if k.has() != s.plan.String() {
			t.Errorf("not repaired: host has %q", k.has())
		}
	})
}

func TestAgentRestartsFromItsCopyWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "plan.json")
		s := &fakeServer{plan: host(7, "a")}
		stop := start(t, newFake(), s, file)
		sleep(t.Context(), auditEvery)
		stop()
		s.down = true
		rebooted := newFake()
		stop = start(t, rebooted, s, file)
		defer stop()
		sleep(t.Context(), auditEvery)
		if rebooted.has() != host(7, "a").String() {
			t.Errorf("host has %q", rebooted.has())
		}
	})
}

func TestAgentReportsToAServerThatIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{plan: host(7, "a")}
		stop := start(t, newFake(), s, filepath.Join(t.TempDir(), "plan.json"))
		defer stop()
		sleep(t.Context(), auditEvery)
		s.set(true)
		sleep(t.Context(), 3*auditEvery)
		s.mu.Lock()
		s.reports = nil // a new server knows nothing
		s.mu.Unlock()
		s.set(false)
		sleep(t.Context(), retryAfter+callAgain)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.reports) == 0 || s.reports[0].Revision != 7 {
			t.Errorf("a server that is back heard %+v", s.reports)
		}
	})
}

func TestAgentWithoutAPlanTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "plan.json")
		if err := os.WriteFile(file, []byte(`{"host":`), 0o600); err != nil {
			t.Fatal(err)
		}
		k := newFake()
		k.items["leftover"] = plan.VNode{Lease: lease, Node: "old"}
		s := &fakeServer{down: true}
		stop := start(t, k, s, file)
		defer stop()
		sleep(t.Context(), 10*auditEvery)
		if len(k.log) != 0 {
			t.Errorf("did %s", strings.Join(k.log, "\n"))
		}
	})
}

// A part that cannot look at the host changes nothing, and keeps no other part
// from what it has to do; it is reported until it sees again.
func TestABlindPartIsLeftAloneAndHoldsNobodyUp(t *testing.T) {
	nodes, links := newFake(), newFake()
	nodes.kinds, links.kinds = []plan.Kind{plan.KindVNode}, []plan.Kind{plan.KindVxLink}
	first := host(1, "a", "b")
	first.Add(plan.VxLink{Lease: lease, Index: 1})
	parts := []Part{nodes, links}
	if r := Reconcile(t.Context(), first, parts, 1); len(r.Errors) > 0 {
		t.Fatal(r.Errors)
	}
	nodes.blind = errors.New("control groups cannot be looked at")
	nodes.items, nodes.log = map[string]plan.Item{}, nil
	second := host(2, "c")
	second.Add(plan.VxLink{Lease: lease, Index: 2})
	r := Reconcile(t.Context(), second, parts, 1)
	if len(nodes.log) > 0 {
		t.Errorf("a part that sees nothing did %v", nodes.log)
	}
	if has := links.has(); !strings.Contains(has, "2") || r.Steps != 2 {
		t.Errorf("%d steps, links\n%s", r.Steps, has)
	}
	if got := fmt.Sprint(r.Errors); got != "[nodes cannot be read: control groups cannot be looked at]" {
		t.Errorf("errors: %s", got)
	}
	nodes.blind = nil
	if r := Reconcile(t.Context(), second, parts, 1); len(r.Errors) > 0 || len(nodes.items) != 1 {
		t.Errorf("it sees again: %v, nodes\n%s", r.Errors, nodes.has())
	}
}

// A plan with a section that the agent does not know changes nothing, and the
// server hears of it; the next plan that it knows is followed.
func TestAPlanWithAnUnknownSectionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s := newFake(), &fakeServer{plan: host(7, "a")}
		stop := start(t, k, s, filepath.Join(t.TempDir(), "plan.json"))
		defer stop()
		sleep(t.Context(), auditEvery)
		say := func(text string, h plan.Host) report.Report {
			s.mu.Lock()
			s.text, s.plan = text, h
			s.mu.Unlock()
			sleep(t.Context(), 3*auditEvery)
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.reports[len(s.reports)-1]
		}
		newer := `{"host":"h1","revision":8,"unheard":[{}]}`
		sum := sha256.Sum256([]byte(newer))
		r := say(fmt.Sprintf(`%s,"sum":"%x"}`, newer[:len(newer)-1], sum), host(8, "b"))
		if k.has() != host(7, "a").String() || r.Revision != 7 || len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Text, `"unheard"`) {
			t.Errorf("host has %q and says %+v", k.has(), r)
		}
		if r := say("", host(9, "b")); k.has() != host(9, "b").String() || r.Revision != 9 || len(r.Errors) != 0 {
			t.Errorf("then host has %q and says %+v", k.has(), r)
		}
	})
}

// proposing is a kernel with a loop beside it.
type proposing struct {
	*fakeKernel
	local plan.Local
}

func (p proposing) Local(context.Context) []plan.Local { return []plan.Local{p.local} }

// What a loop on the host wants is kept beside the plan, and no repair; a plan
// that speaks for it changes nothing.
func TestLocalSectionsHaveOneOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s := newFake(), &fakeServer{plan: host(7, "a")}
		spread := plan.Spread{Prefix: netip.MustParsePrefix("10.2.0.0/16")}
		proposes := proposing{k, plan.Local{Owner: plan.ByPaths, Items: []plan.Item{spread}}}
		ctx, cancel := context.WithCancel(t.Context())
		a := &Agent{
			Host: "h1", Source: s, Parts: []Part{proposes}, Copy: filepath.Join(t.TempDir(), "plan.json"), Log: slog.New(slog.DiscardHandler), Workers: 1,
		}
		done := make(chan struct{})
		go func() { a.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()
		both := host(7, "a")
		both.Add(spread)
		say := func(h plan.Host) report.Report {
			s.mu.Lock()
			s.plan = h
			s.mu.Unlock()
			sleep(ctx, 3*auditEvery)
			k.forget(plan.KindPrefixSpread, spread.Key())
			sleep(ctx, 3*auditEvery)
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.reports[len(s.reports)-1]
		}
		if r := say(s.plan); k.has() != both.String() || r.Drift != 0 || len(r.Errors) != 0 {
			t.Errorf("host has\n%sand says %+v", k.has(), r)
		}
		wrong := host(8, "b")
		wrong.Add(spread)
		if r := say(wrong); strings.Contains(k.has(), "alice.net.b") || r.Revision != 7 || len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Text, "is stated by the server") {
			t.Errorf("host has\n%sand says %+v", k.has(), r)
		}
	})
}
