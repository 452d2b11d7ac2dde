package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// Servers that share a store compare their clocks, since windows begin and end by the
// clock of the one that leads.
const (
	// clockBound is by how much clocks may differ, beside what asking took.
	clockBound = time.Second
	// compareEvery is how often clocks are compared, and askClock how long an answer may take.
	compareEvery = time.Second
	askClock     = time.Second
	// clockField is the field of an answer of /healthz in which a server says what its clock is.
	clockField = "Sublet-Clock"
)

// errClock: this server's clock differs from what most servers agree on.
var errClock = errors.New("this server's clock is wrong")

// clocks is the time that most servers agree on. Between two comparisons it goes on by a
// clock that nobody sets, so a clock that is set counts only once others agree with it.
type clocks struct {
	wall func() time.Time // of this machine

	mu       sync.Mutex
	base     time.Time // what was agreed on
	since    time.Time // when that was, with the reading of the clock that nobody sets
	apart    map[string]time.Duration
	wrong    error
	compared bool
	changed  chan struct{} // closed and replaced when wrong or compared is another
}

// apart is by how much another clock is ahead of this one, and what of that may be due to
// asking.
type apart struct{ by, unsure time.Duration }

func (a apart) differs(from apart) bool {
	return (a.by - from.by).Abs() > clockBound+a.unsure+from.unsure
}

func newClocks(wall func() time.Time) *clocks {
	return &clocks{wall: wall, base: wall().Round(0), since: time.Now(), changed: make(chan struct{})}
}

// now is the time that most agree on.
func (c *clocks) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base.Add(time.Since(c.since))
}

// error says why this server's clock is wrong; nil: it is not.
func (c *clocks) error() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong
}

// agreed is what more than half of n servers take the time to be, this one's clock being
// at zero; all are the others that answered.
func agreed(n int, all map[string]apart) (at apart, most bool) {
	list := []apart{{}} // this one first: what is within the bound needs no change
	for _, a := range all {
		list = append(list, a)
	}
	slices.SortStableFunc(list[1:], func(a, b apart) int { return cmp.Compare(a.unsure, b.unsure) })
	for _, one := range list {
		with := 0
		for _, other := range list {
			if !one.differs(other) {
				with++
			}
		}
		if 2*with > n {
			return one, true
		}
	}
	return apart{}, false
}

