package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sublet/measure"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// proving judges the promises of all links from what hosts count, second by
// second. What was promised it learns from changes of the book.
type proving struct {
	news proofNews

	mu         sync.Mutex
	hosts      map[vnet.HostID]*hostCounts
	directions map[ofLink]*provedWay     // of leases that are up
	about      map[vnet.LeaseID]*subject // what was promised
	down       map[string]bool           // elements of the substrate
	stated     map[string]time.Duration  // latencies of its links
	measured   map[vnet.HostID]vnet.Measurement
	paths      map[string]*slowPath // by their links
	untold     []toTell             // by who holds mu no more
	shape      uint64               // of directions: it grows when some go
}

// ofLink is one direction of a link.
type ofLink struct {
	lease     vnet.LeaseID
	link      string
	direction vnet.Direction
}

// hostCounts is what a host had counted when it was read last.
type hostCounts struct {
	set, shape uint64
	at         time.Time
	waited     time.Duration // report.Counts.Waited
	busy       float64       // part of the time since the reading before in which work waited
	links      []report.LinkWay
	values     []report.LinkSums
	known      []bool // there is a value of an earlier reading
	again      bool   // there was an earlier reading: what has no value was built since
	directions []*provedWay
}

// provedWay is the proof of one direction of a link: what was counted where frames
// enter and where they leave, and what is judged.
type provedWay struct {
	of      ofLink
	ends    [2]endNow
	read    [2]bool // since it was judged: an end that was read a second before the other tells of another second
	serial  uint64  // of the lease; 0: nothing was judged yet
	prover  measure.Prover
	minutes measure.Minutes
	promise
	latency provedLatency
	meant   map[vnet.HostID]meantDrops // of a chain
	stopped time.Time                  // when an end of it was last seen to be taken to another host while nothing runs there
}

// promise is how one stands.
type promise struct {
	outcome vnet.Outcome // of the last second; "": nothing is judged now
	broken  bool
	kept    int // seconds one after the other since it was broken
	quiet   int // likewise, in which it was not tested
}

// endNow is what was counted at an end, and until when.
type endNow struct {
	measure.End
	at   time.Time
	host vnet.HostID
}

// subject is what is to be known of a lease.
type subject struct {
	vnet.Lease
	links map[string]*vnet.VirtualLink
	down  map[string]string // element of the substrate that is down, by link
}

// Bounds of proving.
const (
	fresh     = 3 * time.Second // how old the reading of the other end may be
	restored  = 5               // seconds in which a promise is kept until it counts as restored
	oldRepair = 20 * time.Second
	oldCounts = time.Minute // after which a host begins anew
	busyPart  = 0.3         // of a second in which work waited: the host was short of processors
	forgotten = 60          // seconds in which nothing is wanted of a broken promise until it is not tested
)

func newProving() *proving {
	return &proving{hosts: make(map[vnet.HostID]*hostCounts), directions: make(map[ofLink]*provedWay), about: make(map[vnet.LeaseID]*subject), paths: make(map[string]*slowPath)}
}

// counted takes in what a host counted.
func (s *Server) counted(host vnet.HostID, c report.Counts) {
	s.cleanJournal()
	for _, one := range s.judged(host, c) {
		s.tellBook(one)
	}
}

// judged judges it, and lists what the book is to be told.
func (s *Server) judged(host vnet.HostID, c report.Counts) []toTell {
	p := s.proving
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.learn() {
		p.forget(s)
	}
	h := p.hosts[host]
	if h == nil || h.set != c.Set || h.shape != p.shape || len(h.links) != len(c.Links) {
		h = p.anew(h, c)
		p.hosts[host] = h
	}
	for _, l := range c.Latencies {
		if of := h.directions[l.At]; of != nil {
			of.latency.heard(host, l)
		}
	}
	span := c.At.Sub(h.at)
	h.busy, h.waited = waitedPart(h.waited, c.Waited, span), c.Waited
	for i, v := range c.Values {
		was, known := h.values[i], h.known[i]
		h.values[i], h.known[i] = v, true
		l := h.links[i]
		s.metering.add(l.Lease, h.charged(i, p.measured[host], was, v, known))
		if !known || span <= 0 || v[0] < was[0] || v[1] < was[1] || v[2] < was[2] {
			continue // it was built anew
		}
		if !l.Several { // else it goes over several paths
			p.read(s, host, l, h.directions[i], was, v, span, c.At)
		}
	}
	h.at = c.At
	list := p.untold
	p.untold = nil
	return list
}

// waitedPart is the part of a time in which work waited for a processor.
func waitedPart(was, is, span time.Duration) float64 {
	if was == 0 || span <= 0 {
		return 0
	}
	return min(float64(is-was)/float64(span), 1)
}

