package plan

import "testing"

// While chains are given another form a host has the hops of both, with the new
// function where both have one, and enters them as it is told.
func TestChainsAreBridged(t *testing.T) {
	former := Chains{
		Interface: "eth0",
		Entries:   []ChainEntry{{Device: "l0a"}},
		Functions: []ChainFunction{{Name: "fw", Rate: 1}, {Name: "gone"}},
		Remotes:   []ChainRemote{{Name: "x>h2"}},
		Hops:      []ChainHop{{Path: 7, Index: 255, Function: "fw"}, {Path: 7, Index: 254, Function: "gone"}},
	}
	now := Chains{
		Entries:   []ChainEntry{{Device: "l1a"}},
		Functions: []ChainFunction{{Name: "fw", Rate: 2}},
		Hops:      []ChainHop{{Path: 7, Index: 237, Function: "fw"}, {Path: 7, Index: 255, Function: "fw"}},
	}
	both := now.Bridged(former, former.Entries)
	if both.Interface != "eth0" || both.Entries[0].Device != "l0a" || len(both.Remotes) != 1 {
		t.Errorf("%+v", both)
	}
	if f, _ := both.Function("fw"); f.Rate != 2 || len(both.Functions) != 2 {
		t.Errorf("functions %+v", both.Functions)
	}
	if len(both.Hops) != 3 {
		t.Errorf("hops %+v", both.Hops)
	}
	if len(now.Hops) != 2 || len(former.Functions) != 2 {
		t.Error("what it was made of has changed")
	}
}
