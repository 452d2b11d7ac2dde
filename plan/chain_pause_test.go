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

// Between plans of which one has the node of a function and the other has not, its links
// end where no node is needed, whichever comes first.
func TestLinksOfAbsentFunctionsNeedNoNode(t *testing.T) {
	lease := vnet.LeaseID{Tenant: "t", Network: "n"}
	inNode := VxLink{Lease: lease, Ends: [2]End{{Tunnel: &Tunnel{}}, {Port: &Port{Namespace: Namespace(lease, "ids"), Interface: "eth0"}}}}
	atHome := VxLink{Lease: lease, Ends: [2]End{{Tunnel: &Tunnel{}}, {Port: &Port{Namespace: Namespace(lease, ChainHome), Interface: "c0b"}}}}
	for _, pair := range [][2]VxLink{{inNode, atHome}, {atHome, inNode}} {
		if met := pair[0].Meet(pair[1]); !Equal(met, atHome) {
			t.Errorf("%s and %s meet in %s", pair[0], pair[1], met)
		}
	}
}
