package vxlink

import (
	"context"
	"time"

	"sublet/datapath/kernel"
)

// trimEvery is how often ceilings follow the frames. A direction whose frames
// become larger all at once gets up to 3.4 % more than its rate for so long; one
// with a relay list whose frames become smaller, what their lists take.
const trimEvery = 250 * time.Millisecond

// trim is the ceiling of one tunnel's class and what it follows.
type trim struct {
	record vxlinkRecord
	from   uint32 // slot of the end by which the tunnel's frames come in; 0: not known yet
	ceil   uint64 // byte/s
	last   vxlinkCounts
	known  bool    // last is
	mean   average // of frames' size
}

// average is one that forgets half at every step.
type average struct{ packets, bytes float64 }

func (a *average) add(packets, bytes uint64) {
	a.packets, a.bytes = a.packets/2+float64(packets), a.bytes/2+float64(bytes)
}

// follow tells the ceiling of a class whose end sees a mean size of frames.
func (t *trim) follow(now vxlinkCounts) uint64 {
	packets, bytes := now.Packets-t.last.Packets, now.Bytes-t.last.Bytes
	first := !t.known
	t.last, t.known = now, true
	if first || packets == 0 || packets > now.Packets { // emptied meanwhile
		return t.ceil
	}
	t.mean.add(packets, bytes)
	return t.record.ceiling(uint64(t.mean.bytes / t.mean.packets))
}

// Trim lets the ceilings of tunnels' classes follow the size of their frames
// until ctx ends. Without it they stay what they are.
func (p *Part) Trim(ctx context.Context) {
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
		if ceil := t.follow(now); differs(ceil, t.ceil) {
			t.ceil = ceil
			changes = append(changes, kernel.ChangeClass(int(t.record.Uplink), kernel.Handle(1, t.record.Minor), kernel.Handle(1, t.record.parent()), t.record.class(ceil)))
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
func (p *Part) trimmed(slot uint32, r vxlinkRecord, ceil uint64) {
	if r.lowest() == r.Ceil {
		delete(p.trims, slot)
		return
	}
	t := p.trims[slot]
	if t == nil {
		t = &trim{}
		p.trims[slot] = t
	}
	t.record, t.ceil = r, ceil
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
