package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sublet/lease"
	"sublet/measure"
	"sublet/vnet"
)

// slowPath is what leases' probes find of a path through the substrate.
type slowPath struct {
	heard  time.Time // when probes were heard of last
	over   bool      // the last probe took longer than is stated
	probes int       // one after the other that did, or did not
	since  time.Time // when the first of these was heard of
	slow   bool
	most   float64   // of what it took at least, second by second, since it is over, in us
	told   bool      // the book counts on it
	next   time.Time // when it may be told again
}

// A path is told to be slow when it takes longer than the substrate says by a fifth and
// a millisecond, and so do so many probes of any of its links, one after the other, for
// so long, and as stated in the same way. One link may wait for reasons of its own: then
// probes of others do not. Where a host is short of processors probes wait for it, so it
// takes longer, and that is told, too.
const (
	slowBy     = 1.2
	slowMore   = 1000. // us
	slowProbes = 5
	slowFor    = 1500 * time.Millisecond
	busyFor    = 5 * time.Second
	fastFor    = 2500 * time.Millisecond
)

// latenciesOf is what the substrate says of its links, hosts' own delays included.
func latenciesOf(sub vnet.Substrate) map[string]time.Duration {
	stated := make(map[string]time.Duration, len(sub.Links))
	sub.Links = slices.Clone(sub.Links)
	for i := range sub.Links {
		sub.Links[i].Takes = 0
	}
	for _, l := range sub.WithDelays().Links {
		stated[l.Name] = l.Latency
	}
	return stated
}

// found takes in what probes of a link found of its path, and whether a host of its ends is
// short of processors.
func (p *proving) found(s *Server, path []string, rtts []time.Duration, now time.Time, busy string) {
	if len(path) == 0 || len(rtts) == 0 {
		return
	}
	name := strings.Join(path, ", ")
	w := p.paths[name]
	if w == nil {
		w = new(slowPath)
		p.paths[name] = w
	}
	stated := time.Duration(0)
	for _, link := range path {
		stated += p.stated[link]
	}
	w.add(rtts, slowBy*float64(stated.Microseconds())+slowMore, now)
	w.judge(s, name, stated, measure.OneWay(rtts), now, busy)
	p.tell(w, path, now)
}

// add takes in probes, and what is more than stated, in us of one way.
func (w *slowPath) add(rtts []time.Duration, most float64, now time.Time) {
	least := measure.OneWay(rtts[:1])
	for i := range rtts {
		one := measure.OneWay(rtts[i : i+1])
		if over := one > most; over != w.over || w.probes == 0 {
			w.over, w.probes, w.since = over, 0, now
		}
		w.probes++
		least = min(least, one)
	}
	switch w.heard = now; {
	case w.over && least > most:
		w.most = max(w.most, least)
	case !w.slow:
		w.most = 0
	}
}

// slower says that a path was found to take longer than the substrate says; "": it was not.
func (p *proving) slower(path []string) string {
	name := strings.Join(path, ", ")
	switch w := p.paths[name]; {
	case w == nil || !w.over && !w.slow:
		return ""
	case len(path) == 1:
		return "link " + name + " takes longer than the substrate says"
	}
	return "links " + name + " together take longer than the substrate says"
}

// judge says whether the path is slow now, or is not any more.
func (w *slowPath) judge(s *Server, name string, stated time.Duration, latency float64, now time.Time, busy string) {
	lasts, state := slowFor, "slow"
	switch {
	case w.slow:
		lasts, state, busy = fastFor, "as stated", ""
	case busy != "":
		lasts, busy = busyFor, "; "+busy
	}
	if w.over == w.slow || w.probes < slowProbes || now.Sub(w.since) < lasts {
		return
	}
	w.slow = w.over
	took := time.Duration(latency * float64(time.Microsecond)).Round(10 * time.Microsecond)
	s.happens(vnet.Happening{Time: s.now(), Kind: "link", What: name, State: state, Why: fmt.Sprintf("takes %s, and %s by the substrate%s", took, stated, busy)})
}

// tellEvery bounds how often the book is told of one link: it computes all plans anew.
const tellEvery = 30 * time.Second

// toTell is what the book is to count on of a link.
type toTell struct {
	link string
	path *slowPath
	slow bool
	most time.Duration // what it takes, if it is slow
}

// tell has admission count on what a link was found to take, and on what is stated once
// it is as stated again. Of a path of several links it is not known which is slow.
func (p *proving) tell(w *slowPath, path []string, now time.Time) {
	if len(path) != 1 || w.slow == w.told || now.Before(w.next) {
		return
	}
	w.told, w.next = w.slow, now.Add(tellEvery)
	one := toTell{link: path[0], path: w, slow: w.slow}
	if w.slow {
		one.most = time.Duration(w.most * float64(time.Microsecond))
	}
	p.untold = append(p.untold, one)
}

// tellBook tells it, which may be busy: nobody else waits meanwhile. While leases move it is
// told again.
func (s *Server) tellBook(one toTell) {
	by := clock()
	by.did = "link " + one.link + " is as stated again"
	if one.slow {
		by.did = fmt.Sprintf("link %s takes %s", one.link, one.most.Round(10*time.Microsecond))
	}
	err := s.changeBy(by, func(now time.Time, b *lease.Book) error { return b.LinkTakes(now, one.link, one.most) })
	if err == nil {
		return
	}
	if !errors.Is(err, lease.ErrConflict) {
		s.log.Warn("count on what a link takes", "link", one.link, "err", err)
	}
	s.proving.mu.Lock()
	defer s.proving.mu.Unlock()
	one.path.told = !one.slow
}

// forgetPaths leaves out those of which nothing was found lately.
func (p *proving) forgetPaths(now time.Time) {
	for name, w := range p.paths {
		if now.Sub(w.heard) > oldCounts {
			delete(p.paths, name)
		}
	}
}
