package overlay

import (
	"context"
	"fmt"
	"maps"
	"net"
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
	var list []report.Sample
	for _, id := range slices.Sorted(maps.Keys(p.items)) {
		if !of.Holds(p.items[id].Lease) {
			continue
		}
		s, err := p.state(id, p.items[id])
		if err != nil {
			return nil, err
		}
		list = append(list, s.Sample(outgoing()))
	}
	if !of.Holds(vnet.LeaseID{}) {
		return list, nil
	}
	c, err := p.table.counts(0)
	if none := dropped(c); err == nil && len(none) > 0 {
		list = append(list, report.TunnelState{Host: vnet.HostID(p.host.Config.Host), State: report.TunnelNone, Drops: none}.Sample(outgoing()))
	}
	return list, err
}

func (p *Part) state(id uint32, item plan.Overlay) (report.TunnelState, error) {
	s := report.TunnelState{Host: vnet.HostID(p.host.Config.Host), Overlay: item, State: report.TunnelUnresolved}
	e, ok, err := p.table.entry(id)
	if err != nil {
		return s, err
	}
	w := p.nextHops[pathOf(item)]
	s.Reason = w.reason
	switch {
	case !ok:
		s.Reason = "not written yet"
		return s, nil
	case e.Device != 0:
		s.State, s.PathMTU, s.NextHop = report.TunnelValid, int(e.Mtu), net.HardwareAddr(e.Header[:6]).String()
	}
	c, err := p.table.counts(e.Slot)
	s.Hits, s.Bytes, s.Received, s.ReceivedBytes, s.Drops = c.Sent, c.SentBytes, c.Received, c.ReceivedBytes, dropped(c)
	return s, err
}

// Problems are the tunnels that have no next hop now, and why.
func (p *Part) Problems() report.Errors {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list report.Errors
	for _, item := range p.items {
		if reason := p.nextHops[pathOf(item)].reason; reason != "" {
			list = append(list, report.ItemError{
				Kind: plan.KindOverlay, Key: item.Key(), Lease: item.Lease, Op: plan.Carry,
				Text: fmt.Sprintf("link %s has no way to %s: %s", item.Link, item.Remote, reason),
			})
		}
	}
	list.Sort()
	return list
}
