package lease

import (
	"slices"
	"strings"
	"testing"

	"sublet/vnet"
)

// Changes have units, and no text of a file is written out in a message.
func TestChangeWords(t *testing.T) {
	if got := fieldWord("latency_ns", 5e6); got != "5ms" {
		t.Errorf("a latency of 5 ms is told as %s", got)
	}
	long := strings.Repeat("router ospf\n", 100)
	if _, how := difference(map[string]any{"frr": long}, map[string]any{"frr": long + "!"}); len(how) > 200 || !strings.Contains(how, "bytes of digest") {
		t.Errorf("a long text is told as %q", how)
	}
}

// What is new is told once, with its fields and their units, what is gone without.
func TestNewThingsAreToldOnce(t *testing.T) {
	was := vnet.Request{Topology: vnet.Topology{Nodes: []vnet.VirtualNode{{Name: "a"}, {Name: "b", CPU: 500}}}}
	is := vnet.Request{Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{{Name: "a"}, {Name: "n", CPU: 200, Memory: 64 << 20}},
		Links: []vnet.VirtualLink{{Name: "n-a", Ends: [2]string{"n", "a"}, Bandwidth: [2]vnet.Bandwidth{{Min: vnet.Mbit, Max: vnet.Mbit}, {Min: vnet.Mbit, Max: vnet.Mbit}}}},
	}}
	var told []string
	for _, c := range revisions(was, is) {
		told = append(told, c.What+": "+c.From+" > "+c.To)
	}
	want := []string{"node n: none > there (cpu 0.2; memory 64MiB)", "link n-a: none > there (1Mbit; ends n, a)", "node b: there > none"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// Changes of slices are told slice by slice, with those that lose what they have.
func TestChangesOfSlicesAreTold(t *testing.T) {
	request := func(list ...vnet.FlowSlice) vnet.Request {
		return vnet.Request{Topology: vnet.Topology{Switches: []vnet.VirtualSwitch{{Name: "s", Kind: vnet.SwitchOpenFlow, OpenFlowOptions: vnet.OpenFlowOptions{FlowSlices: list}}}}}
	}
	a := vnet.FlowSlice{Name: "a", Controllers: []string{"tcp:one:6653"}, Links: []string{"p", "q"}}
	b := vnet.FlowSlice{Name: "b", Controllers: []string{"tcp:two:6653"}, Links: []string{"r"}, Entries: 5}
	fewer, larger, fresh := a, b, vnet.FlowSlice{Name: "c", Controllers: []string{"tcp:three:6653"}, Default: true}
	fewer.Links, larger.Links, larger.Entries = []string{"p"}, []string{"r", "q"}, 50
	told := make(map[string]string)
	for _, c := range revisions(request(a, b), request(fewer, larger, fresh)) {
		told[c.What] = c.From + " > " + c.To
	}
	for what, want := range map[string]string{
		"links of slice a of s":   "p, q > p (the slice begins anew, without its entries, groups and meters)",
		"links of slice b of s":   "r > r, q",
		"entries of slice b of s": "5 > 50",
		"slice c of s":            "none > there (controllers tcp:three:6653; default true; entries 10000; groups 256; meters 256; tables 8)",
	} {
		if told[what] != want {
			t.Errorf("%s: %q, want %q", what, told[what], want)
		}
	}
	if told["default of slice c of s"] != "" || told["tables of slice a of s"] != "" || told["flow_slices of s"] != "" {
		t.Errorf("told: %v", told)
	}
}
