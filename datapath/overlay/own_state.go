package overlay

import (
	"maps"
	"slices"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Tables tells of the operator's own tables, by name.
func (p *Part) Tables() ([]report.TableState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table == nil && p.keepsTables() {
		if err := p.open(); err != nil {
			return nil, err
		}
	}
	list := []report.TableState{}
	if p.unread != nil || p.table == nil {
		return list, p.unread
	}
	for _, name := range slices.Sorted(maps.Keys(p.tables)) {
		s, err := p.tableState(p.tables[name])
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (p *Part) tableState(t *ownTable) (report.TableState, error) {
	s := report.TableState{Host: vnet.HostID(p.host.Config.Host), TableHead: t.TableHead, State: report.TunnelValid, Reason: t.reason, Entries: []report.EntryState{}}
	if t.reason != "" {
		s.State = report.TunnelUnresolved
	}
	c, err := p.table.counts(t.slot)
	if err != nil {
		return s, err
	}
	s.Received, s.ReceivedBytes, s.Drops = c.Received, c.ReceivedBytes, dropped(c)
	for _, e := range t.Entries {
		state, err := p.entryState(t, e)
		if err != nil {
			return s, err
		}
		s.Entries = append(s.Entries, state)
	}
	return s, nil
}

func (p *Part) entryState(t *ownTable, e plan.TunnelEntry) (report.EntryState, error) {
	s := report.EntryState{TunnelEntry: e, State: report.TunnelUnresolved, Reason: p.nextHops[t.path(e)].reason}
	if have := p.entryFor(t, e); have.Device != 0 {
		s.State, s.PathMTU, s.NextHop = report.TunnelValid, int(have.Mtu), p.reading.hop([6]byte(have.Header[:6]))
	}
	slot, ok := t.slots[e.ID]
	if !ok {
		return s, nil
	}
	c, err := p.table.counts(slot)
	s.Hits, s.Bytes, s.Drops = c.Sent, c.SentBytes, dropped(c)
	return s, err
}
