package emulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sublet/agent/iplbd"
	"sublet/datapath/iplb"
	"sublet/fabric"
	"sublet/fabric/spread"
	"sublet/lab"
	"sublet/plan"
)

// Damages by name: a link that both ends see go, a switch of which all links
// do, a link that swallows packets and tells nobody.
var Damages = []string{"cut", "switch", "silent"}

// Failure is what a damage under load did.
type Failure struct {
	Element  string // what was damaged
	Flows    int
	Affected int             // flows whose path had the element
	Outages  []time.Duration // of the affected: from when their path broke to when the last packet that was lost left
	Lost     int             // packets of the other flows
	Moved    int             // other flows that are on another path at the end
	Late     time.Duration
	Idle     float64
	Bin      time.Duration // of the series
	Rates    [2][]float64  // received, of affected and other flows, parts of what was sent, from Before before the damage on
	Before   time.Duration
}

// Watching of paths, as `sublet paths run` does it.
type Watching struct {
	Every time.Duration
	Lost  int // probes in a row
}

const (
	beforeDamage = time.Second
	afterDamage  = 4 * time.Second
	bin          = 100 * time.Millisecond
)

// Fail runs equal flows at a part of the wires' rate, with every host's paths
// kept by iplbd from OSPF, damages an element in the middle of the fabric, and
// mends it at the end.
func (f *Fabric) Fail(ctx context.Context, targets []int, n int, load float64, damage string, w Watching, settle time.Duration) (*Failure, error) {
	for _, h := range f.hosts {
		if err := h.clear(); err != nil {
			return nil, err
		}
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	daemons, err := f.daemons(running, &work, w)
	if err != nil {
		return nil, err
	}
	run, err := f.failing(targets, n, load, running, &work)
	if err != nil {
		return nil, err
	}
	defer run.close()
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	return f.damageUnder(ctx, run, daemons, damage, targets)
}

// silent is the log of what a host runs: what it did is measured.
var silent = slog.New(slog.DiscardHandler)

// daemons start what keeps every host's paths.
func (f *Fabric) daemons(ctx context.Context, work *sync.WaitGroup, w Watching) ([]*iplbd.Daemon, error) {
	var all []*iplbd.Daemon
	for _, h := range f.hosts {
		d := iplbd.New(h.name, h.table, silent)
		prober, err := iplb.NewProber(h.at, h.device)
		if err != nil {
			return nil, err
		}
		d.Probing = iplbd.Probing{Every: w.Every, Lost: w.Lost, Send: prober.Send}
		source := iplbd.OSPF{Dir: lab.FRRDir(f.testbed.Run, h.name), Choice: iplbd.Choice{Paths: 8, Stretch: 1, Mode: plan.PerFlow}, Log: silent}
		work.Go(func() { defer prober.Close(); d.Run(ctx) })
		work.Go(func() { source.Run(ctx, func(s []plan.Spread) { d.Want(ctx, s) }) })
		all = append(all, d)
	}
	return all, nil
}

// failing is the flows of such a run, and what became of every packet.
type failing struct {
	senders []*sender
	began   time.Time
	mu      sync.Mutex
	sent    [][][]time.Duration // when, by host, flow and packet
	got     [][][]time.Duration // when it arrived; 0: not
}

func (r *failing) close() {
	for _, s := range r.senders {
		s.close()
	}
}

func (f *Fabric) failing(targets []int, n int, load float64, ctx context.Context, work *sync.WaitGroup) (*failing, error) {
	r := &failing{began: time.Now()}
	f.run++
	rng := rand.New(rand.NewPCG(uint64(f.run), 1))
	tree := spread.Method{}
	for from, to := range targets {
		s, err := f.sender(from, to, spread.Same.Shares(n, rng), tree, rng)
		if err != nil {
			return nil, errors.Join(err, r.closed())
		}
		s.gap, s.trace = time.Duration(float64(s.gap)/load), func(flow int) uint32 { return r.leave(from, flow) }
		r.senders = append(r.senders, s)
		r.sent, r.got = append(r.sent, make([][]time.Duration, n)), append(r.got, make([][]time.Duration, n))
	}
	for i, h := range f.hosts {
		h.sink.reset(f.run)
		h.sink.trace(r.arrive)
		work.Go(func() {
			var counts atomic.Bool
			counts.Store(true)
			time.Sleep(r.senders[i].gap * time.Duration(i) / time.Duration(len(f.hosts)))
			r.senders[i].send(ctx, f.run, &counts)
			h.sink.trace(nil)
		})
	}
	return r, nil
}

func (r *failing) closed() error { r.close(); return nil }

// leave notes a packet, and gives it its number.
func (r *failing) leave(from, flow int) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[from][flow] = append(r.sent[from][flow], time.Since(r.began))
	r.got[from][flow] = append(r.got[from][flow], 0)
	return uint32(len(r.sent[from][flow]) - 1)
}

func (r *failing) arrive(from, flow int, number uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if from < len(r.got) && flow < len(r.got[from]) && int(number) < len(r.got[from][flow]) {
		r.got[from][flow][number] = time.Since(r.began)
	}
}

