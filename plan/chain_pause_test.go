package plan

import (
	"testing"

	"sublet/vnet"
)

// A classifier has no rule for packets of a chain that is paused, which it would drop; a
// stage has it move them again.
func TestClassifiersSkipPausedChains(t *testing.T) {
	goesOn := false
	n := &network{functions: map[string]*vnet.Function{"sort": {Kind: vnet.FunctionClassifier, Rules: []vnet.FunctionRule{
		{Flow: vnet.Packets{Protocol: vnet.ProtocolTCP}, Chain: "slow"}, {Flow: vnet.Packets{Protocol: vnet.ProtocolUDP}, Chain: "fast"},
	}}}}
	n.lease.Request.Chains = []vnet.Chain{{Name: "slow", Paused: true}, {Name: "fast"}}
	n.lease.Request.Stages = []vnet.Stage{{Chains: map[string]vnet.ChainChange{"slow": {Paused: &goesOn}}}}
	for stage, want := range map[int]int{-1: 1, 0: 2} {
		n.lease.Stage = stage
		if rules := n.chainFunction("sort").Rules; len(rules) != want || rules[want-1].Match.Protocol != vnet.ProtocolUDP {
			t.Errorf("in stage %d it has the rules %+v", stage, rules)
		}
	}
}
