package main

import (
	"maps"
	"testing"

	"sublet/report"
	"sublet/vnet"
)

// Every frame that was sent has arrived or has a cause, whatever was sent while
// the hosts were being asked.
func TestLossesHaveACause(t *testing.T) {
	near := func(packets uint64, drops map[string]uint64) report.Traffic {
		return report.Traffic{Link: "a-b", First: true, Packets: packets, Drops: drops}
	}
	far := func(packets uint64) report.Traffic { return report.Traffic{Link: "a-b", Last: true, Packets: packets} }
	back := func(first bool, packets uint64) report.Traffic {
		return report.Traffic{Link: "a-b", Direction: vnet.Reverse, First: first, Last: !first, Packets: packets}
	}
	moved := []report.Traffic{near(9000, nil), far(4000), back(true, 4000), back(false, 9000)}
	both := report.Traffic{Link: "a-b", First: true, Last: true, Packets: 9, Bytes: 900, Drops: map[string]uint64{"queue": 2}}
	for name, c := range map[string]struct {
		before, now     []report.Traffic
		sent, delivered uint64
		drops           map[string]uint64
	}{
		"before the far end was there": {
			[]report.Traffic{near(3, nil), far(1)}, []report.Traffic{near(3, nil), far(1)}, 3, 1, map[string]uint64{betweenHosts: 2}},
		"some of a known cause": {
			[]report.Traffic{near(9, nil), far(3)}, []report.Traffic{near(9, map[string]uint64{"queue": 2, "unresolved": 3}), far(3)}, 9, 3,
			map[string]uint64{"queue": 2, "unresolved": 3, betweenHosts: 1}},
		"while it flows": {
			[]report.Traffic{near(1000, nil), far(990)}, []report.Traffic{near(1500, nil), far(1490)}, 1000, 1490, map[string]uint64{}},
		"the far end has moved": {moved, moved, 9000, 4000, map[string]uint64{}},
		"the far host is silent": {
			[]report.Traffic{near(5, nil)}, []report.Traffic{near(5, nil)}, 5, 0, map[string]uint64{}},
		"within a host": {
			[]report.Traffic{both}, []report.Traffic{both}, 9, 7, map[string]uint64{"queue": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			v := views(c.before, c.now)["a-b"][0]
			if v.Packets != c.sent || v.DeliveredPackets != c.delivered || !maps.Equal(v.Drops, c.drops) {
				t.Errorf("%s: %+v", name, *v)
			}
		})
	}
}
