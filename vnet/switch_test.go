package vnet

import (
	"fmt"
	"testing"
	"time"
)

// switched is n1 and n2 at s1, n3 and r1 at s2, and two links between the
// switches, of which the second makes a loop.
func switched() Request {
	r := Request{Network: "net", Topology: Topology{
		Nodes:    []VirtualNode{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}},
		Routers:  []VirtualNode{{Name: "r1"}},
		Switches: []VirtualSwitch{{Name: "s1", Ports: map[string]SwitchPort{"n1-s1": {MACs: 2, To: []string{"s1-s2"}}}}, {Name: "s2"}},
		Links: []VirtualLink{
			{Ends: [2]string{"n1", "s1"}}, {Ends: [2]string{"n2", "s1"}}, {Ends: [2]string{"s1", "s2"}},
			{Ends: [2]string{"n3", "s2"}}, {Ends: [2]string{"s2", "r1"}}, {Ends: [2]string{"s1", "s2"}, Name: "again"},
		},
	}}
	r.Fill()
	return r
}

func TestSwitchesAreChecked(t *testing.T) {
	if r := switched(); r.Check() != nil || r.Switches[1].Kind != SwitchKernel {
		t.Fatalf("%v, kind %q", r.Check(), r.Switches[1].Kind)
	}
	ports := func(p SwitchPort) func(*Request) {
		return func(r *Request) { r.Switches[0].Ports = map[string]SwitchPort{"n1-s1": p} }
	}
	for _, c := range []struct {
		name   string
		change func(*Request)
		path   string
		word   string
	}{
		{"limits of another kind", func(r *Request) { r.Switches[0].Kind = SwitchEngine }, "switches[0].ports.n1-s1.macs", "kind: kernel"},
		{"too many ports of an engine", func(r *Request) {
			r.Switches[0] = VirtualSwitch{Name: "s1", Kind: SwitchEngine}
			for i := range MaxEnginePorts {
				r.Links = append(r.Links, VirtualLink{Name: fmt.Sprintf("l%d", i), Ends: [2]string{"n1", "s1"}})
			}
		}, "switches[0]", "more than 64"},
		{"odd kind", func(r *Request) { r.Switches[0].Kind = "hub" }, "switches[0].kind", "use kernel"},
		{"name of a node", func(r *Request) { r.Switches[0].Name = "n1" }, "switches[0].name", "already"},
		{"short ageing", func(r *Request) { r.Switches[0].Ageing = time.Millisecond }, "switches[0].ageing", "between"},
		{"odd host", func(r *Request) { r.Switches[1].Host = "-" }, "switches[1].host", "not a name"},
		{"negative CPU", func(r *Request) { r.Switches[1].CPU = -1 }, "switches[1].cpu", "between"},
		{"negative", ports(SwitchPort{MACs: -1}), "switches[0].ports.n1-s1.macs", "between"},
		{"flood", ports(SwitchPort{Broadcast: MaxFlood + 1}), "switches[0].ports.n1-s1.broadcast_pps", "between"},
		{"twice", ports(SwitchPort{To: []string{"s1-s2", "s1-s2"}}), "switches[0].ports.n1-s1.to[1]", "once"},
		{"to itself", ports(SwitchPort{To: []string{"n1-s1"}}), "switches[0].ports.n1-s1.to[0]", "itself"},
		{"to another's port", ports(SwitchPort{To: []string{"n3-s2"}}), "switches[0].ports.n1-s1.to[0]", "no link"},
		{"no such port", func(r *Request) { r.Switches[1].Ports = map[string]SwitchPort{"n3-s3": {}} }, "switches[1].ports.n3-s3", `did you mean "n3-s2"?`},
		{"comes back changed", func(r *Request) {
			r.Stages = []Stage{{Name: "a", After: 1, Remove: []string{"s2"}}, {Name: "b", After: 2, Add: Topology{Switches: []VirtualSwitch{{Name: "s2", Host: "h1"}}}}}
		}, "stages[1].add.switches[0]", "changed"},
		{"too many ports", func(r *Request) {
			for i := range MaxPorts {
				r.Links = append(r.Links, VirtualLink{Name: fmt.Sprintf("l%d", i), Ends: [2]string{"n1", "s1"}})
			}
		}, "switches[0]", "several switches"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := switched()
			c.change(&r)
			r.Fill()
			wantField(t, r.Check(), c.path, c.word)
		})
	}
}

func TestSegments(t *testing.T) {
	r := switched()
	s := r.Segments()
	if len(s) != 1 || len(s[0].Switches) != 2 || len(s[0].Stations) != 4 || s[0].Stations[3].Node != "r1" || s[0].Stations[3].End != 1 {
		t.Errorf("one segment is read as %+v", s)
	}
	if loops := r.Loops(); len(loops) != 1 || !loops["again"] {
		t.Errorf("loops are %v", loops)
	}
	left := r.Topology.apply(Stage{Remove: []string{"s1-s2", "again"}})
	if s := left.Segments(); len(s) != 2 || len(s[0].Stations) != 2 || s[1].Stations[0].Node != "n3" {
		t.Errorf("two segments are read as %+v", s)
	}
	if gone := r.Topology.apply(Stage{Remove: []string{"s2"}}); len(gone.Switches) != 1 || len(gone.Links) != 2 {
		t.Errorf("without s2 there are %v and %v", gone.Switches, gone.Links)
	}
	a, b := r.Switches[0], r.Switches[1]
	for _, c := range []struct {
		s        VirtualSwitch
		from, to string
		want     bool
	}{{a, "n1-s1", "s1-s2", true}, {a, "n1-s1", "n2-s1", false}, {a, "n2-s1", "n1-s1", true}, {b, "n3-s2", "n3-s2", false}} {
		if c.s.Passes(c.from, c.to) != c.want {
			t.Errorf("%s passes from %s to %s: %v", c.s.Name, c.from, c.to, !c.want)
		}
	}
}

// An engine's buffers are booked as memory: those of every crosspoint between
// two ports of the running stage.
func TestBuffersAreMemory(t *testing.T) {
	top := switched().Topology
	top.Switches[0] = VirtualSwitch{Name: "s1", Kind: SwitchEngine, SwitchEngineOptions: SwitchEngineOptions{Buffer: 10 * KiB, Crosspoints: []Crosspoint{
		{From: "n1-s1", To: "s1-s2", Buffer: 30 * KiB}, {From: "n1-s1", To: "gone", Buffer: 50 * KiB}, {From: "again", To: "s1-s2", Manager: "codel"},
	}}}
	want := map[string]Bytes{"s1": 4*3*10*KiB + 20*KiB, "s2": 0}
	for _, n := range top.Placed() {
		if n.Memory != want[n.Name] {
			t.Errorf("%s: %s of memory, want %s", n.Name, n.Memory, want[n.Name])
		}
	}
}
