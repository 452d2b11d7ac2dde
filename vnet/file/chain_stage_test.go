package file

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sublet/vnet"
)

// staged is a request whose stages are stated.
func staged(stages string) string {
	return `network: n
nodes: [{name: a}, {name: b}]
links: [{ends: [a, b]}]
functions:
  - {name: fw, kind: firewall, rules: [{deny: {proto: icmp}}]}
  - {name: most, kind: limiter, rate: 50Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: tcp}, via: [fw], rate: 5Mbit}
  - {name: rest, from: a, to: b, via: [most], rate: 5Mbit}
stages:
` + stages
}

// chainsAt are chains that packets go through in a stage, in the order in which they are asked.
func chainsAt(r vnet.Request, stage int) (said []string) {
	for _, c := range r.ChainsAt(stage) {
		if !c.Paused {
			said = append(said, fmt.Sprintf("%s %v %s %s", c.Name, c.Via, c.Match.Protocol, c.Rate))
		}
	}
	return said
}

// Stages give a chain other functions and another match, which stay until another stage
// says otherwise; its rate and whether it is paused go with it.
func TestStagesGiveChainsForms(t *testing.T) {
	r, err := ParseRequest("r.yaml", []byte(staged(`
  - {name: more, begins: command, chains: {web: {via: [fw, most], rate: 6Mbit}}}
  - {name: udp, begins: command, chains: {web: {match: {proto: udp}, via: [most, fw]}}}
  - {name: "off", begins: command, chains: {web: {paused: true}, rest: {rate: 4Mbit}}}
  - {name: first, begins: command, chains: {web: {match: {proto: tcp}, via: [fw]}}}
  - {name: "on", begins: command, chains: {web: {paused: false}}}
`)))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"[web [fw] tcp 5Mbit rest [most]  5Mbit]",
		"[web-more [fw most] tcp 6Mbit rest [most]  5Mbit]",
		"[web-udp [most fw] udp 6Mbit rest [most]  5Mbit]",
		"[rest [most]  4Mbit]",
		"[rest [most]  4Mbit]",
		"[web [fw] tcp 6Mbit rest [most]  4Mbit]",
	} {
		if got := fmt.Sprint(chainsAt(r, i-1)); got != want {
			t.Errorf("stage %d: %s, want %s", i-1, got, want)
		}
	}
	text, err := FormatRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseRequest("again.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Stages {
		if !slices.Equal(chainsAt(again, i), chainsAt(r, i)) || !slices.Equal(slices.Sorted(maps.Keys(again.Stages[i].Chains)), slices.Sorted(maps.Keys(r.Stages[i].Chains))) {
			t.Errorf("stage %d that was written and read: %v, want %v", i, chainsAt(again, i), chainsAt(r, i))
		}
	}
}

// Stages bring functions and chains, take them away and bring them back: until then, and
// from then on, nothing is booked for them.
func TestStagesBringFunctions(t *testing.T) {
	r, err := ParseRequest("r.yaml", []byte(staged(`
  - name: more
    begins: command
    add:
      functions: [{name: ids, run: [sleep, infinity], cpu: 0.5, memory: 64MiB}]
      chains: [{name: bulk, from: b, to: a, via: [ids], rate: 1Mbit}]
    chains: {web: {via: [fw, ids]}}
  - {name: less, begins: command, remove: [ids, bulk], chains: {web: {via: [fw]}}}
  - {name: again, begins: command, functions: {ids: {absent: false}}, chains: {bulk: {paused: false}}}
`)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := FormatRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseRequest("again.yaml", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for i, want := range []string{
		"0 0B [web [fw] tcp 5Mbit rest [most]  5Mbit]",
		"0.5 64MiB [web-more [fw ids] tcp 5Mbit rest [most]  5Mbit bulk [ids]  1Mbit]",
		"0 0B [web [fw] tcp 5Mbit rest [most]  5Mbit]",
		"0.5 64MiB [web [fw] tcp 5Mbit rest [most]  5Mbit bulk [ids]  1Mbit]",
	} {
		for _, r := range []vnet.Request{r, again} {
			n, _ := r.At(i - 1).Node("ids")
			if got := fmt.Sprint(n.CPU, n.Memory, chainsAt(r, i-1)); got != want {
				t.Errorf("stage %d: %s, want %s", i-1, got, want)
			}
		}
	}
}

// What a stage makes of functions is told where it is wrong.
func TestBadFunctionsOfStages(t *testing.T) {
	for stage, says := range map[string]string{
		"add: {functions: [{name: fw, kind: limiter, rate: 1Mbit}]}":            `stages[0].add.functions[0].name: there is a node or function "fw" already`,
		"add: {functions: [{name: most2, kind: limiter}]}":                      `stages[0].add.functions[0].rate: is missing`,
		"add: {chains: [{name: new, from: a, to: b, via: [fwx], rate: 1Mbit}]}": `stages[0].add.chains[0].via[0]: there is no function "fwx": did you mean "fw"?`,
		"functions: {ids: {absent: false}}":                                     `stages[0].functions.ids: there is no function "ids"`,
		"functions: {fw: {absent: true}}":                                       `stages[0].functions.fw: chain web leads through fw in stage s, where it is absent`,
		"add: {functions: [{name: x, run: [a], standby: y}, {name: y, run: [a]}]}}\n  - {name: t, begins: command, functions: {y: {absent: true}}": `stages[0].add.functions[0].standby: y is absent in stage t while x is there`,
		"functions: {fw: {}}":                                   `absent`,
		"remove: [fw], chains: {rest: {via: [fw]}}":             `leads through fw in stage s, where it is absent`,
		"add: {functions: [{name: x, run: [a], absent: true}]}": `stages[0].add.functions[0].absent: the stage brings it`,
		"add: {functions: [{name: x, run: [a], standby: y}, {name: y, run: [a]}]}, functions: {y: {absent: true}}": `stages[0].functions.y: the stage brings it`,
	} {
		_, err := ParseRequest("r.yaml", []byte(staged("  - {name: s, begins: command, "+stage+"}\n")))
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", stage, err, says)
		}
	}
}

// What is wrong with a form is told where it is written.
func TestBadFormsOfChains(t *testing.T) {
	for stage, says := range map[string]string{
		"{via: [fw, nobody]}":     `r.yaml:12:57: stages[0].chains["web"].via[1]: there is no function "nobody"`,
		"{via: [fw, fw]}":         `stages[0].chains["web"].via[1]: the chain has been at "fw" before`,
		"{match: {dst_port: 80}}": `stages[0].chains["web"].match`,
		"{}":                      `states nothing`,
	} {
		_, err := ParseRequest("r.yaml", []byte(staged(`
  - {name: s, begins: command, chains: {web: `+stage+`}}
`)))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", stage, err, says)
		}
	}
}
