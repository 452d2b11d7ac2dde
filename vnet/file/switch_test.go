package file

import (
	"reflect"
	"strings"
	"testing"
)

const switchText = `network: lan
nodes:
  - {name: a}
  - {name: b}
switches:
  - {name: s, kind: kernel, ageing: 30s, ports: {a-s: {macs: 2, broadcast_pps: 10, to: [s-b]}}}
links:
  - {name: a-s, ends: [a, s], rate: 10Mbit}
  - {name: s-b, ends: [s, b], rate: 10Mbit}
`

// Switches come back as they were written.
func TestSwitchesComeBack(t *testing.T) {
	r, err := ParseRequest("f", []byte(switchText))
	if err != nil {
		t.Fatal(err)
	}
	text, err := FormatRequest(r)
	if err != nil || string(text) != switchText {
		t.Errorf("%v, written as\n%s", err, text)
	}
	again, err := ParseRequest("f", text)
	if err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("%v, read again as %+v", err, again)
	}
}

// What would close a port, or speaks of no port, is told where it stands.
func TestBadSwitches(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"macs: 2", "macs: 0", "f:6:62: switches[0].ports[\"a-s\"].macs: 0 would close the port: state at least 1, or leave it out"},
		{"[s-b]}}}", "[]}}}", "f:6:88: switches[0].ports[\"a-s\"].to: names no port: leave it out to send to all, or name some"},
		{"to: [s-b]", "to: [b-s]", "no link \"b-s\" ends at switch \"s\""},
		{"kind: kernel", "kind: hardware", "f:6:21: switches[0].kind: \"hardware\" is not a kind of switch: use kernel, vxswitch or openflow, or leave it out for kernel"},
		{"broadcast_pps: 10", "broadcast: 10", "its fields are macs, broadcast_pps, unknown_pps, to"},
		{"macs: 2", "in: 5Mbit", "switches[0].ports.a-s.in: is for switches of kind: vxswitch: state that kind, or leave it out"},
		{"ageing: 30s", "buffer: 64KB", "switches[0].buffer: is for kind: vxswitch: state that kind, or leave it out"},
	} {
		t.Run(c.to, func(t *testing.T) {
			_, err := ParseRequest("f", []byte(strings.Replace(switchText, c.from, c.to, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.to, err, c.want)
			}
		})
	}
}

const engineText = `network: lan
nodes:
  - {name: a}
  - {name: b}
switches:
  - {name: s, kind: vxswitch, ageing: 30s, ports: {a-s: {to: [s-b], in: 5Mbit, out: 8Mbit, scheduler: lqf, quantum: 3KB, priority: 2}}, scheduler: fcfs, buffer: 64KB, manager: codel, crosspoints: [{from: a-s, to: s-b, buffer: 128KiB, manager: 'red:min=4000,max=12000'}]}
links:
  - {name: a-s, ends: [a, s], rate: 10Mbit}
  - {name: s-b, ends: [s, b], rate: 10Mbit}
`

// A switch of the engine comes back as it was written.
func TestEngineSwitchesComeBack(t *testing.T) {
	r, err := ParseRequest("f", []byte(engineText))
	if err != nil {
		t.Fatal(err)
	}
	text, err := FormatRequest(r)
	if err != nil || string(text) != engineText {
		t.Errorf("%v, written as\n%s", err, text)
	}
	again, err := ParseRequest("f", text)
	if err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("%v, read again as %+v", err, again)
	}
}

// What an engine cannot be is told where it stands.
func TestBadEngineSwitches(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"scheduler: lqf", "macs: 5", "is for switches of kind: kernel; of kind vxswitch in, out and buffers bound what a port takes: leave it out"},
		{"scheduler: lqf", "scheduler: edf", "no scheduler \"edf\": there are drr, rr, fcfs, lqf, sp"},
		{"scheduler: fcfs", "scheduler: edf", "switches[0].scheduler: no scheduler \"edf\""},
		{"manager: codel", "manager: pie", "switches[0].manager: no queue manager \"pie\": there are tail-drop, red, codel"},
		{"min=4000", "min=40000", "crosspoints[0].manager: queue manager \"red:min=40000,max=12000\": min=40000, max=12000: min must be below max"},
		{"buffer: 64KB", "buffer: 1KB", "switches[0].buffer: 1KB is not between 3028 bytes, two frames, and 1GiB"},
		{"buffer: 128KiB", "buffer: 0B", "crosspoints[0].buffer: 0 holds nothing"},
		{"to: s-b,", "to: a-s,", "crosspoints[0].to: \"a-s\" is the input itself"},
		{"from: a-s", "from: b-s", "crosspoints[0].from: no link \"b-s\" ends at switch \"s\""},
		{"in: 5Mbit", "in: 0bit", "ports[\"a-s\"].in: 0bit lets nothing through"},
		{"priority: 2", "priority: 64", "priority: 64 is not between 0, the first, and 63"},
		{"quantum: 3KB", "quantum: 10B", "quantum: 10 bytes are not between 64 and 1048576"},
	} {
		t.Run(c.to, func(t *testing.T) {
			_, err := ParseRequest("f", []byte(strings.Replace(engineText, c.from, c.to, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.to, err, c.want)
			}
		})
	}
}
