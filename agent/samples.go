package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sublet/plan"
	"sublet/report"
)

// Samples are read on request, at most once in sampleEvery for all requests of
// rounds. The last rounds are kept, ringBytes in all: of a host with a thousand
// link ends some seconds, of one with ten some minutes.
const (
	sampleEvery = 900 * time.Millisecond // a request every second gets a new round each time
	ringBytes   = 8 << 20
)

// rounds are the last readings of samples.
type rounds struct {
	mu   sync.Mutex // also held while parts are read, so that one reading serves all requests that wait
	ring *report.Ring[report.Round]
	read time.Time
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
	r := &a.rounds
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ring == nil {
		r.ring = report.NewRing[report.Round](ringBytes)
	}
	if time.Since(r.read) > sampleEvery {
		now := time.Now()
		samples, _ := a.Samples(ctx, report.Scope{}) // errors stand among them
		if ctx.Err() != nil {                        // the reading was broken off
			return nil
		}
		round := report.Round{Number: r.ring.Last() + 1, At: now, Samples: samples}
		r.ring.Add(round, round.Size())
		r.read = now
	}
	if last := r.ring.Last(); after == 0 || after > last { // after > last: of an earlier agent
		after = last - 1
	}
	list, _ := r.ring.After(after)
	for i := range list {
		list[i].Samples = of.Filter(list[i].Samples)
	}
	return list
}