// judge takes in what n servers, this one among them, say of the time. Where no more than
// half of them agree, a clock that was set does not count, whoever is right.
func (c *clocks) judge(n int, all map[string]apart) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apart = map[string]time.Duration{}
	some := false
	for name, a := range all {
		if c.apart[name] = 0; a.differs(apart{}) {
			c.apart[name], some = a.by, true
		}
	}
	was := c.wrong
	at, most := agreed(n, all)
	switch {
	case most && at == apart{}:
		c.wrong = nil
	case most:
		c.wrong = fmt.Errorf("%w: it is %s %s what most servers agree on: set it, such as by NTP", errClock, at.by.Abs().Round(time.Millisecond), direction(-at.by))
	case !some:
		c.wrong = nil
	}
	if wall := c.wall().Add(at.by); most || wall.Sub(c.base.Add(time.Since(c.since))).Abs() <= clockBound {
		c.base, c.since = wall.Round(0), time.Now()
	}
	if (was == nil) != (c.wrong == nil) || !c.compared {
		c.compared = true
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

func direction(by time.Duration) string {
	if by > 0 {
		return "ahead of"
	}
	return "behind"
}

// right waits until this server's clock was compared and is not wrong; what it gives ends
// when that is over.
func (c *clocks) right(ctx context.Context) (context.Context, context.CancelFunc) {
	for {
		c.mu.Lock()
		fit, changed := c.compared && c.wrong == nil, c.changed
		c.mu.Unlock()
		if fit || ctx.Err() != nil {
			within, end := context.WithCancelCause(ctx)
			go c.endWhenWrong(within, end)
			return within, func() { end(nil) }
		}
		pause(ctx, compareEvery, changed)
	}
}

func (c *clocks) endWhenWrong(ctx context.Context, end context.CancelCauseFunc) {
	for ctx.Err() == nil {
		c.mu.Lock()
		wrong, changed := c.wrong, c.changed
		c.mu.Unlock()
		if wrong != nil {
			end(wrong)
			return
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// differ are the servers whose clocks differ from this one's, and by how much they are
// ahead; 0: they do not. One that is not there did not answer.
func (c *clocks) differ() map[string]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apart
}

// Now is the time that most of the servers agree on.
func (f *Front) Now() time.Time { return f.clocks.now() }

// Right waits until this server's clock is not wrong, as far as others can tell. What it
// gives ends with it, for which its cause is the reason.
func (f *Front) Right(ctx context.Context) (context.Context, context.CancelFunc) {
	return f.clocks.right(ctx)
}

// CompareClocks compares this server's clock with the others' until ctx ends.
func (f *Front) CompareClocks(ctx context.Context) {
	every := time.NewTicker(compareEvery)
	defer every.Stop()
	for was := error(nil); ; {
		f.compare(ctx)
		was = f.sayWrong(was)
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// sayWrong writes to the log when this server's clock begins to be wrong, and when it is
// no more.
func (f *Front) sayWrong(was error) error {
	wrong := f.clocks.error()
	switch {
	case wrong != nil && was == nil:
		f.log.Warn("another server had better lead", slog.Any("because", wrong))
	case wrong == nil && was != nil:
		f.log.Info("this server's clock is right again")
	}
	return wrong
}

// compare asks all others once. Who they are is not known while the store cannot be read:
// then nothing is taken to be different.
func (f *Front) compare(ctx context.Context) {
	if !f.asks {
		f.clocks.judge(1, nil)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askClock)
	defer cancel()
	servers, err := f.cluster.Servers(ctx)
	if err != nil {
		return
	}
	all := map[string]apart{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, s := range servers {
		if s.Name == f.cluster.Name() || s.Address == "" {
			continue
		}
		asking.Go(func() {
			if a, err := f.ask(ctx, s.Address); err == nil {
				mu.Lock()
				defer mu.Unlock()
				all[s.Name] = a
			}
		})
	}
	asking.Wait()
	f.clocks.judge(len(servers), all)
	f.tellClocks()
}

// ask compares this server's clock with another one's.
func (f *Front) ask(ctx context.Context, address string) (a apart, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return a, err
	}
	asked, sent := f.clocks.wall().Round(0), time.Now()
	answer, err := f.passing.RoundTrip(request)
	if err != nil {
		return a, err
	}
	took := time.Since(sent)
	_, _ = io.CopyN(io.Discard, answer.Body, 1024) // else the connection is not used again
	answer.Body.Close()
	said, err := time.Parse(time.RFC3339Nano, answer.Header.Get(clockField))
	return apart{by: said.Sub(asked.Add(took / 2)), unsure: took / 2}, err
}

// tellClocks makes it an event of the operator's when a server's clock begins to differ
// from the one of the server that leads, and when it does no more.
func (f *Front) tellClocks() {
	t := f.leading()
	if t == nil || f.clocks.error() != nil { // else all others would be said to differ
		return
	}
	for name, by := range f.clocks.differ() {
		if (by != 0) == t.apart[name] {
			continue
		}
		h := vnet.Happening{Time: t.server.now(), Kind: "server", What: name, State: "clock agrees"}
		if t.apart[name] = by != 0; by != 0 {
			h.State, h.Why = "clock differs", fmt.Sprintf("%s %s that of %s", by.Abs().Round(time.Millisecond), direction(by), f.cluster.Name())
		}
		t.server.happens(h)
	}
}

// clocksOf adds to a list of servers what is known of their clocks.
func (s *Server) clocksOf(servers []api.Server) {
	if s.apart == nil {
		return
	}
	differ := s.apart()
	for i := range servers {
		by, known := differ[servers[i].Name]
		if known || servers[i].Leads {
			ahead := by.Seconds()
			servers[i].ClockAhead = &ahead
		}
	}
}
