package reach

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Rounds of echo requests, each to those that have not answered yet. The pauses
// are short while hosts build and OSPF finds its ways, and grow to that of a
// lease whose tenant lets nothing be answered. Who does not answer is said after
// a second of rounds.
const (
	firstWait = 20 * time.Millisecond
	longWait  = 500 * time.Millisecond
	sayAfter  = time.Second
	restAfter = 10 * time.Second // of rounds without rest
	longRest  = 10 * time.Second
)

// probe begins rounds for a watch, or has the running ones begin anew. The lock
// is held.
func (p *Part) probe(w *watch) {
	if w.probing {
		w.again = true
		return
	}
	ctx, cancel := context.WithCancel(p.stop)
	w.probing, w.cancel = true, cancel
	fresh := w.fresh
	p.done.Go(func() {
		defer cancel()
		for p.rounds(ctx, w) {
		}
		if fresh {
			p.tidyLate(ctx, w)
		}
	})
}

// rounds asks until all have answered; true: to be done once more.
func (p *Part) rounds(ctx context.Context, w *watch) (more bool) {
	left := pairs(w.item)
	w.began = time.Now()
	p.keep(w)
	for wait := firstWait; len(left) > 0; wait = min(2*wait, longWait) {
		left = p.round(ctx, w, left, wait)
		if ctx.Err() != nil {
			return false
		}
		if !p.tell(w, left, time.Since(w.began)) && time.Since(w.began) > restAfter {
			p.rest(ctx, time.Since(w.began))
		}
		if p.restarted(w) {
			w.began, wait, left = time.Now(), firstWait, pairs(w.item)
		}
	}
	p.tidyNow(w)
	return p.finish(w)
}

// rest waits between rounds that have gone on for some time.
func (p *Part) rest(ctx context.Context, since time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(min(since/10, longRest)):
	}
}

// restarted says whether something of the lease was changed meanwhile.
func (p *Part) restarted(w *watch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := w.again
	w.again = false
	return again
}

// tell notes who has not answered; true: all have.
func (p *Part) tell(w *watch, left []pair, after time.Duration) bool {
	text := ""
	if len(left) > 0 && after > sayAfter {
		text = words(w.item, left, "%[2]s does not answer %[1]s")
	}
	p.mu.Lock()
	before := w.problem()
	if text != "" || len(left) == 0 {
		w.mute = text
	}
	w.fresh = w.fresh && len(left) > 0
	differs := w.problem() != before
	p.mu.Unlock()
	if differs {
		p.changed()
	}
	return len(left) == 0
}

// finish ends probing unless there is a reason to go on.
func (p *Part) finish(w *watch) (more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	more, w.again = w.again, false
	w.probing = more
	w.fresh = false
	return more
}

// round asks every node that is left and returns who has not answered.
func (p *Part) round(ctx context.Context, w *watch, left []pair, wait time.Duration) []pair {
	type source struct {
		from int
		is6  bool
	}
	to := make(map[source][]int)
	for _, at := range left {
		s := source{at.from, w.item.Nodes[at.to].Address.Is6()}
		to[s] = append(to[s], at.to)
	}
	var mu sync.Mutex
	var mute []pair
	var asking sync.WaitGroup
	for from, targets := range to {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			asking.Wait()
			return left
		}
		asking.Go(func() {
			defer func() { <-p.slots }()
			silent := p.ask(ctx, w, from.from, targets, wait)
			mu.Lock()
			defer mu.Unlock()
			for _, t := range silent {
				mute = append(mute, pair{from.from, t})
			}
		})
	}
	asking.Wait()
	slices.SortFunc(mute, func(a, b pair) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return a.to - b.to
	})
	return mute
}
