package openflow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
)

// A process is started, or told of other slices, beside the agent, which never waits for
// it: a tenant may make theirs die as often as they like. The first try is at once. One
// that fails, or whose process ends within steady, is followed by a pause that is twice as
// long each time.
const (
	steady     = time.Minute
	firstPause = time.Second
	mostPause  = 2 * time.Minute
	// endings are tries in a row that end by themselves after which a process begins with
	// nothing: it may be what the one before has left that ends it.
	endings = 2
	// abreast are processes that are started at once on a host, each of which makes room for
	// another after headStart.
	abreast   = 4
	headStart = time.Second
)

// coming is a switch that is on its way to what is wished.
type coming struct {
	wish   plan.Switch
	repair bool // it was so before
	cancel context.CancelFunc
	tried  chan error    // what came of the first try
	done   chan struct{} // closed when nothing works on it any more

	ended int    // tries in a row that ended by themselves
	lost  string // why it began with nothing; "": it did not

	err error // of the last try; Part.mu is its lock
}

// fate is how a switch's processes have fared.
type fate struct {
	fell  int       // that did not come, or ended within steady, in a row
	since time.Time // when the last one came; zero: it did not, or its end is counted
}

// pause is how long it is waited before the next try.
func (f fate) pause() time.Duration {
	if f.fell < 2 {
		return 0
	}
	return min(firstPause<<min(f.fell-2, 16), mostPause)
}

// after is the fate of a switch that is to come; repair: its process has ended.
func (f fate) after(repair bool) fate {
	if !repair || !f.since.IsZero() && time.Since(f.since) > steady {
		f.fell = 0
	}
	if f.since = (time.Time{}); repair {
		f.fell++
	}
	return f
}

// begin has a switch come to what is wished; repair: it was so before. What is on its way to something else
// is given up.
func (p *Part) begin(s plan.Switch, repair bool) *coming {
	p.end(s.Key())
	ctx, cancel := context.WithCancel(p.life)
	c := &coming{wish: s, repair: repair, cancel: cancel, tried: make(chan error, 1), done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fates[s.Key()] = p.fates[s.Key()].after(repair)
	p.coming[s.Key()] = c
	go p.bring(ctx, c)
	return c
}

// end gives up what is on its way of a switch.
func (p *Part) end(key string) {
	if c := p.onItsWay(key); c != nil {
		c.cancel()
		<-c.done
		p.mu.Lock()
		delete(p.coming, key)
		p.mu.Unlock()
	}
}

func (p *Part) onItsWay(key string) *coming {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.coming[key]
}

// wished is what a switch is to be, as far as it is known here.
func (p *Part) wished(key string) plan.Switch {
	if c := p.onItsWay(key); c != nil {
		return c.wish
	}
	return p.written(key).Switch
}

// same says whether two are one and the same wish.
func same(a, b plan.Switch) bool {
	return a.OpenFlow != nil && b.OpenFlow != nil && a.String() == b.String() && process{a}.runsAs(process{b})
}

// bring tries until the switch is as wished.
func (p *Part) bring(ctx context.Context, c *coming) {
	defer close(c.done)
	defer c.cancel()
	for p.rest(ctx, c) {
		err := p.attempt(ctx, c)
		if ctx.Err() != nil {
			return
		}
		p.note(c, err)
		select {
		case c.tried <- err:
		default:
		}
		p.changed()
		if err == nil {
			return
		}
	}
}

// rest waits until a switch may be tried again; false: never.
func (p *Part) rest(ctx context.Context, c *coming) bool {
	p.mu.Lock()
	pause := p.fates[c.wish.Key()].pause()
	p.mu.Unlock()
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// note takes down what came of a try.
func (p *Part) note(c *coming, err error) {
	key := c.wish.Key()
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.fates[key]
	if c.err = err; err != nil {
		f.fell++
		p.fates[key] = f
		return
	}
	f.since = time.Now()
	p.fates[key] = f
	delete(p.coming, key)
	if c.repair {
		was := c.wish
		was.OpenFlow = &plan.OpenFlow{Lost: c.lost}
		p.mended = append(p.mended, plan.Step{Op: plan.Set, Item: c.wish, Was: was})
	}
}

// attempt makes a switch as wished once: its process is told, or started anew with the
// least weight and no limit of processor time until it answers.
func (p *Part) attempt(ctx context.Context, c *coming) error {
	s := c.wish
	if p.runsAs(s) {
		return errors.Join(p.reslice(ctx, s), p.limit(s), p.keep(s))
	}
	defer p.slot(ctx)()
	g, free, o := p.group(s.Key()), s, *s.OpenFlow
	o.CPU, free.OpenFlow = 0, &o
	err := g.Remove()
	if err == nil && c.ended >= endings {
		err = p.forgetOf(c)
	}
	if err == nil {
		err = p.limit(free)
	}
	if err != nil {
		return err
	}
	if err := p.start(ctx, s); err != nil {
		if c.ended++; errors.Is(err, kernel.ErrSilent) {
			c.ended = 0
		}
		if ctx.Err() == nil {
			err = errors.Join(err, g.Remove())
		}
		return err
	}
	return errors.Join(p.limit(s), p.keep(s))
}

// forgetOf has a switch begin with nothing, and takes down why.
func (p *Part) forgetOf(c *coming) error {
	c.ended = 0
	if _, err := os.Stat(p.file(c.wish.Key(), "state")); err == nil {
		p.mu.Lock()
		c.lost = c.err.Error()
		p.mu.Unlock()
	}
	return p.forget(c.wish.Key())
}

// slot waits until a process may be started; what it returns makes room for another.
func (p *Part) slot(ctx context.Context) (release func()) {
	select {
	case <-ctx.Done():
		return func() {}
	case p.slots <- struct{}{}:
	}
	early := time.AfterFunc(headStart, func() { <-p.slots })
	return func() {
		if early.Stop() {
			<-p.slots
		}
	}
}

func (p *Part) changed() {
	if p.Changed != nil {
		p.Changed()
	}
}

// Problems are the switches that are on their way, by key.
func (p *Part) Problems() (list report.Errors) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, c := range p.coming {
		e := report.ItemError{Kind: plan.KindOpenFlow, Key: key, Lease: c.wish.Lease, Op: plan.Await, Text: fmt.Sprintf("switch %s: its process is starting", c.wish.Switch)}
		if c.err != nil {
			e.Op, e.Text = plan.Carry, fmt.Sprintf("switch %s: %v (tried again, less and less often)", c.wish.Switch, c.err)
		} else if fell := p.fates[key].fell; fell > 1 {
			e.Op, e.Text = plan.Carry, fmt.Sprintf("switch %s: its process ends again and again, perhaps for want of memory (started again, less and less often)", c.wish.Switch)
		}
		list = append(list, e)
	}
	list.Sort()
	return list
}

// Mended are the switches whose processes were started again since it was asked last.
func (p *Part) Mended() (steps []plan.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	steps, p.mended = p.mended, nil
	return steps
}

// wait waits for what comes of the first try.
func (c *coming) wait(ctx context.Context) error {
	select {
	case err := <-c.tried:
		return err
	case <-c.done:
		return fmt.Errorf("switch %s was changed meanwhile", c.wish.Key())
	case <-ctx.Done():
		return ctx.Err()
	}
}
