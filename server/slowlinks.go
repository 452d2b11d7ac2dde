package server

import (
	"cmp"
	"fmt"
	"strings"
	"time"

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
}

// A path is told to be slow when it takes longer than the substrate says by a fifth and
// a millisecond, for so many seconds, and as stated after as many. What the least of
// its links finds counts: one may wait for reasons of its own.
const (
	slowBy   = 1.2
	slowMore = 1000. // us
	slowFor  = 3
)

// latenciesOf is what the substrate says of its links, hosts' own delays included.
func latenciesOf(sub vnet.Substrate) map[string]time.Duration {
	stated := make(map[string]time.Duration, len(sub.Links))
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
	if now.Sub(w.began) < time.Second {
		w.least = min(cmp.Or(w.least, latency), latency)
		return
	}
	stated := time.Duration(0)
	for _, link := range path {
		stated += p.stated[link]
	}
	w.second(s, name, stated)
	w.began, w.least = now, latency
}

// second judges a second that is over.
func (w *slowPath) second(s *Server, name string, stated time.Duration) {
	if w.least > slowBy*float64(stated.Microseconds())+slowMore {
		w.over, w.kept = w.over+1, 0
	} else {
		w.over, w.kept = 0, w.kept+1
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

// forgetPaths leaves out those of which nothing was found lately.
func (p *proving) forgetPaths(now time.Time) {
	for name, w := range p.paths {
		if now.Sub(w.began) > oldCounts {
			delete(p.paths, name)
		}
	}
}
