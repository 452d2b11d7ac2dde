// Package pin puts functions of service chains and OpenFlow switches, which are
// processes, on cores: a loop around the placements of agent/control/cores, which
// reads what they use and what cores spend in interrupts, and sets where each may run.
//
//	use of each process --+                        +--> affinity of its threads
//	interrupts of cores --+--> agent/control/cores-+--> what samples tell
//	others' pinned use ---+
//
// Affinities outlive the agent. One that begins anew finds them and moves nothing
// that is well where it is.
package pin

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sublet/vnet"
)

// Times of the loop. What was moved rests for settle, and twice as long after each
// further move, so that loads that follow processes from core to core move nothing for
// ever.
const (
	interval    = 2 * time.Second
	settle      = 4 * time.Second
	longest     = 64 * time.Second
	measuredFor = 2 // samples before a process is put on a core; before, the kernel's scheduler has it
)

// Bounds of what is moved, in cores.
const (
	gain     = 0.05 // by which the fullest core has to become emptier
	least    = 0.01 // that a process counts for at least, so that idle ones are spread
	whole    = 0.9  // of which a process without a limit may want several cores
	restless = 2    // samples in which several of its threads were to run
)

// Group is the control group of a process.
type Group interface {
	Processes() ([]int, error)
	Used() (time.Duration, error)
	CPU() int64
}

// Process is a function's node or a switch.
type Process struct {
	Key   string // of its namespace
	Lease vnet.LeaseID
	Group Group
}

// Machine is what the loop reads of a host's processors, and sets.
type Machine interface {
	// Cores lists those that may be used.
	Cores() ([]int, error)
	// Interrupts is the time that each core has spent in interrupts, soft ones too.
	Interrupts() (map[int]time.Duration, error)
	// Others is the time that each core has spent on threads that may run on it alone,
	// by thread, without those of some processes.
	Others(but map[int]bool) (map[int]map[int]time.Duration, error)
	// Pin lets a process, with all of its threads, run on some cores alone.
	Pin(process int, cores []int) error
	// Pinned is the one core that a process may run on; false: there are several.
	Pinned(process int) (int, bool)
	// Ready is how many threads of processes want to run now.
	Ready(processes []int) int
}

// Place is where a process is, and what it uses.
type Place struct {
	Core int
	Used vnet.CPU
}

// Loop keeps the processes of a host on cores.
type Loop struct {
	Processes func() ([]Process, error)
	Machine   Machine
	Log       *slog.Logger

	mu     sync.Mutex
	placed map[string]*process // by key
	cores  map[int]*core
	at     time.Time // of the last sample
	rests  time.Time // until which nothing is moved
	rest   time.Duration
	said   string
}

type process struct {
	Process
	used    time.Duration
	weight  float64 // of a core
	samples int
	core    int // none: not put anywhere
	wide    bool
	ready   int // samples in a row in which several threads wanted to run
}

const none = -1

// core is one with what it has beside the processes of the loop.
type core struct {
	interrupts time.Duration
	others     map[int]time.Duration
	soft, busy float64
}

// Run works until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	for {
		// Agents of several hosts on one machine do not look at the same time.
		wait := interval + time.Duration(rand.Int64N(int64(interval/4)))
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		why := ""
		if err := l.step(time.Now()); err != nil {
			why = err.Error()
		}
		if why != "" && why != l.said {
			l.Log.Warn("functions and switches stay on the cores that they are on", "err", why)
		}
		l.said = why
	}
}

// Of is where a process is; false: it is on no core of its own.
func (l *Loop) Of(key string) (Place, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.placed[key]
	if p == nil || p.core == none {
		return Place{}, false
	}
	return Place{Core: p.core, Used: vnet.CPU(p.weight*float64(vnet.Core) + 0.5)}, true
}

