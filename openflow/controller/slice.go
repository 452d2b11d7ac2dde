package controller

import (
	"errors"
	"time"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

var errNoMeters = errors.New("it speaks OpenFlow 1.0, which has no meters")

// slice gives a switch the meters and entries of its virtual routers. Of what it
// does not take all, it has nothing.
func (m *member) slice(now time.Time) {
	want, ok := m.n.Slices[m.s.DatapathID]
	if !ok {
		return
	}
	if m.s.Version() == of10.Version {
		m.sliced(want, errNoMeters)
		return
	}
	m.table.SetMeters(want.Meters, now, func(err error) {
		if err != nil {
			m.sliced(want, err)
			return
		}
		m.install(want, nil)
	})
}

// install gives a switch the entries of its routers, and then those of its active ones,
// each with a cookie of its own. Of what it refuses in part it keeps nothing.
func (m *member) install(want Installed, given []uint64) {
	entries, cookie := want.Entries, m.n.cookies.Next()
	switch i := len(given); {
	case i > len(want.Active):
		m.room = want.Room
		m.sliced(want, nil)
		return
	case i > 0:
		entries = want.Active[i-1].Entries
		m.active[cookie] = &want.Active[i-1]
	}
	m.table.Install(cookie, entries, time.Now(), func(err error) {
		if err == nil {
			m.install(want, append(given, cookie))
			return
		}
		for _, c := range given {
			m.table.Remove(c)
		}
		clear(m.active)
		m.table.SetMeters(nil, time.Now(), func(error) {})
		m.sliced(want, err)
	})
}

// confine sends a packet of an active router on, to ports of the router only, and makes a
// path for those that follow. Behind this switch they go as all others do.
func (m *member) confine(in *of13.PacketIn, at place, p *port, now time.Time) {
	n, r := m.n, m.active[in.Cookie]
	to, from := address(in.Data[:6]), address(in.Data[6:12])
	if m.edge(p, now) && !n.learn(from, at, p, now) {
		return
	}
	if group(to) || n.hosts[to] == nil {
		if p.mayFlood(now) {
			m.floodPorts(in.Data, at, r.Ports, now)
		}
		return
	}
	k := pair{from, to, in.Cookie, at}
	hops := n.hops(k)
	if hops == nil || n.hosts[to].at.dpid != at.dpid && !n.ensure(pair{from: from, to: to}, now) {
		return
	}
	if n.routed[at.dpid] < m.room {
		n.ensure(k, now)
	}
	m.s.Send(&of13.PacketOut{Buffer: of13.NoBuffer, InPort: of13.PortController, Actions: []of13.Action{of13.Output(hops[0].out)}, Data: in.Data})
}

func (m *member) sliced(want Installed, err error) {
	if err != nil {
		m.n.log.Error("the virtual routers of a switch are not there", "dpid", name(m.s.DatapathID), "why", err)
		return
	}
	m.n.log.Info("the virtual routers of a switch are there", "dpid", name(m.s.DatapathID), "entries", len(want.Entries), "active", len(want.Active), "meters", len(want.Meters))
}
