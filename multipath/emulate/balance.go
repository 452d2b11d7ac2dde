package emulate

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"sublet/datapath/iplb"
	"sublet/multipath"
)

// balancer rearranges the flows of one host to one prefix.
type balancer struct {
	host   *host
	prefix netip.Prefix
	shares []float64                // of its paths, by weight
	seen   map[iplb.FlowKey]uint64  // bytes
	rate   map[iplb.FlowKey]float64 // bytes per interval, smoothed
	moves  int                      // that count
}

// balancers are those of a method that moves flows.
func (f *Fabric) balancers(m multipath.Method) []*balancer {
	var all []*balancer
	if m.Kind() != "flow" {
		return nil
	}
	for _, h := range f.hosts {
		for _, r := range h.rules {
			all = append(all, &balancer{host: h, prefix: r.Prefix, shares: sharesOf(r), seen: make(map[iplb.FlowKey]uint64), rate: make(map[iplb.FlowKey]float64)})
		}
	}
	return all
}

func sharesOf(r iplb.Rule) []float64 {
	weights := make([]uint32, len(r.Paths))
	for i, p := range r.Paths {
		weights[i] = p.Weight
	}
	return multipath.Shared(weights)
}

// balance moves at most one flow per prefix and interval, until the context ends.
func balance(ctx context.Context, all []*balancer, interval time.Duration, counts *atomic.Bool) error {
	if len(all) == 0 {
		return nil
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, b := range all {
			if err := b.step(counts.Load()); err != nil {
				return fmt.Errorf("rearrange the flows of %s: %w", b.host.name, err)
			}
		}
	}
}

// fewestPackets of a flow in an interval that may move: the counts of two
// paths differ by as many from one interval to the next, with nothing changed.
const fewestPackets = 2

func (b *balancer) step(counts bool) error {
	flows, err := b.host.table.Flows(b.prefix)
	if err != nil {
		return err
	}
	list := make([]multipath.Flow, len(flows))
	for i, f := range flows {
		rate := b.observe(f)
		list[i] = multipath.Flow{Rate: rate, Path: f.Path, Fixed: rate < fewestPackets*(payload+headers)}
	}
	m, ok := multipath.Rearrange(list, b.shares)
	if !ok {
		return nil
	}
	if counts {
		b.moves++
	}
	return b.host.table.Move(b.prefix, flows[m.Flow].FlowKey, m.To)
}

// observe is a flow's rate: half of the last interval, half of before.
func (b *balancer) observe(f iplb.Flow) float64 {
	seen, known := b.seen[f.FlowKey]
	now := float64(f.Bytes - min(seen, f.Bytes))
	if known {
		now = (now + b.rate[f.FlowKey]) / 2
	}
	b.seen[f.FlowKey], b.rate[f.FlowKey] = f.Bytes, now
	return now
}
