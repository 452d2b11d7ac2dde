package plan

import (
	"testing"

	"sublet/vnet"
)

// A program is sent probes by its host, but for one of a network that stands still.
func TestProbesOfPausedNetworks(t *testing.T) {
	n := &network{functions: map[string]*vnet.Function{"ids": {Kind: vnet.FunctionProgram, Probe: vnet.StandardProbe}}}
	if f := n.chainFunction("ids"); f.Probe == nil || f.Patience != int64(vnet.DefaultHealthPatience) || f.Probe.DstPorts != [2]uint16{9, 9} || f.Probe.Src.Addr() == f.Probe.Dst.Addr() {
		t.Errorf("it has %+v", f)
	}
	n.lease.Paused = new(vnet.Pause)
	if f := n.chainFunction("ids"); f.Probe != nil || f.Patience != int64(vnet.DefaultHealthPatience) {
		t.Errorf("of a paused network it has %+v", f)
	}
}
