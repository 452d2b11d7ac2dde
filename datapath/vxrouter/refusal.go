package vxrouter

import (
	"fmt"
	"reflect"
	"time"
)

// Daemons that do not take what their tenant wrote are told it again after a
// pause, twice as long each time: telling it restarts them.
const (
	firstPause   = 10 * time.Second
	longestPause = 10 * time.Minute
)

// refusal is what a router's daemons did not take.
type refusal struct {
	want  daemons
	err   error
	until time.Time
	pause time.Duration
}

// refusal is the error of the last try, while the same is not tried again.
func (p *Part) refusal(key string, want daemons) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, refused := p.refused[key]
	wait := time.Until(r.until)
	if !refused || wait <= 0 || !reflect.DeepEqual(r.want, want) {
		return nil
	}
	return fmt.Errorf("%w (told again in %s)", r.err, wait.Round(time.Second))
}

// refuse notes what daemons did not take, and returns why.
func (p *Part) refuse(key string, want daemons, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := firstPause
	if last, again := p.refused[key]; again && reflect.DeepEqual(last.want, want) {
		pause = min(2*last.pause, longestPause)
	}
	p.refused[key] = refusal{want, err, time.Now().Add(pause), pause}
	return err
}

// accept forgets what a router's daemons did not take.
func (p *Part) accept(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.refused, key)
}
