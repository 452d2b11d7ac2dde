// Package feedback gives functions of service chains the processor time that the
// rates of their chains take: a loop around the law of agent/control, which reads
// what the chains' hops and the functions' control groups counted, and sets quotas.
package feedback

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sublet/agent/control"
	"sublet/datapath/chain"
	"sublet/datapath/nsh"
	"sublet/plan"
	"sublet/vnet"
)

// Times of the loop. Shares are written again now and then: a group that was made
// anew has the most that it may get.
const (
	interval = 100 * time.Millisecond // five periods of a quota
	rewrite  = 5 * time.Second
	freeFor  = time.Second     // for which what was read of the machine is taken for true
	retry    = 5 * time.Second // after what could not be read
)

// Group is the control group of a function's node.
type Group interface {
	Used() (time.Duration, error)
	Throttled() (int64, error)
	SetQuota(quota, period time.Duration) error
}

// Loop holds the rates of the chains of one host.
type Loop struct {
	Held  func() ([]chain.Held, error)
	Group func(namespace string) Group
	// Free is how many cores of the machine no node has; nil: none. Functions that need
	// more than is booked for them get of these.
	Free func() float64
	Log  *slog.Logger

	mu     sync.Mutex
	leases map[vnet.LeaseID]*lease
	free   float64 // read at asked
	asked  time.Time
}

