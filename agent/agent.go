// Package agent makes one host match its plan, again and again: observe, diff,
// do. It is level-triggered: whatever happened to the kernel, to an earlier
// agent or to a reply, the next pass starts from what is there.
//
//	Source --plan--> local copy --> Reconcile(parts) --> Report
//	                                   ^
//	        kernel events, audit timer +
//
// With the server away the agent goes on, and starts again, from its copy.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Source is where plans come from and reports go: the server's API.
type Source interface {
	// Plan returns the host's plan once it is another one than after, or the
	// same plan after a while.
	Plan(ctx context.Context, host vnet.HostID, after plan.Origin) (plan.Host, error)
	Report(context.Context, report.Report) error
}

// Agent keeps one host as planned.
type Agent struct {
	Host    vnet.HostID
	Address string // where exec and capture are served; reported to the server
	Source  Source
	Parts   []Part
	Copy    string          // file of the local copy of the plan
	Events  <-chan struct{} // something of ours may have changed in the kernel
	Log     *slog.Logger
	Workers int // concurrent steps on independent items
	// NoCarrier lists the interfaces without a carrier, sorted; nil: none is looked at.
	NoCarrier func() ([]string, error)
	// Interfaces lists the host's, for the server to compare with the substrate;
	// nil: none is looked at.
	Interfaces func() ([]report.Interface, error)
	// Machines says what runs virtual machines on the host; nil: nothing.
	Machines func() string
	// Exposed are the ports that images of nodes say they serve, by namespace; nil:
	// there are no images.
	Exposed func() map[string][]string
	// Cuts lists what is there as planned and does not carry, sorted; News says
	// that it may be another list. Touched is told of leases that were changed.
	Cuts    func() report.Errors
	News    <-chan struct{}
	Touched func(vnet.LeaseID)

	applied uint64 // revision last reached without an error
	drift   uint64
	dark    []string // interfaces, as last seen
	cuts    report.Errors
	repairs []report.Repair // that the server has not heard of
	unbuilt unbuilt         // since plans changed
	unheard trouble         // of reports

	interfaces []report.Interface // as read at looked
	looked     time.Time
	rounds     rounds
	counts     counts
	standing   atomic.Pointer[Standing]
}

// Limits of the loop. An audit takes at most a tenth of the time, so that a
// host with very much on it is not busy looking at itself.
const (
	auditEvery   = 2 * time.Second
	callAgain    = 100 * time.Millisecond // the server, after an error; then twice as long each time
	auditShare   = 10
	retryAfter   = time.Second
	eventRest    = 200 * time.Millisecond
	eventShare   = 2
	heartbeat    = 5 * time.Second
	reportWithin = 5 * time.Second
	mostWait     = time.Second // for the instant at which other hosts begin, too, whatever the clock says
)

// Run reconciles until ctx ends. Before it knows a plan it changes nothing.
func (a *Agent) Run(ctx context.Context) {
	want, known, err := loadCopy(a.Copy, a.Host)
	if err != nil {
		a.Log.Error("waiting for the server's plan", "err", err)
	}
	l := loop{
		Agent: a, parts: withBackoff(a.Parts), want: want, known: known, saved: true,
		plans: make(chan plan.Host), lost: make(chan error, 1), audit: time.NewTimer(0),
	}
	defer l.audit.Stop()
	a.unheard = trouble{log: a.Log, what: "the server does not take reports", over: "the server takes reports again"}
	var polling sync.WaitGroup
	defer polling.Wait()
	polling.Go(func() { a.poll(ctx, want.Origin(), l.plans, l.lost) })
	for l.wait(ctx) {
		l.again(ctx)
		if l.known {
			l.pass(ctx)
		} else {
			l.audit.Reset(auditEvery)
		}
	}
}

// loop is the state of Run.
type loop struct {
	*Agent
	parts    []Part // with backoff
	want     plan.Host
	known    bool         // there is a plan
	held     *report.Held // why the server's is not followed; nil: it is
	refused  plan.Host    // with held: the server's
	unread   string       // why the server's newest plan cannot be read; "": it can
	changed  bool         // since the last pass
	saved    bool         // in the local copy
	plans    chan plan.Host
	lost     chan error // the server went away, it may be back; or its plan cannot be read
	result   Result     // of the last pass
	audit    *time.Timer
	rest     <-chan time.Time // events wait for it, lest a busy tenant keeps the agent busy
	reported time.Time
}

