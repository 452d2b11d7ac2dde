// Package reach finds out whether the nodes of a lease reach each other as the
// plan says they must: by echo requests (RFC 792, RFC 4443) out of the nodes on this host
// when the lease is built, changed or repaired, until each is answered; and from
// then on, without a packet, by asking the nodes' kernels for their routes and
// whether routers forward.
//
//	plan.Reach --Do--> watch --rounds of echo requests--> answered
//	                     ^                                   |
//	         no route, repair (Touched)               Problems, Changed
package reach

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Part does the section reach. What it knows it has found out since it was
// made: an agent that starts asks again.
type Part struct {
	// Changed is called when Problems may be others; nil: nobody asks. Set it
	// before the first Do.
	Changed func()

	host  *kernel.Host
	slots chan struct{} // nodes that wait for answers at once
	stop  context.Context
	end   context.CancelFunc
	done  sync.WaitGroup

	asking  sync.Mutex
	asked   int             // pairs since neighbours were removed
	askedOf map[*watch]bool // whose pairs they were

	mu      sync.Mutex
	watches map[string]*watch // by fabric
	next    string            // the fabric whose routes are asked for next
}

// mostAsking bounds how many nodes wait for answers at once; each takes a thread
// for a moment and a socket.
const mostAsking = 16

// New makes the part for one host. Close it when done.
func New(host *kernel.Host) *Part {
	p := &Part{host: host, slots: make(chan struct{}, mostAsking), askedOf: make(map[*watch]bool), watches: make(map[string]*watch)}
	p.stop, p.end = context.WithCancel(context.Background())
	return p
}

// Close ends all probing.
func (p *Part) Close() {
	p.end()
	p.done.Wait()
}

// Kinds is reach.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindReach} }

// Do begins or ends looking. It does not wait: Problems tells.
func (p *Part) Do(_ context.Context, step plan.Step) error {
	item, ok := step.Item.(plan.Reach)
	if !ok {
		return fmt.Errorf("reach does not do %s", step.Item.Kind())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watches[item.Key()]; w != nil {
		w.cancel()
		delete(p.watches, item.Key())
	}
	if step.Op != plan.Delete {
		w := &watch{item: item, fresh: true, cancel: func() {}}
		p.watches[item.Key()] = w
		p.probe(w)
	}
	return nil
}

// Observe lists what is looked at, and looks at some of the routes.
func (p *Part) Observe(_ context.Context, host *plan.Host) error {
	p.mu.Lock()
	for _, key := range slices.Sorted(maps.Keys(p.watches)) {
		host.Add(p.watches[key].item)
	}
	p.mu.Unlock()
	p.audit()
	return nil
}

// Touched says that something of a lease was changed on this host: whether its
// nodes still reach each other is asked again.
func (p *Part) Touched(lease vnet.LeaseID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.watches[plan.Fabric(lease)]; w != nil {
		p.probe(w)
	}
}

// Ask asks whether the nodes of a lease reach each other now, for so long at
// most, and says what is missing; "": nothing is, or the lease has no nodes here.
func (p *Part) Ask(ctx context.Context, lease vnet.LeaseID, most time.Duration) string {
	p.Touched(lease)
	end := time.After(most)
	for {
		p.mu.Lock()
		w := p.watches[plan.Fabric(lease)]
		if w == nil || !w.probing {
			defer p.mu.Unlock()
			return w.problem()
		}
		problem := w.problem()
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return problem
		case <-end:
			return problem
		case <-time.After(askEvery):
		}
	}
}

// askEvery is how often Ask looks.
const askEvery = 20 * time.Millisecond

// Problems are what is known not to be reached, by lease, and the leases of
// which nothing is known yet.
func (p *Part) Problems() report.Errors {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list report.Errors
	for key, w := range p.watches {
		text, op := w.problem(), plan.Carry
		if text == unknown {
			op = plan.Await
		}
		if text != "" {
			list = append(list, report.ItemError{Kind: plan.KindReach, Key: key, Lease: w.item.Lease, Op: op, Text: text})
		}
	}
	list.Sort()
	return list
}

// Samples tell of each lease whether its nodes on this host reach those that
// they must.
func (p *Part) Samples(_ context.Context, of report.Scope) ([]report.Sample, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []report.Sample
	for _, key := range slices.Sorted(maps.Keys(p.watches)) {
		if w := p.watches[key]; of.Holds(w.item.Lease) {
			list = append(list, report.Sample{Kind: plan.KindReach, Key: key, Lease: w.item.Lease, State: w.state(), Why: w.problem()})
		}
	}
	return list, nil
}

// watch is what is known of one lease.
type watch struct {
	item    plan.Reach
	fresh   bool   // not all have answered since the item is there
	mute    string // who does not answer whom
	lost    string // who has no route to whom, or does not forward
	again   bool   // Touched while probing
	probing bool
	cancel  func()
	began   time.Time                  // the rounds; theirs alone
	kept    map[int]map[neighbour]bool // those that nodes had before, guarded by asking
}

// unknown is said of a lease before anything is known.
const unknown = "its nodes are being asked whether they reach each other"

func (w *watch) problem() string {
	switch {
	case w == nil:
		return ""
	case w.lost != "":
		return w.lost
	case w.mute != "":
		return w.mute
	case w.fresh:
		return unknown
	}
	return ""
}

func (w *watch) state() report.State {
	switch w.problem() {
	case "":
		return report.Reached
	case unknown:
		return report.Unknown
	}
	return report.Unreached
}

func (p *Part) changed() {
	if p.Changed != nil {
		p.Changed()
	}
}

// pair is a node on this host and one that it must reach.
type pair struct{ from, to int }

// pairs lists those of an item.
func pairs(item plan.Reach) []pair {
	var list []pair
	for _, p := range item.Pairs {
		for _, to := range slices.Concat(p.To, p.To6) {
			list = append(list, pair{p.From, to})
		}
	}
	return list
}

// mostNamed bounds the pairs, or routers, that a message names.
const mostNamed = 3

// words names pairs by a form of two names.
func words(item plan.Reach, list []pair, form string) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = fmt.Sprintf(form, item.Nodes[p.from].Name, item.Nodes[p.to].Name)
		if item.Nodes[p.to].Address.Is6() {
			texts[i] += " by IPv6"
		}
	}
	return few(texts, "pairs")
}

// few joins the first of some texts, and counts the others.
func few(texts []string, what string) string {
	if more := len(texts) - mostNamed; more > 0 {
		texts = append(texts[:mostNamed:mostNamed], fmt.Sprintf("and %d %s more", more, what))
	}
	return strings.Join(texts, ", ")
}
