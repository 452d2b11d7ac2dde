package forwarding

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"sublet/openflow/controller"
	"sublet/openflow/of13"
	"sublet/plan"
	"sublet/vnet"
)

// part keeps the entries and meters of one switch, or its entries that lead to queues. What it shows to be there the switch
// has shown, and controller.Forwarding looks after it from then on.
type part struct {
	forwarding *controller.Forwarding
	at         vnet.OpenFlowSwitch
	capacities map[uint32]vnet.Rate // of outer frames, by port

	mu    sync.Mutex
	items map[uint32]plan.Flow // told or being told
	read  bool                 // the switch was read, and what the plan has besides was told since
	met   bool                 // its connection was waited for
}

// meetWithin is how long a switch may take to connect to a server that has begun: so
// long its leases are not told to be degraded.
const meetWithin = 5 * time.Second

// Kinds of what switches have.
func (p *part) Kinds() []plan.Kind { return []plan.Kind{plan.KindFlow} }

// Observe lists what the switch has shown. The first time nothing is known to be there:
// all that is planned is told anew, which changes no entry that is as it must be, and the
// rest that a former process left goes the second time.
func (p *part) Observe(ctx context.Context, host *plan.Host) error {
	if !p.met {
		p.met = true
		p.forwarding.Meet(ctx, uint64(p.at.DatapathID), meetWithin)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	proven, err := p.forwarding.Proven(uint64(p.at.DatapathID))
	if errors.Is(err, controller.ErrNotConnected) && len(p.items) == 0 {
		return nil // nothing was told, and what is planned waits for the switch
	}
	if err != nil {
		return fmt.Errorf("switch %s (%s): %w", p.at.Name, p.at.DatapathID, err)
	}
	for id := range proven {
		if item, known := p.items[id]; known {
			host.Add(item)
		}
	}
	if p.read {
		p.forwarding.Settle(uint64(p.at.DatapathID))
	}
	p.read = true
	return nil
}

// Do tells the switch one change, and waits until it shows it.
func (p *part) Do(ctx context.Context, s plan.Step) error {
	f, ok := s.Item.(plan.Flow)
	if !ok {
		return fmt.Errorf("%s is nothing of a switch", s.Item.Kind())
	}
	id := idOf(f)
	if s.Op == plan.Delete {
		err := p.forwarding.Drop(ctx, uint64(p.at.DatapathID), id)
		if err == nil {
			p.note(id, nil)
		}
		return err
	}
	if err := p.apart(id, f); err != nil {
		return err
	}
	p.note(id, &f)
	err := p.forwarding.Put(ctx, uint64(p.at.DatapathID), p.passageOf(id, f))
	if err != nil && !errors.Is(err, controller.ErrNotConnected) { // else it is told once it connects
		p.note(id, nil)
	}
	return err
}

// Mended are entries and meters that were lost or altered.
func (p *part) Mended() (steps []plan.Step) {
	mended := p.forwarding.Mended(uint64(p.at.DatapathID))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(mended)) {
		item, known := p.items[id]
		switch {
		case !known: // it was taken away meanwhile
		case mended[id]:
			steps = append(steps, plan.Step{Op: plan.Add, Item: item})
		default:
			steps = append(steps, plan.Step{Op: plan.Set, Item: item})
		}
	}
	return steps
}

// note keeps in mind what the switch is told; nil: no longer.
func (p *part) note(id uint32, f *plan.Flow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f == nil {
		delete(p.items, id)
	} else {
		p.items[id] = *f
	}
	p.setRest()
}

// apart refuses an entry for packets that are another tunnel's.
func (p *part) apart(id uint32, f plan.Flow) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for other, g := range p.items {
		if other != id && g.In == f.In && g.From == f.From && g.To == f.To && g.Source == f.Source {
			return fmt.Errorf("the switch cannot tell its packets from those of another tunnel between %s and %s", f.From, f.To)
		}
	}
	return nil
}

// leastRest is the part of a port's rate that what belongs to no lease has at least, as
// a divisor: agents must reach the server.
const leastRest = 100

// setRest gives what belongs to no lease what the minima leave of the port that has
// least left: wherever it goes, no minimum suffers.
func (p *part) setRest() {
	if len(p.at.Queues) > 0 { // they have their minima whatever is in none
		p.forwarding.Rest(uint64(p.at.DatapathID), controller.Unmetered)
		return
	}
	left := make(map[uint32]vnet.Rate, len(p.capacities))
	for port, capacity := range p.capacities {
		left[port] = capacity
	}
	for _, f := range p.items {
		left[f.Out] -= f.Min
	}
	rest := vnet.Rate(0)
	for port, capacity := range p.capacities {
		if r := max(left[port], capacity/leastRest, vnet.Mbit); rest == 0 || r < rest {
			rest = r
		}
	}
	if rest > 0 {
		p.forwarding.Rest(uint64(p.at.DatapathID), kbps(rest))
	}
}

func idOf(f plan.Flow) uint32 {
	id := uint32(f.VNI) << 1
	if f.Reverse {
		id |= 1
	}
	return id
}

// meterSlack is what a meter lets through above a link's rate, as a divisor: hosts
// shape the link, and what is left of a burst must not be dropped.
const meterSlack = 20

func (p *part) passageOf(id uint32, f plan.Flow) controller.Passage {
	made := controller.Passage{ID: id, Out: f.Out, Match: of13.Match{Fields: []of13.Field{
		of13.Exact(of13.InPort, uint64(f.In)), of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 17),
		of13.Exact(of13.IPv4Src, number(f.From)), of13.Exact(of13.IPv4Dst, number(f.To)),
		of13.Exact(of13.UDPSrc, uint64(f.Source)), of13.Exact(of13.UDPDst, receiverPort[f.Transport]),
	}}}
	if f.Queue > 0 {
		made.Queues = p.at.QueueNumbers(f.Out, f.Queue)
	} else {
		made.Kbps = kbps(f.Rate + f.Rate/meterSlack)
	}
	return made
}

// receiverPort is where packets go: those of tunnels are VXLAN (RFC 7348), chains have
// their own (docs/chains-packets.md), or VXLAN-GPE's.
var receiverPort = map[vnet.Transport]uint64{"": 4789, vnet.TransportUDP: 61440, vnet.TransportGPE: 4790}

func number(a netip.Addr) uint64 {
	four := a.As4()
	return uint64(binary.BigEndian.Uint32(four[:]))
}

// kbps is a rate in the unit of meters, rounded up.
func kbps(r vnet.Rate) uint32 { return uint32(min((r+vnet.Kbit-1)/vnet.Kbit, 1<<32-1)) }