// busy says which host of a link's ends was short of processors in the last second; "":
// none.
func (p *proving) busy(l *provedWay) string {
	for _, end := range l.ends {
		if h := p.hosts[end.host]; h != nil && h.busy >= busyPart {
			return fmt.Sprintf("host %s was short of processors: work waited for one in %.0f %% of a second", end.host, 100*h.busy)
		}
	}
	return ""
}

func endOf(was, is report.LinkSums, span time.Duration) measure.End {
	return measure.End{Span: span, Packets: is[0] - was[0], Rate: perSecond(is[1]-was[1], span), Dropped: is[2] - was[2]}
}

// begins notes that a host had no links until now: all that it counts is new.
func (p *proving) begins(host vnet.HostID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hosts[host] = &hostCounts{at: now}
}

// anew is for another list of links than before, with what is known of them.
func (p *proving) anew(was *hostCounts, c report.Counts) *hostCounts {
	n := len(c.Links)
	h := &hostCounts{set: c.Set, shape: p.shape, links: c.Links, values: make([]report.LinkSums, n), known: make([]bool, n), directions: make([]*provedWay, n)}
	type ofPart struct {
		ofLink
		report.ChainPart
	}
	before := make(map[ofPart]int)
	if was != nil && c.At.Sub(was.at) < oldCounts {
		h.at, h.waited, h.again = was.at, was.waited, true
		for i, l := range was.links {
			before[ofPart{ofLink{l.Lease, l.Link, l.Direction}, l.Part}] = i
		}
	}
	for i, l := range c.Links {
		at := ofLink{l.Lease, l.Link, l.Direction}
		if j, ok := before[ofPart{at, l.Part}]; ok {
			h.values[i], h.known[i] = was.values[j], was.known[j]
		}
		if about := p.about[at.lease]; p.directions[at] == nil && about != nil && about.links[at.link] != nil {
			p.directions[at] = &provedWay{of: at}
		}
		h.directions[i] = p.directions[at]
	}
	return h
}

// read notes what was counted at an end, and judges the link where frames leave it.
func (p *proving) read(s *Server, host vnet.HostID, l report.LinkWay, way *provedWay, was, is report.LinkSums, span time.Duration, at time.Time) {
	if way == nil {
		return // of a lease that is not up
	}
	end := endNow{endOf(was, is, span), at, host}
	switch l.Part {
	case report.Through:
		way.through(host, l.Why, was, is, at)
		return
	case report.Begins: // what its rate lets pass is to arrive
		end = passedOf(end)
	}
	about := p.about[way.of.lease]
	if l.Enters && about.carries(way, 0, end) {
		way.ends[0], way.read[0] = end, true
	}
	if l.Leaves && about.carries(way, 1, end) {
		if l.Enters { // what was dropped there did not leave
			dropped := end.Dropped
			end = passedOf(end)
			end.Dropped = dropped
		}
		way.ends[1], way.read[1] = end, true
	}
	if way.read == [2]bool{true, true} || way.read[1] && way.silent(at) {
		way.read = [2]bool{}
		p.judge(s, way, way.ends[1].at)
	}
}

// forget ends what is known: what was tested before tells nothing of what comes after.
func (l *provedWay) forget() {
	l.prover, l.outcome = measure.Prover{}, ""
	l.latency.prover, l.latency.outcome = measure.LatencyProver{}, ""
}

// silent says that the host where frames enter does not tell what it counts.
func (l *provedWay) silent(now time.Time) bool {
	return l.ends[0].at.IsZero() || now.Sub(l.ends[0].at).Abs() >= fresh
}

// partOf is what frames as small as these get of a minimum, with so many bytes of headers.
func partOf(first measure.End, headers int) float64 {
	bytes := float64(first.Rate) / 8 * first.Span.Seconds()
	return plan.PaidPart(bytes/float64(max(first.Packets, 1)), headers)
}

func perSecond(bytes uint64, span time.Duration) vnet.Rate {
	return vnet.Rate(float64(8*bytes) / span.Seconds())
}

