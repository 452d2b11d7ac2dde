package server

import (
	"strings"
	"testing"

	"sublet/report"
	"sublet/vnet"
)

// A machine is refused where it may come to a host that runs none, before anything
// is decided.
func TestMachinesAreForHostsThatRunThem(t *testing.T) {
	s := &Server{agents: map[vnet.HostID]agentState{"h1": {report: report.Report{Host: "h1", Machines: "software"}}, "h2": {report: report.Report{Host: "h2"}}, "h3": {report: report.Report{Host: "h3"}}}}
	sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1", Site: "x"}, {Name: "h2", Site: "y"}, {Name: "h3", Site: "y"}, {Name: "silent", Site: "z"}}}
	for _, c := range []struct {
		node    vnet.VirtualNode
		without string
		with    int
	}{
		{vnet.VirtualNode{}, "h2 h3", 2},
		{vnet.VirtualNode{Site: "z"}, "", 1},
		{vnet.VirtualNode{Host: "h1"}, "", 1},
		{vnet.VirtualNode{Site: "x"}, "", 1},
		{vnet.VirtualNode{Site: "y"}, "h2 h3", 0},
		{vnet.VirtualNode{Host: "h2"}, "h2", 0},
	} {
		if without, with := s.withoutMachines(sub, c.node); strings.Join(without, " ") != c.without || with != c.with {
			t.Errorf("%+v: without %q, with %d", c.node, without, with)
		}
	}
}
