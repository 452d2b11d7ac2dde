package overlay

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Samples tell of every entry how it is now, by number, and last of the packets
// that were dropped for want of one.
func (p *Part) Samples(_ context.Context, of report.Scope) ([]report.Sample, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table == nil {
		return nil, nil
	}
	if err := p.reading.read(p.table); err != nil {
		return nil, err
	}
	ids := slices.Sorted(maps.Keys(p.items))
	list := make([]report.Sample, 0, len(ids)+1)
	for _, id := range ids {
		if of.Holds(p.items[id].Lease) {
			list = append(list, p.reading.sample(id, p.state(id, p.items[id])))
		}
	}
	p.reading.forget(p.items)
	if !of.Holds(vnet.LeaseID{}) {
		return list, nil
	}
	if none := dropped(p.reading.counts(0)); len(none) > 0 {
		list = append(list, report.TunnelState{Host: vnet.HostID(p.host.Config.Host), State: report.TunnelNone, Drops: none}.Sample(outgoing()))
	}
	return list, nil
}

// state is that of an entry at the last reading.
func (p *Part) state(id uint32, item plan.Overlay) report.TunnelState {
	s := report.TunnelState{Host: vnet.HostID(p.host.Config.Host), Overlay: item, State: report.TunnelUnresolved}
	e, ok := p.reading.entries[id]
	s.Reason = p.nextHops[pathOf(item)].reason
	switch {
	case !ok:
		s.Reason = "not written yet"
		return s
	case e.Device != 0:
		s.State, s.PathMTU, s.NextHop = report.TunnelValid, int(e.Mtu), p.reading.hop([6]byte(e.Header[:6]))
	}
	c := p.reading.counts(e.Slot)
	s.Hits, s.Bytes, s.Received, s.ReceivedBytes, s.Drops = c.Sent, c.SentBytes, c.Received, c.ReceivedBytes, dropped(c)
	return s
}

// Problems are the tunnels that have no next hop now, or whose path is too narrow for
// what their network sends, and why.
func (p *Part) Problems() report.Errors {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list report.Errors
	for _, item := range p.items {
		if text := p.problem(item); text != "" {
			list = append(list, report.ItemError{Kind: plan.KindOverlay, Key: item.Key(), Lease: item.Lease, Op: plan.Carry, Text: "link " + item.Link + " " + text})
		}
	}
	list.Sort()
	return list
}

func (p *Part) problem(item plan.Overlay) string {
	way := p.nextHops[pathOf(item)]
	if way.reason != "" {
		return fmt.Sprintf("has no way to %s: %s", item.Remote, way.reason)
	}
	e, err := p.build(item, 0)
	if err != nil || way.mtu == 0 || int(e.Mtu) >= item.MTU {
		return ""
	}
	return fmt.Sprintf("carries packets of %d bytes only, not of %d: %s to %s has an MTU of %d, and %d are needed",
		e.Mtu, item.MTU, pathOf(item).device, item.Remote, way.mtu, item.MTU+int(e.Room))
}