// damageUnder is the experiment, once all is settled.
func (f *Fabric) damageUnder(ctx context.Context, r *failing, daemons []*iplbd.Daemon, damage string, targets []int) (*Failure, error) {
	links, element, err := f.target(damage, targets)
	if err != nil {
		return nil, err
	}
	times, _ := readJiffies()
	if err := sleep(ctx, beforeDamage); err != nil {
		return nil, err
	}
	before, err := f.pathsOf(ctx, r, daemons) // as late as can be: flows are rearranged all the time
	if err != nil {
		return nil, err
	}
	how := lab.Cut
	if damage == "silent" {
		how = lab.Silent
	}
	broken := make(map[int]time.Duration)
	err = f.setLinks(links, how, func(l int) { broken[l] = time.Since(r.began) })
	err = cmp.Or(err, sleep(ctx, afterDamage))
	after, failed := f.pathsOf(ctx, r, daemons)
	if err := errors.Join(err, failed, f.setLinks(links, lab.Whole, func(int) {})); err != nil {
		return nil, err
	}
	result := f.judge(r, before, after, broken)
	result.Element = element
	result.Idle, _ = idleSince(times)
	return result, nil
}

// setLinks damages or mends links, one after another, and says before each
// which is next: to take a device down can wait for others' changes for tens
// of milliseconds.
func (f *Fabric) setLinks(links []int, d lab.Damage, next func(int)) error {
	var errs []error
	for _, l := range links {
		next(l)
		errs = append(errs, lab.SetWire(f.testbed.Run, f.sub, f.sub.Links[l].Name, d))
	}
	return errors.Join(errs...)
}

// pathsOf is the relays of every flow, by host and flow, in one word.
func (f *Fabric) pathsOf(ctx context.Context, r *failing, daemons []*iplbd.Daemon) ([][]string, error) {
	all := make([][]string, len(f.hosts))
	for i, h := range f.hosts {
		status, err := daemons[i].Ask(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask the paths of %s: %w", h.name, err)
		}
		table, err := iplb.Open(h.at, h.loop) // the daemon owns its own
		if err != nil {
			return nil, err
		}
		flows, err := table.AllFlows(0)
		table.Close()
		if err != nil {
			return nil, err
		}
		all[i] = make([]string, len(r.senders[i].flows))
		for j, c := range r.senders[i].flows {
			all[i][j] = pathOf(c.LocalAddr().String(), flows, status)
		}
	}
	return all, nil
}

// pathOf finds the flow that leaves from an address.
func pathOf(from string, flows map[netip.Prefix][]iplb.Flow, status iplbd.Status) string {
	for _, p := range status.Prefixes {
		for _, prefix := range append([]netip.Prefix{p.Prefix}, p.Also...) {
			for _, f := range flows[prefix] {
				if f.Source.String() == from && f.Path < len(p.Paths) {
					return fmt.Sprint(p.Paths[f.Path].Relays)
				}
			}
		}
	}
	return ""
}

// judge sorts flows by whether their path had one of the links, which broke at
// some times; all others' time is the first of these.
func (f *Fabric) judge(r *failing, before, after [][]string, broken map[int]time.Duration) *Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	bins := int((beforeDamage + afterDamage) / bin)
	result := &Failure{Bin: bin, Before: beforeDamage}
	var sent [2][]float64
	for side := range sent {
		sent[side], result.Rates[side] = make([]float64, bins), make([]float64, bins)
	}
	first := slices.Min(slices.Collect(maps.Values(broken)))
	for i, s := range r.senders {
		result.Late = max(result.Late, s.late)
		for flow := range s.flows {
			at, hit := f.breaks(i, s.to, before[i][flow], broken)
			if !hit {
				at = first
			}
			result.add(r.sent[i][flow], r.got[i][flow], at, hit, &sent)
			if !hit && before[i][flow] != after[i][flow] {
				result.Moved++
			}
		}
	}
	for side := range sent {
		for b := range bins {
			result.Rates[side][b] /= max(sent[side][b], 1)
		}
	}
	return result
}

// add counts a flow's packets. The last ones may still be under way.
func (x *Failure) add(sent, got []time.Duration, at time.Duration, hit bool, bySide *[2][]float64) {
	side, outage := 1, time.Duration(0)
	if hit {
		side = 0
	}
	for i, when := range sent {
		since := when - at
		if b := int((since + x.Before) / x.Bin); since >= -x.Before && b < len(bySide[side]) {
			bySide[side][b]++
			if got[i] > 0 {
				x.Rates[side][b]++
			}
		}
		if got[i] > 0 || since < 0 || since > afterDamage-time.Second {
			continue
		}
		if outage = since; !hit {
			x.Lost++
		}
	}
	x.Flows++
	if hit {
		x.Affected++
		x.Outages = append(x.Outages, outage)
	}
}

// breaks says when the first of the broken links broke on the path that some
// relays pin, if it has one.
func (f *Fabric) breaks(from, to int, relays string, broken map[int]time.Duration) (at time.Duration, hit bool) {
	all, _ := spread.ParseMethod("hash")
	for _, p := range f.model.Paths(from, to, all) {
		if fmt.Sprint(f.pinned(p)) != relays {
			continue
		}
		for _, l := range p.Links {
			if when, is := broken[l]; is && (!hit || when < at) {
				at, hit = when, true
			}
		}
		return at, hit
	}
	return 0, false
}

// pinned is the addresses of a path's list, none where the fabric has no choice.
func (f *Fabric) pinned(p fabric.Path) []netip.Addr {
	if len(f.model.Switches().Pin(p)) == 0 {
		return nil
	}
	return f.relays(p)
}