// wait returns when there is a reason for a pass; false: to stop.
func (l *loop) wait(ctx context.Context) bool {
	for {
		events := l.Events
		if l.rest != nil {
			events = nil
		}
		select {
		case <-ctx.Done():
			return false
		case next := <-l.plans:
			l.take(ctx, next)
			return true
		case <-l.rest:
			l.rest = nil
			continue
		case err := <-l.lost:
			l.missed(ctx, err)
			continue
		case <-l.News:
			if l.known && l.recut() {
				l.report(ctx)
			}
			continue
		case <-events:
		case <-l.audit.C:
		}
		return true
	}
}

// missed notes why no plan came. A plan that this version does not understand
// is not done in part: the host stays as it is, and the operator is told.
func (l *loop) missed(ctx context.Context, err error) {
	l.unread = ""
	if errors.Is(err, plan.ErrUnknown) {
		l.unread = err.Error()
	}
	if l.unread != "" || !l.reported.IsZero() { // a server that started anew knows nothing of this host
		l.report(ctx)
	}
}

// pass reconciles once and says what came of it. The plan is kept on disk
// before it is done; if that fails it is done all the same, and kept later.
func (l *loop) pass(ctx context.Context) {
	if !l.saved {
		if err := saveCopy(l.Copy, l.want); err != nil {
			l.Log.Error("no local copy of the plan could be kept: without the server a restart would go back", "err", err)
		} else {
			l.saved = true
		}
	}
	before := l.result
	if whole, err := l.whole(ctx, l.want); err == nil {
		l.result = Reconcile(ctx, whole, l.parts, l.Workers)
	} else {
		l.result = Result{Errors: report.Errors{{Text: err.Error()}}}
	}
	l.say(before.Errors, l.result.Errors)
	l.touch(l.result.Done)
	cut := l.recut()
	over := len(before.Errors) > 0 && len(l.result.Errors) == 0
	if darker := l.look(); l.note(l.want, l.result, l.changed) || over || darker || cut || time.Since(l.reported) > heartbeat {
		l.report(ctx)
	}
	took, failed := l.result.Took, len(l.result.Errors) > 0
	if l.changed { // what a new plan took to build says nothing of the next look
		took = l.result.Looked
	}
	next := nextAudit(took, failed)
	if l.changed && !failed && l.result.Steps > 0 { // soon: what it built counts as built once it was found in place
		next = took
	}
	l.changed = false
	l.stand()
	l.audit.Reset(next)
	l.rest = time.After(rest(took, failed))
}

// DryRun says what a reconciliation with the newest plan would do now; an error
// says what could not be looked at.
func (a *Agent) DryRun(ctx context.Context) ([]plan.Step, error) {
	want, err := a.Source.Plan(ctx, a.Host, plan.Origin{})
	if err != nil {
		return nil, err
	}
	if want, err = a.whole(ctx, want); err != nil {
		return nil, err
	}
	have := Observe(ctx, want, a.Parts)
	var unknown []error
	for _, u := range have.Unknown {
		unknown = append(unknown, errors.New(report.Unread(u).String()))
	}
	return plan.Diff(want, have), errors.Join(unknown...)
}

// whole is a plan with what loops on this host want beside it.
func (a *Agent) whole(ctx context.Context, want plan.Host) (plan.Host, error) {
	var local []plan.Local
	for _, part := range a.Parts {
		if p, ok := part.(Proposer); ok {
			local = append(local, p.Local(ctx)...)
		}
	}
	whole, err := plan.Merge(want, local...)
	if err != nil {
		return plan.Host{}, fmt.Errorf("nothing is changed here, as nobody can say what shall be: %w", err)
	}
	return whole, nil
}

// nextAudit says how long to rest after a pass that took so long.
func nextAudit(took time.Duration, failed bool) time.Duration {
	if failed {
		return max(retryAfter, took)
	}
	return max(auditEvery, auditShare*took)
}

// rest says how long events are not listened to after a pass: what could not
// be done leaves events of its own.
func rest(took time.Duration, failed bool) time.Duration {
	if failed {
		return max(retryAfter, eventShare*took)
	}
	return max(eventRest, eventShare*took)
}

