package plan

import (
	"testing"

	"sublet/vnet"
)

// Nodes that state no limits get the ceilings, of their host's memory if it
// says how much it has; others keep theirs.
func TestNodeDefaults(t *testing.T) {
	sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "known", Memory: 8*vnet.GiB + 4096}, {Name: "unknown"}}}
	l := vnet.Lease{
		State: vnet.Deploying, Stage: -1,
		Request: vnet.Request{Tenant: "alice", Network: "net", Topology: vnet.Topology{Nodes: []vnet.VirtualNode{
			{Name: "a"}, {Name: "b"}, {Name: "c", CPU: 100, Memory: 5000},
		}}},
		Mapping: vnet.Mapping{Nodes: map[string]vnet.HostID{"a": "known", "b": "unknown", "c": "known"}},
	}
	c := NewCompiler(sub.Index())
	limits := func(d vnet.NodeDefaults) map[string]VNode {
		c.Nodes = d
		hosts, err := c.Compile([]vnet.Lease{l})
		if err != nil {
			t.Fatal(err)
		}
		nodes := make(map[string]VNode)
		for _, h := range hosts {
			for _, n := range Of[VNode](h) {
				nodes[n.Node] = VNode{CPU: n.CPU, Memory: n.Memory, Processes: n.Processes}
			}
		}
		return nodes
	}
	for _, step := range []struct {
		defaults vnet.NodeDefaults
		want     map[string]VNode
	}{
		{vnet.NodeDefaults{}, map[string]VNode{"a": {}, "b": {}, "c": {CPU: 100, Memory: 8192}}},
		{vnet.BuiltinNodeDefaults, map[string]VNode{"a": {Memory: 2*vnet.GiB + 4096}, "b": {Memory: vnet.GiB}, "c": {CPU: 100, Memory: 8192}}},
		{vnet.NodeDefaults{CPU: 500, Memory: 4096, Processes: 7}, map[string]VNode{
			"a": {CPU: 500, Memory: 4096, Processes: 7}, "b": {CPU: 500, Memory: 4096, Processes: 7}, "c": {CPU: 100, Memory: 8192, Processes: 7}}},
		{vnet.NodeDefaults{Processes: vnet.NodeProcesses}, map[string]VNode{"a": {}, "b": {}, "c": {CPU: 100, Memory: 8192}}},
	} {
		got := limits(step.defaults)
		for name, want := range step.want {
			if got[name] != want {
				t.Errorf("%+v: %s has %+v, want %+v", step.defaults, name, got[name], want)
			}
		}
	}
}
