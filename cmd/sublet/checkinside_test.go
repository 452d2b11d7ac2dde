package main

import (
	"testing"

	"sublet/measure/probe"
	"sublet/plan"
	"sublet/vnet"
)

// TestLinksThatAreDownInside: neither they nor streams over them are measured, both
// their directions say why, and the verdict is not broken by them.
//
//	a -- b, and a switch s with c and d
func TestLinksThatAreDownInside(t *testing.T) {
	l := vnet.Lease{Stage: -1, Request: vnet.Request{Topology: vnet.Topology{
		Nodes:    []vnet.VirtualNode{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}},
		Switches: []vnet.VirtualSwitch{{Name: "s"}},
		Links: []vnet.VirtualLink{
			{Name: "ab", Ends: [2]string{"a", "b"}}, {Name: "cs", Ends: [2]string{"c", "s"}}, {Name: "ds", Ends: [2]string{"d", "s"}},
		},
	}}}
	own := ownDoing{"ds": "d: eth0 is down inside", "ab": "b: eth0 is down inside"}
	streams := []plan.Stream{
		{From: plan.DirectedLink{Link: "cs"}, To: plan.DirectedLink{Link: "ds", Dir: 1}, Ends: [2]string{"c", "d"}},
		{From: plan.DirectedLink{Link: "ds"}, To: plan.DirectedLink{Link: "cs", Dir: 1}, Ends: [2]string{"d", "c"}},
	}
	targets := []probe.Target{
		{Link: "ab", From: "a", To: "b"}, {Link: "cs", From: "c", To: "d"}, {Link: "ds", From: "d", To: "c"}, {Link: "xy", From: "x", To: "y"},
	}
	if rest := own.without(targets, streams); len(rest) != 1 || rest[0].Link != "xy" {
		t.Errorf("measured is %v", rest)
	}
	v := vnet.Verdict{OK: true, Outcome: vnet.Kept, Links: []vnet.LinkVerdict{
		{Name: "ds", From: "d", To: "s", Outcome: vnet.NotMeasured, Why: "no stream"}, {Name: "cs", From: "c", To: "s", OK: true, Outcome: vnet.Kept},
	}}
	own.complete(l, &v)
	told := map[string]int{}
	for _, link := range v.Links {
		if link.Outcome == vnet.NotMeasured && link.Why == notMeasuredFor+own[link.Name] {
			told[link.Name]++
		}
	}
	if told["ab"] != 2 || told["ds"] != 2 || len(v.Links) != 5 || v.OK || v.Outcome != vnet.NotMeasured {
		t.Errorf("%+v", v)
	}
}
