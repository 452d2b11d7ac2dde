// Package latency measures how long packets take between the ends of leases'
// tunnels: by a few probes a second in the class of each, which never enter the
// tunnel itself.
//
//	agent --probe--> class of the tunnel --wire--> overlay_rx writes when it came --> agent
//	agent <-- overlay_rx writes when it came <--wire-- class of the tunnel <--answer-- agent
package latency

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"sublet/datapath/kernel"
	"sublet/report"
	"sublet/vnet"
)

// Tunnel is one between this host and another.
type Tunnel struct {
	VNI           vnet.VNI
	Local, Remote netip.Addr
	Class         uint32    // of the interface by which it leaves
	Rate          vnet.Rate // of that class at most; 0: not known
	BestEffort    bool
}

// Prober asks the far ends of tunnels and answers theirs.
type Prober struct {
	Host *kernel.Host
	// Tunnels are those of the host; false: they are as before.
	Tunnels func() ([]Tunnel, bool)
	Log     *slog.Logger

	mu      sync.Mutex
	tunnels map[vnet.VNI]*tunnel
	sockets map[bool]*socket // by whether IPv6
	told    string           // of sockets that could not be had
}

// tick is how exactly probes go out at their times.
const tick = 20 * time.Millisecond

// look is how often it is looked which tunnels there are.
const look = time.Second

// Loop asks and answers until ctx ends. No socket is there while there are no tunnels.
func (p *Prober) Loop(ctx context.Context) {
	var receiving sync.WaitGroup
	defer func() {
		receiving.Wait()
		p.close()
	}()
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for looked := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		now := clock()
		if now-looked > look {
			looked = now
			p.learn(now)
			p.open(ctx, &receiving)
		}
		p.ask(now)
	}
}

// learn brings what is known to the tunnels that there are. What is known of one
// stays while it leads to the same host.
func (p *Prober) learn(now time.Duration) {
	list, anew := p.Tunnels()
	if !anew {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.tunnels
	p.tunnels = make(map[vnet.VNI]*tunnel, len(list))
	for _, t := range list {
		known := was[t.VNI]
		if known == nil || known.Local != t.Local || known.Remote != t.Remote {
			known = &tunnel{next: now + rand.N(interval(t.Rate, len(list)))}
		}
		known.Tunnel = t
		p.tunnels[t.VNI] = known
	}
}

// open makes the sockets that tunnels need and that are not there.
func (p *Prober) open(ctx context.Context, receiving *sync.WaitGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tunnels {
		is6 := t.Local.Is6()
		if p.sockets[is6] != nil {
			continue
		}
		s, err := open(p.Host, is6)
		if err != nil {
			if err.Error() != p.told {
				p.told = err.Error()
				p.Log.Warn("latency is not measured", "err", err)
			}
			return
		}
		if p.sockets == nil {
			p.sockets = make(map[bool]*socket)
		}
		p.sockets[is6] = s
		receiving.Go(func() { s.receive(ctx, p.take) })
	}
}

func (p *Prober) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sockets {
		s.file.Close()
	}
	p.sockets = nil
}

// ask sends the probes whose time has come.
func (p *Prober) ask(now time.Duration) {
	p.mu.Lock()
	var due []*tunnel
	for _, t := range p.tunnels {
		if now >= t.next && p.sockets[t.Local.Is6()] != nil {
			due = append(due, t)
		}
	}
	n := len(p.tunnels)
	p.mu.Unlock()
	for _, t := range due {
		p.mu.Lock()
		of, s := t.Tunnel, p.sockets[t.Local.Is6()]
		probe := t.ask(clock(), rand.Uint64())
		t.next = max(t.next, now-fastest) + interval(of.Rate, n)
		p.mu.Unlock()
		s.send(of, probe)
	}
}

// take answers a probe of a tunnel's far end, or takes its answer in. What is of no
// tunnel between these addresses is nobody's.
func (p *Prober) take(r received) {
	p.mu.Lock()
	t := p.tunnels[r.vni]
	if t == nil || r.from != t.Remote || r.to != t.Local {
		p.mu.Unlock()
		return
	}
	of, s := t.Tunnel, p.sockets[t.Local.Is6()]
	if r.answer {
		t.hear(r.packet)
	}
	p.mu.Unlock()
	if !r.answer && s != nil {
		answer := r.packet
		answer.answer, answer.asked = true, r.arrived
		s.send(of, answer)
	}
}

// Of is what is known of a tunnel.
func (p *Prober) Of(vni vnet.VNI) report.Latency {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tunnels[vni]
	if t == nil {
		return report.Latency{}
	}
	now := clock()
	t.expire(now)
	known := t.known
	known.RTTs, known.Recent = slices.Clone(known.RTTs), t.recent(now)
	return known
}
