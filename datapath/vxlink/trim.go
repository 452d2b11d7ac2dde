package vxlink

import (
	"context"
	"time"

	"sublet/datapath/kernel"
)

// trimEvery is how often ceilings follow the frames. A direction whose frames
// become larger all at once gets up to 3.4 % more than its rate for so long; one
// with a relay list whose frames become smaller, what their lists take; and one
// whose first large frames a kernel undercounts, what it leaves out.
const trimEvery = 250 * time.Millisecond

// trim is the ceiling and the rate of one tunnel's class and what they follow.
type trim struct {
	record      vxlinkRecord
	undercounts bool   // the kernel leaves headers out, see vxlinkRecord.takes
	from        uint32 // slot of the end by which the tunnel's frames come in; 0: not known yet
	ceil, rate  uint64 // byte/s
	last        vxlinkCounts
	known       bool    // last is
	mean        average // of frames
}

// average is one that forgets half at every step.
type average struct{ packets, bytes, uncounted float64 }

func (a *average) add(packets, bytes, uncounted uint64) {
	a.packets, a.bytes, a.uncounted = a.packets/2+float64(packets), a.bytes/2+float64(bytes), a.uncounted/2+float64(uncounted)
}

// counted is the share of their bytes, with outer headers, that the kernel counts.
func (a *average) counted(outer uint64) float64 {
	return max(least/1000., 1-a.uncounted/(a.bytes+a.packets*float64(outer)))
}

// follow tells the ceiling and the rate of a class whose end sees frames.
func (t *trim) follow(now vxlinkCounts) (ceil, rate uint64) {
	last, first := t.last, !t.known
	packets := now.Packets - last.Packets
	t.last, t.known = now, true
	if first || packets == 0 || packets > now.Packets { // emptied meanwhile
		return t.ceil, t.rate
	}
	t.mean.add(packets, now.Bytes-last.Bytes, now.Uncounted-last.Uncounted)
	ceil, rate = t.record.ceiling(uint64(t.mean.bytes/t.mean.packets)), t.record.Rate
	if t.undercounts {
		counted := t.mean.counted(t.record.outer())
		ceil, rate = uint64(counted*float64(ceil)), uint64(counted*float64(rate))
	}
	return ceil, min(rate, ceil)
}

// Loop lets the ceilings of tunnels' classes follow the size of their frames
// until ctx ends. Without it they stay what they are. Nothing of that goes into
// events: Observe takes any ceiling that the loop may set. The end of the process
// of impaired links does.
func (p *Part) Loop(ctx context.Context, events chan<- struct{}) {
	go p.wires.Watch(ctx, events)
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.trimAll()
		}
	}
}

func (p *Part) trimAll() {
	p.loading.Lock()
	r := p.loaded
	p.loading.Unlock()
	if r == nil {
		return
	}
	p.rates.Lock()
	defer p.rates.Unlock()
	var changes []*kernel.Message
	for _, t := range p.trims {
		if t.from == 0 {
			continue
		}
		now, err := r.counts(t.from)
		if err != nil {
			continue // the maps are closing
		}
		if ceil, rate := t.follow(now); differs(ceil, t.ceil) || differs(rate, t.rate) {
			t.ceil, t.rate = ceil, rate
			changes = append(changes, kernel.ChangeClass(int(t.record.Uplink), handleOf(t.record.Minor), handleOf(t.record.parent()), t.record.class(ceil, rate)))
		}
	}
	p.write(changes)
}

// write changes classes. One that is gone is for the next reconciliation.
func (p *Part) write(changes []*kernel.Message) {
	if len(changes) == 0 {
		return
	}
	home, err := p.host.Dial("")
	if err != nil {
		return
	}
	defer home.Close()
	_ = home.Do(changes...)
}

// differs by more than a thousandth.
func differs(a, b uint64) bool { return max(a, b)-min(a, b) > b/1000 }

// trimmed begins to let a tunnel's class follow its frames; the lock is the
// caller's. What is known of the frames is kept.
func (p *Part) trimmed(slot uint32, r vxlinkRecord, class kernel.HTBClass) {
	if r.lowest() == r.Ceil && !p.undercounts() {
		delete(p.trims, slot)
		return
	}
	t := p.trims[slot]
	if t == nil {
		t = &trim{}
		p.trims[slot] = t
	}
	t.record, t.undercounts, t.ceil, t.rate = r, p.undercounts(), class.Ceil, class.Rate
}

// measure says where the frames of a tunnel come in.
func (p *Part) measure(slot, from uint32) {
	p.rates.Lock()
	defer p.rates.Unlock()
	if t := p.trims[slot]; t != nil && t.from != from {
		t.from, t.known = from, false
	}
}

func (p *Part) untrim(slot uint32) {
	p.rates.Lock()
	defer p.rates.Unlock()
	delete(p.trims, slot)
}