// say logs the problems that are new, and those that are over.
func (a *Agent) say(before, now report.Errors) {
	known, failing := make(map[report.ItemError]bool), make(map[string]bool)
	for _, e := range before {
		known[e] = true
	}
	for _, e := range now {
		failing[e.Item()] = true
		if !known[e] {
			a.Log.Warn("not as planned", "item", e.Item(), "op", e.Op, "problem", e.Text)
		}
	}
	for _, e := range before {
		if !failing[e.Item()] {
			a.Log.Info("as planned again", "item", e.Item())
		}
	}
}

// note logs a pass and says whether the server should hear of it at once.
func (a *Agent) note(want plan.Host, r Result, changed bool) bool {
	mended, left := a.mended(r.Done)
	building := a.build(r, changed)
	a.repaired(mended, unbuilt{})
	if !changed {
		a.repaired(left, building)
	}
	if len(r.Errors) == 0 {
		a.applied = want.Revision
	}
	if r.Steps > 0 || changed {
		a.Log.Info("reconciled", "revision", want.Revision, "steps", r.Steps, "errors", len(r.Errors), "took", r.Took, "repair", !changed)
	}
	return changed || r.Steps > 0 || len(r.Errors) > 0 || len(mended) > 0
}

// look notes which interfaces have no carrier; true: others than before.
func (a *Agent) look() bool {
	if a.NoCarrier == nil {
		return false
	}
	dark, err := a.NoCarrier()
	if err != nil {
		a.Log.Warn("carriers cannot be read", "err", err)
		return false
	}
	if slices.Equal(dark, a.dark) {
		return false
	}
	a.Log.Info("carriers changed", "without", dark)
	a.dark = dark
	return true
}

// survey reads the interfaces, at most once a heartbeat.
func (a *Agent) survey() []report.Interface {
	if a.Interfaces == nil || time.Since(a.looked) < heartbeat {
		return a.interfaces
	}
	list, err := a.Interfaces()
	if err != nil {
		a.Log.Debug("interfaces cannot be read", "err", err)
		return a.interfaces
	}
	a.interfaces, a.looked = list, time.Now()
	return list
}

// report tells the server; when it does not hear, the next report will do.
func (l *loop) report(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	r := report.Report{
		Host: l.Host, Revision: l.applied, Tried: l.want.Revision, Agent: l.Address, Held: l.held,
		Errors: slices.Concat(l.result.Errors, l.cuts, l.notFollowed()), Drift: l.drift, NoCarrier: l.dark, Interfaces: l.survey(), Repairs: l.repairs,
	}
	if l.Machines != nil {
		r.Machines = l.Machines()
	}
	if l.Exposed != nil {
		r.Exposed = l.Exposed()
	}
	if l.known {
		origin := l.want.Origin()
		r.Plan = &origin
	}
	err := l.Source.Report(within, r)
	if err == nil {
		l.repairs = nil
	}
	if ctx.Err() == nil {
		l.unheard.note(err)
	}
	l.reported = time.Now()
}

// notFollowed is the error of a plan that cannot be read.
func (l *loop) notFollowed() report.Errors {
	if l.unread == "" {
		return nil
	}
	return report.Errors{{Text: "keeps its former plan: " + l.unread}}
}

// poll passes on every plan that differs from the one before, and says so when
// the server was lost.
func (a *Agent) poll(ctx context.Context, after plan.Origin, plans chan<- plan.Host, lost chan<- error) {
	pause, unplanned := callAgain, trouble{log: a.Log, what: "no plan from the server", over: "the server answers again"}
	for ctx.Err() == nil {
		next, err := a.Source.Plan(ctx, a.Host, after)
		if ctx.Err() == nil {
			unplanned.note(err)
		}
		if err != nil {
			sleep(ctx, pause)
			pause = min(2*pause, retryAfter)
			select {
			case lost <- err:
			default:
			}
			continue
		}
		pause = callAgain
		if next.Origin() == after {
			continue
		}
		sleep(ctx, min(time.Until(next.Begins), mostWait))
		select {
		case plans <- next:
			after = next.Origin()
		case <-ctx.Done():
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
