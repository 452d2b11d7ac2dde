package vnet

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// stagedChains has a chain through a mirror, one that begins with a stage, and stages that
// change both.
func stagedChains() Request {
	yes, no := true, false
	r := Request{Network: "n", Topology: Topology{
		Nodes: []VirtualNode{
			{Name: "a"}, {Name: "b"},
			{Name: "fw", Function: &Function{Kind: FunctionFirewall, Rate: 40 * Mbit, Rules: []FunctionRule{{Flow: Packets{Protocol: ProtocolTCP}}}}},
			{Name: "copy", Function: &Function{Kind: FunctionMirror, To: "b"}},
			{Name: "ids", Function: &Function{Kind: FunctionProgram, Auto: &Processing{Fixed: 1e-5}}, Setup: Setup{Run: []Program{{Cmd: []string{"ids"}}}}},
		},
		Links: []VirtualLink{{Ends: [2]string{"a", "b"}}},
	}}
	r.Chains = []Chain{
		{Name: "web", From: "a", To: "b", Via: []string{"fw", "copy"}, Rate: 20 * Mbit},
		{Name: "late", From: "a", To: "b", Via: []string{"fw", "ids"}, Rate: 10 * Mbit, Paused: true},
	}
	r.Stages = []Stage{
		{Name: "day", After: time.Hour, Chains: map[string]ChainChange{"web": {Rate: 30 * Mbit}, "late": {Paused: &no}}},
		{Name: "night", After: 2 * time.Hour, Chains: map[string]ChainChange{"web": {Paused: &yes}, "late": {Rate: 40 * Mbit}}},
		{Name: "rest", After: 3 * time.Hour},
	}
	r.Fill()
	return r
}

// A stage gives the links of chains, and those of their functions, what the chains ask for
// then.
func TestStagesChangeChains(t *testing.T) {
	r := stagedChains()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	for stage, want := range map[int]string{
		-1: "web 20Mbit, copy>b 20Mbit, late best effort",
		0:  "web 30Mbit, copy>b 30Mbit, late 10Mbit",
		1:  "web best effort, copy>b best effort, late 40Mbit",
		2:  "web best effort, copy>b best effort, late 40Mbit",
	} {
		top, got := r.At(stage), make(map[string]string)
		for _, l := range top.Links {
			got[l.Chain] = l.Bandwidth[Forward].String()
		}
		if is := fmt.Sprintf("web %s, copy>b %s, late %s", got["web"], got["copy>b"], got["late"]); is != want {
			t.Errorf("stage %d: %s, want %s", stage, is, want)
		}
	}
	if n, _ := r.Node("ids"); n.CPU != n.Function.Auto.book(40*Mbit) {
		t.Errorf("the processor time of ids is %s, not that of the stage in which it needs most", n.CPU)
	}
	again := r
	if again.Fill(); !reflect.DeepEqual(again, r) {
		t.Error("what is filled changes when it is filled again")
	}
	for i := range r.Stages[0].Links {
		if l, _ := r.Link(i); l.Chain == "late" {
			r.Stages[0].Links[i] = [2]Bandwidth{Static(5 * Mbit)}
		}
	}
	if r.FollowLinks(); r.ChainsAt(0)[1].Rate != 5*Mbit || r.ChainsAt(1)[1].Rate != 40*Mbit {
		t.Errorf("a lower rate of links is not the chain's: %s, later %s", r.ChainsAt(0)[1].Rate, r.ChainsAt(1)[1].Rate)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}

// What a stage cannot make of chains is told in one line, with its place.
func TestBadChainStages(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Request)
		says   string
	}{
		"unknown":   {func(r *Request) { r.Stages[0].Chains["x"] = ChainChange{Rate: Mbit} }, `stages[0].chains.x: there is no chain "x"`},
		"nothing":   {func(r *Request) { r.Stages[0].Chains["web"] = ChainChange{} }, `stages[0].chains.web: states nothing`},
		"too small": {func(r *Request) { r.Stages[0].Chains["web"] = ChainChange{Rate: 1} }, `stages[0].chains.web.rate: `},
		"too much":  {func(r *Request) { r.Stages[1].Chains["late"] = ChainChange{Rate: 41 * Mbit} }, `stages[1].chains.late: fw passes 40Mbit, and chains through it ask for 41Mbit in stage "night"`},
		"a rate for best effort": {func(r *Request) {
			r.Chains[0].Rate = 0
			for i, l := range r.Links {
				if l.Chain == "web" || l.Chain == "copy>b" {
					r.Links[i].Bandwidth = [2]Bandwidth{}
				}
			}
		}, `stages[0].chains.web.rate: the chain has none to begin with`},
		"a link of its own": {func(r *Request) {
			r.Stages[2].Links = map[string][2]Bandwidth{r.ChainLinks("web")[0].Name: {}}
		}, `is a link of chains (web), whose rate follows them`},
		"an impaired link": {func(r *Request) {
			r.Stages[2].Impair = map[string][2]Impairment{r.ChainLinks("web")[0].Name: {}}
		}, `is a link of chains (web), and stages do not impair those`},
		"a function that goes": {func(r *Request) { r.Stages[2].Remove = []string{"fw"} }, `"fw" is part of a chain, which stages change and pause, and do not take away`},
	} {
		r := stagedChains()
		c.change(&r)
		r.Fill()
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// Answers that pass several functions in the same order have a chain of their own, which
// stages change alike.
func TestStagesChangeAnswersAlike(t *testing.T) {
	r := stagedChains()
	r.Chains, r.Links = []Chain{{Name: "web", From: "a", To: "b", Via: []string{"fw", "copy"}, Rate: 10 * Mbit, Reverse: ReverseSame}}, r.Links[:1]
	r.Stages = []Stage{{Name: "day", After: time.Hour, Chains: map[string]ChainChange{"web": {Rate: 15 * Mbit}}}}
	r.Fill()
	if err := r.Check(); err != nil || len(r.Chains) != 2 || r.ChainsAt(0)[1].Rate != 15*Mbit {
		t.Errorf("chains %+v (%v)", r.ChainsAt(0), err)
	}
}
