package controller

import (
	"errors"
	"time"

	"sublet/openflow/of10"
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
		m.table.Install(m.n.cookies.Next(), want.Entries, time.Now(), func(err error) {
			if err != nil {
				m.table.SetMeters(nil, time.Now(), func(error) {})
			}
			m.sliced(want, err)
		})
	})
}

func (m *member) sliced(want Installed, err error) {
	if err != nil {
		m.n.log.Error("the virtual routers of a switch are not there", "dpid", name(m.s.DatapathID), "why", err)
		return
	}
	m.n.log.Info("the virtual routers of a switch are there", "dpid", name(m.s.DatapathID), "entries", len(want.Entries), "meters", len(want.Meters))
}
