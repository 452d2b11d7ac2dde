package openflow

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// sampleTime is how long all switches together may take to answer for samples.
const sampleTime = 500 * time.Millisecond

// Samples tell of every port of every switch. One whose process does not answer
// in time is left out: tenants may keep theirs busy, and nobody waits for it. That
// it does not run is Observe's to tell.
func (p *Part) Samples(ctx context.Context, of report.Scope) ([]report.Sample, error) {
	keys, err := p.host.Names(kind)
	if err != nil {
		return nil, err
	}
	samples := make([][]report.Sample, len(keys))
	var asking sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	for i, key := range keys {
		if lease, _, ok := plan.ParseSwitchNamespace(key, vnet.SwitchOpenFlow); ok && of.Holds(lease) {
			asking.Go(func() { samples[i] = append(p.ports(ctx, lease, key), p.place(lease, key)...) })
		}
	}
	asking.Wait()
	return slices.Concat(samples...), nil
}

// place tells on which core a switch's process is kept.
func (p *Part) place(lease vnet.LeaseID, key string) []report.Sample {
	if p.Core == nil {
		return nil
	}
	core, used, ok := p.Core(key)
	if !ok {
		return nil
	}
	s := report.Sample{Kind: plan.KindOpenFlow, Key: key + "/process", Lease: lease}
	s.OnCore(core, used)
	return []report.Sample{s}
}

// ports tell of those of a switch that answers before ctx ends.
func (p *Part) ports(ctx context.Context, lease vnet.LeaseID, key string) (list []report.Sample) {
	c, done, err := p.ask(ctx, key)
	if err != nil {
		return nil
	}
	defer done()
	parts, err := c.Ask(&of13.MultipartRequest{Kind: of13.MultipartPort, Number: of13.PortAny})
	if err != nil {
		return nil
	}
	for _, part := range parts {
		for _, port := range part.(*of13.MultipartReply).Ports {
			list = append(list, forwarding(key, port).Sample(lease))
		}
	}
	if n, err := c.CacheCounters(); err == nil { // else its datapath is the process
		list = append(list, cached(key, n).Sample(lease))
	}
	return list
}

// cached is what the kernel has done by itself, and what it left to the process.
func cached(key string, n channel.CacheCounters) report.Forwarding {
	return report.Forwarding{
		Kind: plan.KindOpenFlow, Of: key, Fast: true, Packets: n.Packets, Bytes: n.Bytes, Full: n.Full, Fallbacks: n.Upcalls,
	}
}

// forwarding is what has left by a port.
func forwarding(key string, port of13.PortStats) report.Forwarding {
	f := report.Forwarding{
		Kind: plan.KindOpenFlow, Of: fmt.Sprintf("%s/eth%d", key, port.Port-1), Fast: true, Packets: port.TxPackets, Bytes: port.TxBytes,
	}
	if n := port.RxDropped + port.TxDropped; n > 0 {
		f.Dropped = map[string]uint64{"port": n}
	}
	return f
}