// judge judges one direction of a link, writes runs of minutes down, and tells of
// promises that broke or are kept again.
func (p *proving) judge(s *Server, l *provedWay, now time.Time) {
	about := p.about[l.of.lease]
	if about == nil || about.links[l.of.link] == nil {
		return
	}
	if about.Paused != nil || !about.State.Up() && about.State != vnet.Failed {
		l.forget()
		return
	}
	link := about.links[l.of.link]
	if about.stops(link) {
		l.stopped = now
	}
	if now.Sub(l.stopped) < fresh { // what was counted before is of another host
		l.forget()
		return
	}
	if l.serial != about.Serial {
		minutes := measure.Minutes{Link: l.of.link, Direction: l.of.direction}
		*l = provedWay{of: l.of, ends: l.ends, serial: about.Serial, meant: l.meant, minutes: minutes, latency: provedLatency{hops: l.latency.hops, minutes: minutes}}
		l.latency.minutes.Of = vnet.OfLatency
	}
	p.judgeLatency(s, l, about, now)
	if link.Bandwidth[l.of.direction].Min == 0 { // nothing is promised
		l.prover, l.outcome = measure.Prover{}, ""
		return
	}
	second := measure.Second{Min: link.Bandwidth[l.of.direction].Min, Trouble: about.trouble(l.of.link, s.now()), Busy: p.busy(l)}
	if !l.silent(now) {
		second.First, second.Last = &l.ends[0].End, &l.ends[1].End
		headers := plan.OuterHeaders
		if link.Chain != "" {
			headers += vnet.LargestMetadata(about.Request.Chains)
		}
		second.Part = partOf(l.ends[0].End, headers)
	}
	if link.Chain != "" {
		l.ofChain(&second, now)
	}
	outcome, part, cause := l.prover.Add(second)
	if link.Chain != "" && outcome != vnet.NotTested {
		part *= ofMinimum
	}
	for _, run := range l.minutes.Add(now, outcome, part, cause) {
		s.journal.run(l.of.lease, about.Serial, len(about.links), run)
	}
	l.outcome = outcome
	l.tell(s, l.of.lease, directionText(*link, l.of.direction), outcome, cause)
}

// tell says that a promise broke, that it is kept again, or that nobody can say, as
// nothing was wanted for long.
func (l *promise) tell(s *Server, lease vnet.LeaseID, what string, outcome vnet.Outcome, cause string) {
	l.kept, l.quiet = l.kept+1, l.quiet+1
	if outcome != vnet.Kept {
		l.kept = 0
	}
	if outcome != vnet.NotTested {
		l.quiet = 0
	}
	switch {
	case outcome == vnet.Broken && !l.broken:
		l.broken = true
	case l.broken && l.kept >= restored:
		l.broken, outcome = false, vnet.Kept
	case l.broken && l.quiet >= forgotten:
		l.broken, cause = false, "it is not wanted any more: nothing is known of it since it broke"
	default:
		return
	}
	s.happens(vnet.Happening{Time: s.now(), Lease: lease, Kind: "promise", What: what, State: string(outcome), Why: cause})
	s.feeds.state(report.Sample{Kind: kindPromise, Key: lease.String() + " " + what, Lease: lease, At: s.now(), State: report.State(outcome), Why: cause})
}

// kindPromise is of changes of a promise's state.
const kindPromise plan.Kind = "promise"

// happens writes an event down, among the events and as a line of the log, and has
// those told who want to be.
func (s *Server) happens(h vnet.Happening) {
	h = s.journal.event(h)
	s.notifier.tell(h)
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "event",
		slog.Uint64("number", h.Number), slog.String("lease", leaseText(h.Lease)), slog.String("kind", h.Kind),
		slog.String("what", h.What), slog.String("state", h.State), slog.String("by", h.By), slog.String("cause", h.Why))
}

// leaseText is a lease's name; "" of none.
func leaseText(id vnet.LeaseID) string {
	if id == (vnet.LeaseID{}) {
		return ""
	}
	return id.String()
}

// forget writes down what there is of links that are not judged any more, and
// drops hosts that do not answer.
func (p *proving) forget(s *Server) {
	for at, l := range p.directions {
		if a := p.about[at.lease]; a != nil && (a.Serial == l.serial || l.serial == 0) && a.links[at.link] != nil {
			continue
		}
		for _, run := range append(l.minutes.Flush(), l.latency.minutes.Flush()...) {
			s.journal.run(at.lease, l.serial, 1, run)
		}
		delete(p.directions, at)
	}
	p.forgetPaths(s.now())
	p.shape++
	for host, h := range p.hosts {
		if time.Since(h.at) > oldCounts {
			delete(p.hosts, host)
		}
	}
}

// flush writes down all that is open: the server stops.
func (p *proving) flush(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.about)
	p.forget(s)
}

// open are the runs of a lease that are not written down yet.
func (p *proving) open(id vnet.LeaseID, serial uint64) (runs []vnet.ProofRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, l := range p.directions {
		if at.lease == id && l.serial == serial {
			runs = append(append(runs, l.minutes.Open()...), l.latency.minutes.Open()...)
		}
	}
	return runs
}
