package server

import (
	"cmp"
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
	began time.Time // of the present second
	least float64   // of what its links found in it, in us
	over  int       // seconds one after the other in which that was more than is stated
	kept  int       // in which it was not
	slow  bool
	most  float64   // of least in those seconds that were over, in us
	told  bool      // the book counts on it
	next  time.Time // when it may be told again
}

// A path is told to be slow when it takes longer than the substrate says by a fifth and
// a millisecond, for so many seconds, and as stated after as many. What the least of
// its links finds counts: one may wait for reasons of its own.
const (
	slowBy   = 1.2
	slowMore = 1000. // us
	slowFor  = 3
	// What is heard once a second comes a little early as often as late: else every other
	// second would be two.
	secondOver = 700 * time.Millisecond
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

// found takes in what probes of a link found of its path.
func (p *proving) found(s *Server, path []string, rtts []time.Duration, now time.Time) {
	if len(path) == 0 || len(rtts) == 0 {
		return
	}
	name := strings.Join(path, ", ")
	w := p.paths[name]
	if w == nil {
		w = &slowPath{began: now}
		p.paths[name] = w
	}
	latency := measure.OneWay(rtts)
	if now.Sub(w.began) < secondOver {
		w.least = min(cmp.Or(w.least, latency), latency)
		return
	}
	stated := time.Duration(0)
	for _, link := range path {
		stated += p.stated[link]
	}
	w.second(s, name, stated)
	p.tell(w, path, now)
	w.began, w.least = now, latency
}

// slower says that a path was found to take longer than the substrate says; "": it was not.
func (p *proving) slower(path []string) string {
	name := strings.Join(path, ", ")
	switch w := p.paths[name]; {
	case w == nil || w.over == 0 && !w.slow:
		return ""
	case len(path) == 1:
		return "link " + name + " takes longer than the substrate says"
	}
	return "links " + name + " together take longer than the substrate says"
}

// second judges a second that is over.
func (w *slowPath) second(s *Server, name string, stated time.Duration) {
	if w.least > slowBy*float64(stated.Microseconds())+slowMore {
		w.over, w.kept, w.most = w.over+1, 0, max(w.most, w.least)
	} else {
		w.over, w.kept = 0, w.kept+1
		if !w.slow {
			w.most = 0
		}
	}
	state := ""
	switch {
	case !w.slow && w.over == slowFor:
		w.slow, state = true, "slow"
	case w.slow && w.kept == slowFor:
		w.slow, state = false, "as stated"
	default:
		return
	}
	took := time.Duration(w.least * float64(time.Microsecond)).Round(10 * time.Microsecond)
	s.happens(vnet.Happening{Time: s.now(), Kind: "link", What: name, State: state, Why: fmt.Sprintf("takes %s, and %s by the substrate", took, stated)})
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
		if now.Sub(w.began) > oldCounts {
			delete(p.paths, name)
		}
	}
}
