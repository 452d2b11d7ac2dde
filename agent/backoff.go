package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sublet/plan"
)

// A step that failed after taking longer than slow is not tried again for
// pauseShare times as long as it took, twice as long each further time, at
// most longestPause. What a tenant can make hang, such as a daemon of their
// router that they stop, so costs others little.
const (
	slow         = time.Second
	pauseShare   = 10
	longestPause = 10 * time.Minute
)

// withBackoff makes parts wait before they try again what failed slowly.
// Another wish for the same item is tried at once, and deletion always.
func withBackoff(parts []Part) (waiting []Part) {
	for _, p := range parts {
		waiting = append(waiting, &backoff{Part: p, failed: make(map[string]failure)})
	}
	return waiting
}

// backoff is a part that remembers what failed slowly.
type backoff struct {
	Part
	mu     sync.Mutex
	failed map[string]failure // by kind and key of the item
}

type failure struct {
	wish  string
	err   error
	until time.Time
	pause time.Duration
}

// Do makes one change, or repeats the error of the last try.
func (p *backoff) Do(ctx context.Context, s plan.Step) error {
	if s.Op == plan.Delete {
		p.note(s, 0, nil)
		return p.Part.Do(ctx, s)
	}
	began := time.Now()
	if f, waits := p.last(s); waits && began.Before(f.until) {
		return fmt.Errorf("%w (tried again in %s)", f.err, f.until.Sub(began).Round(time.Second))
	}
	err := p.Part.Do(ctx, s)
	if ctx.Err() == nil {
		p.note(s, time.Since(began), err)
	}
	return err
}

// last is how the same wish failed, if it did.
func (p *backoff) last(s plan.Step) (failure, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.failed[keyOf(s)]
	return f, ok && f.wish == s.Item.String()
}

func (p *backoff) note(s plan.Step, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, wish := keyOf(s), s.Item.String()
	if err == nil || took < slow {
		delete(p.failed, key)
		return
	}
	pause := pauseShare * took
	if f, ok := p.failed[key]; ok && f.wish == wish {
		pause = max(pause, 2*f.pause)
	}
	pause = min(pause, longestPause)
	p.failed[key] = failure{wish: wish, err: err, until: time.Now().Add(pause), pause: pause}
}

func keyOf(s plan.Step) string { return string(s.Item.Kind()) + " " + s.Item.Key() }
