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

const slicedText = `network: lan
nodes:
  - {name: a}
  - {name: b}
switches:
  - name: s
    kind: vxswitch
    lend: 50%
    lookup: classifier
    table:
      - {mac: "02:00:00:00:00:01", src: 10.0.0.0/24, dst: 2001:db8::/32, vlan: 7, dscp: 0, proto: tcp, src_port: 1, dst_port: 2, to: [s-b]}
      - {proto: udp}
    slices:
      - {name: voice, claim: {dscp: 46}, share: 20%, lend: 10%, buffer: 64KiB, scheduler: sp, manager: codel, lookup: prefix, table: [{dst: 10.0.0.0/8, to: [a-s, s-b]}]}
      - {name: tagged, claim: {vlan: 9}, share: 5%, lookup: static, table: [{mac: "02:00:00:00:00:01", to: [a-s]}]}
      - {name: net, claim: {dst: 10.1.0.0/16}, share: 1%}
      - {name: one, claim: {mac: "02:00:00:00:00:02"}, share: 1%}
links:
  - {name: a-s, ends: [a, s], rate: 10Mbit}
  - {name: s-b, ends: [s, b], rate: 10Mbit}
`

// Lookups, tables and slices mean the same when they are written and read again.
func TestSlicesComeBack(t *testing.T) {
	r, err := ParseRequest("f", []byte(slicedText))
	if err != nil {
		t.Fatal(err)
	}
	text, err := FormatRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseRequest("f", text)
	if err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("%v, read again as %+v of\n%s", err, again, text)
	}
	s := r.Switches[0]
	if *s.Table[0].DSCP != 0 || s.Table[1].To != nil || s.Slices[0].Share != 20 || s.Lend != 50 || len(s.Slices[0].Table[0].To) != 2 {
		t.Errorf("read as %+v", s)
	}
}

func TestBadSlices(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"kind: vxswitch", "kind: kernel", "lend: is for kind: vxswitch"},
		{"lend: 50%", "lend: 0%", "not a percentage from 1% to 100%"},
		{"lookup: classifier", "lookup: hash", "no lookup \"hash\": there are learning, static, prefix, classifier"},
		{"lookup: classifier", "lookup: learning", "switches[0].table: is not read by learning"},
		{"lookup: classifier", "lookup: static", "a row of static is a mac and one port"},
		{"to: [a-s, s-b]", "to: [a-c]", "no link \"a-c\" ends at switch \"s\""},
		{"[{dst: 10.0.0.0/8, to: [a-s, s-b]}]", "[{to: [a-s]}]", "a row of prefix is a dst and the ports"},
		{"[{dst: 10.0.0.0/8, to: [a-s, s-b]}]", "[{dst: 10.0.0.0/8}, {dst: 10.0.0.0/8, to: [a-s]}]", "is there already"},
		{", table: [{dst: 10.0.0.0/8, to: [a-s, s-b]}]", "", "prefix reads a table: state one"},
		{"src: 10.0.0.0/24", "src: 10.0.0.0", "\"10.0.0.0\" is no prefix such as 10.0.0.0/24"},
		{"proto: tcp", "proto: sctp", "\"sctp\" is not one of icmp, icmp6, tcp, udp"},
		{"proto: tcp", "proto: icmp", "ports are of tcp or udp"},
		{"vlan: 7", "vlan: 5000", "5000 is not between 1 and 4094"},
		{"dscp: 46", "dscp: 256", "\"256\" is not a whole number from 0 to 255"},
		{"dscp: 46", "dscp: 64", "64 is not between 0 and 63"},
		{"{dscp: 46}", "{dscp: 46, vlan: 1}", "names 2 of vlan, dscp, dst and mac: name one"},
		{"{dscp: 46}", "{}", "names 0 of vlan, dscp, dst and mac: name one"},
		{"{dscp: 46}", "{vlan: 9}", "vlan 9 is claimed by slice \"voice\""},
		{"name: tagged", "name: voice", "\"voice\" is there already"},
		{"share: 5%", "share: 80%", "slices have 100 % of each output together, more than 95"},
		{"share: 5%, ", "", "share"},
		{"02:00:00:00:00:02", "01:00:00:00:00:02", "is no MAC address of a station"},
		{"kind: vxswitch", "kind: vxswitch\n    ports: {a-s: {in: 5Mbit}}", "is for switches without slices"},
	} {
		t.Run(c.to, func(t *testing.T) {
			_, err := ParseRequest("f", []byte(strings.Replace(slicedText, c.from, c.to, 1)))
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
