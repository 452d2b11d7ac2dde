package vnet

import (
	"strings"
	"testing"
)

// A machine states what emulation cannot do without; other nodes state nothing of
// a machine's.
func TestMachines(t *testing.T) {
	machine := func(change func(*VirtualNode)) VirtualNode {
		n := VirtualNode{Name: "m", Memory: MinMachineMemory, Setup: Setup{Kind: KindVM, Image: "debian.qcow2"}}
		change(&n)
		return n
	}
	run := func(p Program) func(*VirtualNode) { return func(n *VirtualNode) { n.Run = []Program{p} } }
	cmd := []string{"true"}
	for _, c := range []struct {
		node     VirtualNode
		among    string
		at, want string
	}{
		{machine(func(*VirtualNode) {}), "node", "", ""},
		{machine(func(n *VirtualNode) { n.Image, n.Disk, n.Restart = "d/x.raw", 8*GiB, RestartAlways }), "node", "", ""},
		{machine(run(Program{Cmd: cmd})), "node", "", ""},
		{machine(func(n *VirtualNode) { n.Kind = "kvm" }), "node", "n.kind", "write vm"},
		{machine(func(n *VirtualNode) { n.Protocol = ProtocolNone }), "router", "n.kind", "under nodes"},
		{machine(func(n *VirtualNode) { n.Image = "" }), "node", "n.image", ".qcow2 or .raw"},
		{machine(func(n *VirtualNode) { n.Image = "debian.img" }), "node", "n.image", ".qcow2 or .raw"},
		{machine(func(n *VirtualNode) { n.Memory = 0 }), "node", "n.memory", "256MiB"},
		{machine(func(n *VirtualNode) { n.Memory = MinMachineMemory - 1 }), "node", "n.memory", "raise it"},
		{machine(func(n *VirtualNode) { n.Disk = -1 }), "node", "n.disk", "leave it out"},
		{machine(func(n *VirtualNode) { n.Disk = MaxDisk + 1 }), "node", "n.disk", "leave it out"},
		{machine(func(n *VirtualNode) { n.Restart = "often" }), "node", "n.restart", "on-failure"},
		{machine(run(Program{Cmd: cmd, Ready: Ready{Port: 80}})), "node", "n.run[0]", "leave out ready"},
		{machine(run(Program{Cmd: cmd, Restart: RestartAlways})), "node", "n.run[0]", "leave out ready"},
		{machine(run(Program{Cmd: cmd, Entrypoint: true})), "node", "n.run[0]", "entrypoint"},
		{VirtualNode{Name: "n", Setup: Setup{Disk: GiB}}, "node", "n.disk", "kind: vm"},
		{VirtualNode{Name: "n", Setup: Setup{State: StateKeep}}, "node", "", ""},
		{VirtualNode{Name: "n", Protocol: ProtocolNone, Setup: Setup{State: StateKeep, Disk: 2 * GiB}}, "router", "", ""},
		{VirtualNode{Name: "n", Setup: Setup{State: "save"}}, "node", "n.state", "write keep"},
		{VirtualNode{Name: "n", Setup: Setup{State: StateKeep, Disk: MiB}}, "node", "n.disk", "64MiB"},
		{VirtualNode{Name: "n", Setup: Setup{State: StateKeep, Disk: MaxDisk + 1}}, "node", "n.disk", "1GiB"},
		{machine(func(n *VirtualNode) { n.State = StateKeep }), "node", "", ""},
		{VirtualNode{Name: "n", Setup: Setup{Restart: RestartAlways}}, "node", "n.restart", "kind: vm"},
	} {
		err := c.node.check("n", c.among)
		if c.at == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.node, err)
			}
			continue
		}
		wrong, ok := err.(*FieldError)
		if !ok || wrong.Path != c.at || !strings.Contains(wrong.Problem, c.want) {
			t.Errorf("%+v: %v, want %q at %s", c.node, err, c.want, c.at)
		}
	}
}
