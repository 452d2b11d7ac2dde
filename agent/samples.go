package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sublet/internal/stall"
	"sublet/plan"
	"sublet/report"
)

// Samples are read on request, at most once in sampleEvery for all requests of
// rounds. The last rounds are kept, ringBytes in all: of a host with a thousand
// link ends half a minute, of one with ten an hour.
const (
	sampleEvery = 900 * time.Millisecond // a request every second gets a new round each time
	ringBytes   = 1 << 20
)

// rounds are the last readings of samples.
type rounds struct {
	mu    sync.Mutex // also held while parts are read, so that one reading serves all requests that wait
	ring  *report.Ring[report.PackedRound]
	heads *report.Heads
	era   uint64 // of heads; another of each agent
	first uint64 // number of the first round of the era
	read  time.Time
}

// countEvery bounds how often links are read. Who asks every second gets a new
// reading each time, also when a question comes early after a late one.
const countEvery = 400 * time.Millisecond

// counts is the last reading of links.
type counts struct {
	mu   sync.Mutex
	last report.Counts
}

// Samples reads what the parts that do some kinds of item say now; without kinds,
// all parts. What the others said stands beside an error of one.
func (a *Agent) Samples(ctx context.Context, of report.Scope, kinds ...plan.Kind) ([]report.Sample, error) {
	var list []report.Sample
	var failed []error
	now := time.Now()
	for _, part := range a.Parts {
		r, ok := part.(Reporter)
		if !ok || len(kinds) > 0 && !slices.ContainsFunc(part.Kinds(), func(k plan.Kind) bool { return slices.Contains(kinds, k) }) {
			continue
		}
		samples, err := r.Samples(ctx, of)
		if err != nil {
			failed = append(failed, err)
			samples = append(samples, report.Sample{Kind: part.Kinds()[0], State: report.Unreadable, Why: err.Error()})
		}
		list = append(list, samples...)
	}
	for i := range list {
		list[i].Host = a.Host
		if list[i].At.IsZero() {
			list[i].At = now
		}
	}
	return list, errors.Join(failed...)
}

// Rounds lists the readings after a number that are still kept, the newest only
// after 0, each with what a scope holds. The newest is at most sampleEvery old.
func (a *Agent) Rounds(ctx context.Context, after uint64, of report.Scope) []report.Round {
	p := a.Packed(ctx, after, of, 0, 0)
	list := make([]report.Round, 0, len(p.Rounds))
	for _, packed := range p.Rounds {
		if round, err := packed.Unpack(p.Heads); err == nil { // they go together
			list = append(list, round)
		}
	}
	return list
}

// Packed are Rounds in the short form, for who has the first heads of an era.
func (a *Agent) Packed(ctx context.Context, after uint64, of report.Scope, era uint64, heads int) report.Packed {
	r := &a.rounds
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ring == nil {
		r.ring = report.NewRing[report.PackedRound](ringBytes)
	}
	if time.Since(r.read) > sampleEvery {
		now := time.Now()
		samples, _ := a.Samples(ctx, report.Scope{}) // errors stand among them
		if ctx.Err() != nil {                        // the reading was broken off
			return report.Packed{}
		}
		r.add(report.Round{Number: r.ring.Last() + 1, At: now, Samples: samples})
		r.read = now
	}
	if last := r.ring.Last(); after == 0 || after > last { // after > last: of an earlier agent
		after = last - 1
	}
	p := report.Packed{Era: r.era}
	p.Heads, p.From = r.heads.Since(era, heads)
	list, _ := r.ring.After(max(after, r.first-1))
	all, _ := r.heads.Since(0, 0)
	for _, round := range list {
		p.Rounds = append(p.Rounds, round.Only(of, all))
	}
	return p
}

// add keeps a reading. Those before a new era are let go, which only who falls
// behind misses.
func (r *rounds) add(round report.Round) {
	if r.heads == nil || r.heads.Worn() {
		r.era, r.first = rand.Uint64(), round.Number
		r.heads = report.NewHeads(r.era)
	}
	packed := r.heads.Pack(round)
	r.ring.Add(packed, packed.Size())
}

// Counts is what links have counted, at most countEvery ago: nothing else is read.
func (a *Agent) Counts(ctx context.Context) (report.Counts, error) {
	c := &a.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last.At) < countEvery {
		return c.last, nil
	}
	all := report.Counts{At: time.Now(), Waited: stall.Waited()}
	for _, part := range a.Parts {
		counter, ok := part.(Counter)
		if !ok {
			continue
		}
		more, err := counter.Counts(ctx)
		if err != nil {
			return report.Counts{}, err
		}
		all = all.And(more)
	}
	c.last = all
	return all, nil
}