// Run works until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		held, err := l.Held()
		if err == nil {
			l.step(time.Now(), held)
			continue
		}
		l.Log.Warn("counters of chains cannot be read: processor time of functions stays as it is", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// Short says why a chain has less than its rate for want of processor time.
func (l *Loop) Short(id vnet.LeaseID, chain string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.leases[id]; own != nil {
		return own.short[chain]
	}
	return ""
}

func (l *Loop) step(now time.Time, held []chain.Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.leases
	l.leases = make(map[vnet.LeaseID]*lease)
	for _, h := range held {
		own, name := before[h.Lease], signature(h.Chains)
		if own == nil || own.signature != name {
			own = l.begin(h.Chains, name)
		}
		l.leases[h.Lease] = own
		if own.law != nil {
			own.law.Lend(max(0, own.borrowed()+l.freeAt(now)))
			l.free -= own.step(now, h)
		}
	}
}

// freeAt is how many cores no node has.
func (l *Loop) freeAt(now time.Time) float64 {
	if l.Free != nil && now.Sub(l.asked) >= freeFor {
		l.free, l.asked = l.Free(), now
	}
	return l.free
}

// signature is what the law of a lease depends on.
func signature(c plan.Chains) string {
	text, _ := json.Marshal([]any{c.Functions, c.Hops}) // of plain values
	return string(text)
}

// lease is the law of a lease's functions on this host.
type lease struct {
	signature string
	law       *control.Controller
	booked    float64 // cores, for all functions
	functions []function
	chains    []promise
	at        time.Time // of the last sample
	written   time.Time // when quotas were set
	short     map[string]string
	log       *slog.Logger
}

type function struct {
	name      string
	group     Group
	used      time.Duration
	throttled int64
}

// promise is a chain that passes some of the functions.
type promise struct {
	name string
	hops []int // of the item
	via  []int // functions, one a hop
	last []nsh.Counts
	// waiting is what came to each hop and did not come back since its function last
	// had time to spare, in packets.
	waiting []float64
}

// begin makes the law of an item. Functions begin with the most that they may get,
// which is booked, and give back what they do not need.
func (l *Loop) begin(c plan.Chains, name string) *lease {
	own := &lease{signature: name, log: l.Log.With("lease", c.Lease.String())}
	var functions []control.Function
	for _, f := range c.Functions {
		if a := f.Auto; a != nil {
			most := float64(a.Most) / float64(vnet.Core)
			own.booked += most
			own.functions = append(own.functions, function{name: f.Name, group: l.Group(a.Node)})
			functions = append(functions, control.Function{
				Name: f.Name, Profile: control.Profile{Fixed: float64(a.Fixed) / 1e12, PerByte: float64(a.PerByte) / 1e15}, Share: most, Most: most, Limited: true,
			})
		}
	}
	own.promises(c)
	var chains []control.Chain
	for _, p := range own.chains {
		chains = append(chains, control.Chain{Name: p.name, Rate: float64(c.Hops[p.hops[0]].Rate), Priority: c.Hops[p.hops[0]].Priority, Via: p.via})
	}
	law, err := control.New(functions, chains, own.booked)
	if err != nil {
		own.log.Error("processor time of functions stays as it is", "err", err)
		return own
	}
	own.law = law
	return own
}

// promises are the chains of an item in the order in which packets pass.
func (own *lease) promises(c plan.Chains) {
	for i, h := range c.Hops {
		via := slices.IndexFunc(own.functions, func(f function) bool { return f.name == h.Function })
		if via < 0 || h.Rate == 0 {
			continue
		}
		j := slices.IndexFunc(own.chains, func(p promise) bool { return c.Hops[p.hops[0]].Path == h.Path })
		if j < 0 {
			j = len(own.chains)
			own.chains = append(own.chains, promise{name: h.Chain})
		}
		own.chains[j].hops, own.chains[j].via = append(own.chains[j].hops, i), append(own.chains[j].via, via)
		own.chains[j].waiting = append(own.chains[j].waiting, 0)
	}
}

// given is what the functions have, in cores, and borrowed what of it is not booked.
func (own *lease) given() (sum float64) {
	for _, share := range own.law.Shares() {
		sum += share
	}
	return sum
}

func (own *lease) borrowed() float64 { return max(0, own.given()-own.booked) }

// step takes a sample, sets what follows from it, and says how much more is given.
func (own *lease) step(now time.Time, h chain.Held) float64 {
	first, seconds := own.at.IsZero(), now.Sub(own.at).Seconds()
	samples, read := own.sample(h)
	if !read {
		own.at = time.Time{} // what is between is no sample
		return 0
	}
	own.at = now
	if first || seconds <= 0 {
		return 0
	}
	before := own.given()
	entered := make([]control.Count, len(own.chains))
	for j, p := range own.chains {
		entered[j] = samples[p.via[0]].Arrived[j]
	}
	if changed := own.law.Step(seconds, entered, samples); !changed && now.Sub(own.written) < rewrite {
		return 0
	}
	own.written = now
	for i, share := range own.law.Shares() {
		if err := own.functions[i].group.SetQuota(control.Quota(share)); err != nil {
			own.log.Warn("processor time cannot be set", "function", own.functions[i].name, "err", err)
		}
	}
	own.tell()
	return own.given() - before
}

// tell logs what is short when it becomes so.
func (own *lease) tell() {
	short := make(map[string]string)
	for _, s := range own.law.Shortages() {
		short[s.Chain] = s.Why
		if own.short[s.Chain] != s.Why {
			own.log.Warn("a chain is short of processor time", "chain", s.Chain, "cause", s.Why, "can_have_bps", int64(s.Rate))
		}
	}
	own.short = short
}

// sample is what was counted since the last one; false: something cannot be read, or
// began anew.
func (own *lease) sample(h chain.Held) ([]control.Sample, bool) {
	samples, ok := make([]control.Sample, len(own.functions)), true
	throttled := make([]bool, len(own.functions))
	for i := range own.functions {
		f := &own.functions[i]
		used, err := f.group.Used()
		times, missing := f.group.Throttled()
		if err != nil || missing != nil {
			return nil, false // it is being made, or removed
		}
		ok = ok && used >= f.used && times >= f.throttled
		samples[i] = control.Sample{
			Used: (used - f.used).Seconds(), Arrived: make([]control.Count, len(own.chains)), Served: make([]control.Count, len(own.chains)),
		}
		throttled[i] = times > f.throttled
		f.used, f.throttled = used, times
	}
	for j := range own.chains {
		p := &own.chains[j]
		counts := make([]nsh.Counts, len(p.hops))
		for k, hop := range p.hops {
			if hop >= len(h.Counts) {
				return nil, false
			}
			counts[k] = h.Counts[hop]
			if p.last == nil || counts[k].Packets < p.last[k].Packets || counts[k].Returned < p.last[k].Returned {
				ok = false
				continue
			}
			arrived := control.Count{Packets: float64(counts[k].Packets - p.last[k].Packets), Bytes: float64(counts[k].Bytes - p.last[k].Bytes)}
			served := control.Count{Packets: float64(counts[k].Returned - p.last[k].Returned)}
			if arrived.Packets > 0 {
				served.Bytes = served.Packets * arrived.Bytes / arrived.Packets
			}
			i := p.via[k]
			samples[i].Arrived[j], samples[i].Served[j] = arrived, served
			if !throttled[i] { // what it drops it wants to
				p.waiting[k] = 0
			} else if p.waiting[k] += arrived.Packets - served.Packets; p.waiting[k] > queued {
				samples[i].Dropped += max(0, arrived.Packets-served.Packets)
			}
		}
		p.last = counts
	}
	return samples, ok
}

// queued is what may wait in sockets and interfaces before a function, in packets.
const queued = 512
