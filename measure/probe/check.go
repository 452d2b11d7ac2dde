package probe

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"sublet/measure"
	"sublet/vnet"
)

// Options of a check.
type Options struct {
	Targets  []Target
	Duration time.Duration // of each measuring window; 0: DefaultDuration, longer for slow links
	WarmUp   time.Duration // of loads, before the window; 0: DefaultWarmUp, longer for slow links
	// Short is ShortDuration by default, and no TCP: what it repairs of a queue
	// comes to more than a hundredth of a second.
	Short   bool
	Streams int // TCP connections a direction; 0: DefaultStreams, one on slow links

	SkipTCP, SkipUDP, SkipLoss bool

	Progress func(phase string) // told what begins; may be nil

	// Carried is how many bytes of frames each direction was counted to deliver since
	// some time before the check, by those who carry them and not by the nodes;
	// may be nil.
	Carried func(ctx context.Context) (map[LinkDirection]uint64, error)
}

// Defaults of Options. Four streams share a link's queue without leaving it
// empty when one of them backs off. A queue of few frames leaves each of them
// too few in flight for fast retransmit, so there one stream is enough; and a
// window of few frames is uncertain by those at its ends, so slow links take
// more time: that of windowFrames, within mostDuration.
const (
	DefaultDuration = 3 * time.Second
	DefaultWarmUp   = time.Second
	DefaultStreams  = 4

	ShortDuration = time.Second

	slow         = vnet.Mbit
	windowFrames = 128
	mostDuration = 15 * time.Second
)

func (o Options) withDefaults() Options {
	frames := o.timeOfFrames()
	duration := DefaultDuration
	if o.Short {
		duration, o.SkipTCP = ShortDuration, true
	}
	if o.Duration <= 0 {
		o.Duration = max(duration, frames)
	}
	if o.WarmUp <= 0 {
		o.WarmUp = max(DefaultWarmUp, frames/2)
	}
	if o.Streams <= 0 {
		o.Streams = DefaultStreams
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// timeOfFrames is how long windowFrames of the largest take the slowest link.
func (o Options) timeOfFrames() (longest time.Duration) {
	for _, t := range o.Targets {
		if t.Alloc > 0 {
			bits := 8 * windowFrames * (t.MTU + measure.EthernetHeader)
			longest = max(longest, timeOf(float64(bits), t.Alloc))
		}
	}
	return min(longest, mostDuration)
}

// scope is what the verdict rests on.
func (o Options) scope() measure.Scope {
	return measure.Scope{TCP: !o.SkipTCP, UDP: !o.SkipUDP, Loss: !o.SkipLoss, Window: o.Duration}
}

// Check measures every target, all at once, and judges what was promised on
// it. A link whose probes were short of a processor is not measured; one that
// cannot be measured for another reason is not ok, and says why; an error is only
// returned for a request that makes no sense or a context that ended. The
// verdict's time is left to the caller. Whatever happens it ends, within about
// 5 windows and half a minute if no phase is repeated.
func Check(ctx context.Context, l vnet.Lease, start Starter, opt Options) (vnet.Verdict, error) {
	if len(opt.Targets) == 0 {
		return vnet.Verdict{}, fmt.Errorf("check %s: no links to measure", l.ID())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &check{opt: opt.withDefaults(), trials: newTrials(opt.Targets), run: newRun()}
	c.start(ctx, start)
	defer c.close()
	before := c.carried(ctx)
	c.phases(ctx)
	c.witness(before, c.carried(ctx))
	if err := ctx.Err(); err != nil {
		return vnet.Verdict{}, fmt.Errorf("check %s: %w", l.ID(), err)
	}
	return c.verdict(l), nil
}

// check is the state of a Check.
type check struct {
	opt      Options
	run      uint64
	epoch    uint32
	trials   []*trial
	sessions map[string]*session // by node; only those that started
}

// newRun draws the number that packets of this check carry, never 0.
func newRun() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint64(b[:]) | 1
}

// starters bounds how many probes are being started at a time.
const starters = 16

// start starts a probe in every node that has a link.
func (c *check) start(ctx context.Context, start Starter) {
	c.opt.Progress("start probes")
	c.sessions = make(map[string]*session)
	var mu sync.Mutex
	var starting sync.WaitGroup
	slots := make(chan struct{}, starters)
	for _, node := range c.nodes() {
		starting.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s, err := newSession(ctx, node, start)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				c.lose(node, err)
				return
			}
			c.sessions[node] = s
		})
	}
	starting.Wait()
}

// nodes lists the nodes that targets touch.
func (c *check) nodes() []string {
	var nodes []string
	seen := make(map[string]bool)
	for _, t := range c.trials {
		for _, node := range [2]string{t.From, t.To} {
			if !seen[node] {
				seen[node] = true
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

// lose fails the trials of a node whose probe is gone.
func (c *check) lose(node string, err error) {
	for _, t := range c.trials {
		if t.From == node || t.To == node {
			t.fail(err.Error())
		}
	}
}

// close ends all probes: their input ends.
func (c *check) close() {
	var errs []error
	for _, s := range c.sessions {
		errs = append(errs, s.pipe.Close())
	}
	_ = errors.Join(errs...) // a probe that is already gone is gone
}

func (c *check) verdict(l vnet.Lease) vnet.Verdict {
	v := vnet.Verdict{Network: l.ID().Network, Outcome: vnet.Kept}
	for _, t := range c.trials {
		link := t.verdict(c.opt.scope())
		v.Links = append(v.Links, link)
		if v.Outcome == vnet.Kept || link.Outcome == vnet.Broken {
			v.Outcome = link.Outcome
		}
	}
	v.OK = v.Outcome == vnet.Kept
	return v
}