// step measures, decides and sets.
func (l *Loop) step(now time.Time) error {
	list, err := l.Processes()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	seconds, first := now.Sub(l.at).Seconds(), l.at.IsZero()
	l.at = now
	pids := l.measure(list, seconds)
	if len(l.placed) == 0 {
		l.cores, l.at = nil, time.Time{}
		return nil
	}
	own := make(map[int]bool)
	for _, list := range pids {
		for _, pid := range list {
			own[pid] = true
		}
	}
	cores, err := l.load(own, seconds)
	if err != nil || first {
		return err
	}
	l.place(now, cores)
	return l.set(pids, cores)
}

// measure takes a sample of each process; the first one has nothing to compare with.
func (l *Loop) measure(list []Process, seconds float64) (pids map[string][]int) {
	before := l.placed
	l.placed, pids = make(map[string]*process), make(map[string][]int)
	for _, one := range list {
		running, err := one.Group.Processes()
		used, unread := one.Group.Used()
		if err != nil || unread != nil || len(running) == 0 {
			continue // it is being made, or removed
		}
		p := before[one.Key]
		if p == nil {
			p = &process{core: l.found(running), used: used}
		} else if p.samples++; used >= p.used && seconds > 0 { // else some of it has ended
			p.sample((used - p.used).Seconds() / seconds)
		}
		p.Process, p.used = one, used
		p.widen(l.Machine, running)
		l.placed[one.Key], pids[one.Key] = p, running
	}
	return pids
}

// found is the core on which an agent before has put a process.
func (l *Loop) found(running []int) int {
	if core, ok := l.Machine.Pinned(running[0]); ok {
		return core
	}
	return none
}

// sample adds a use to the weight, which is a mean of which the last one is a half.
func (p *process) sample(use float64) {
	if p.samples == 1 {
		p.weight = use
	}
	p.weight = (p.weight + use) / 2
}

// widen says whether a process may use several cores: one that was promised more than
// one, and one without a limit whose threads want to run side by side.
func (p *process) widen(m Machine, running []int) {
	limit := p.Group.CPU()
	switch {
	case limit > int64(vnet.Core):
		p.wide = true
	case limit > 0:
		p.wide = false
	case p.weight < whole || p.wide:
		p.ready = 0
	case m.Ready(running) > 1:
		p.ready++
		p.wide = p.ready >= restless
	default:
		p.ready = 0
	}
	p.wide = p.wide || limit == 0 && p.weight > 1+gain
}

// measured are the processes that can be put on a core, in the order of their keys.
func (l *Loop) measured() (list []*process) {
	for _, p := range l.placed {
		if p.wide {
			p.core = none
		} else if p.core != none || p.samples >= measuredFor {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *process) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return list
}

// place decides where processes are to be.
func (l *Loop) place(now time.Time, cores []int) {
	list := l.measured()
	if len(cores) < 2 {
		for _, p := range list {
			p.core = none // there is nothing to choose
		}
		return
	}
	weights, at := make([]float64, len(list)), make([]int, len(list))
	for i, p := range list {
		weights[i], at[i] = max(p.weight, least), slices.Index(cores, p.core)
	}
	to, moved := decide(weights, l.busy(cores, list), at, !now.Before(l.rests))
	for i, p := range list {
		if cores[to[i]] != p.core {
			l.Log.Debug("a process is put on a core", "process", p.Key, "core", cores[to[i]], "uses", p.weight)
		}
		p.core = cores[to[i]]
	}
	switch {
	case moved:
		l.rest = min(max(2*l.rest, settle), longest)
		l.rests = now.Add(l.rest)
	case now.Sub(l.rests) > 2*l.rest:
		l.rest = 0
	}
}

// set lets threads run where they are to.
func (l *Loop) set(pids map[string][]int, cores []int) error {
	var failed error
	for key, p := range l.placed {
		where := cores
		if p.core != none {
			where = []int{p.core}
		}
		for _, pid := range pids[key] {
			if err := l.Machine.Pin(pid, where); err != nil {
				failed = err
			}
		}
	}
	return failed
}
