package ofswitch

import (
	"slices"
	"time"

	"sublet/openflow/channel"
	"sublet/report"
)

// status is what the switch tells of itself.
func (s *Switch) status() report.OpenFlowStatus {
	st := s.wholeStatus()
	for _, m := range s.slicesOf() {
		st.Slices = append(st.Slices, report.OpenFlowSlice{
			Name: m.Name, FirstTable: m.First, Tables: m.Tables,
			Entries: report.Share{Used: m.Entries, Most: m.Slice.Entries}, Groups: report.Share{Used: m.Groups, Most: m.Slice.Groups}, Meters: report.Share{Used: m.Meters, Most: m.Slice.Meters},
		})
	}
	return st
}

// wholeStatus is that without slices.
func (s *Switch) wholeStatus() report.OpenFlowStatus {
	entries, groups, meters := s.tables.Held()
	c := s.config.Pipeline
	return report.OpenFlowStatus{
		Datapath: datapathName(s.config.Kernel), Controllers: s.controllers(), Standalone: s.tables.Standalone,
		Entries: report.Share{Used: entries, Most: c.Entries}, Groups: report.Share{Used: groups, Most: c.Groups}, Meters: report.Share{Used: meters, Most: c.Meters},
		PacketIns: s.told, Stages: s.stages.StageTimes,
	}
}

// controllers are those to connect to, and those that have connected, in the order in
// which the switch was told of them.
func (s *Switch) controllers() []report.OpenFlowController {
	list := controllersOf(s.hub, s.config.Controllers)
	for _, m := range s.slicesOf() {
		for _, c := range controllersOf(m.Hub, m.Controllers) {
			c.Slice = m.Name
			list = append(list, c)
		}
	}
	return list
}

// controllersOf are those of a hub.
func controllersOf(hub *channel.Hub, targets []channel.Target) []report.OpenFlowController {
	list, peers := []report.OpenFlowController{}, hub.Peers()
	for _, t := range targets {
		before := len(list)
		for _, p := range peers {
			if p.Target == t {
				list = append(list, connected(p))
			}
		}
		if len(list) == before {
			list = append(list, report.OpenFlowController{Target: t.String(), Why: hub.Why(t)})
		}
	}
	return slices.Clip(list)
}

func connected(p channel.Peer) report.OpenFlowController {
	t := p.Target
	t.Passive, t.Address = false, p.Address
	return report.OpenFlowController{Target: t.String(), Connected: true, Role: p.Role, Version: p.Version, For: int64(time.Since(p.Since)), Auxiliary: p.Beside, Unread: p.Unread}
}

func datapathName(kernel bool) string {
	if kernel {
		return "kernel"
	}
	return "process"
}
