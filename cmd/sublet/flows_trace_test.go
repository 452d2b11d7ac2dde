package main

import (
	"strings"
	"testing"

	"sublet/report"
)

func TestPacketsToTrace(t *testing.T) {
	port, frame, err := tracedPacket("in_port=7,tcp,nw_dst=10.0.0.1,tp_dst=80", nil)
	if err != nil || port != 7 || len(frame) != 60 || frame[33] != 1 || frame[37] != 80 {
		t.Errorf("port %d, %x, %v", port, frame, err)
	}
	port, frame, err = tracedPacket("in_port=LOCAL", []string{"020000000001020000000002" + "0800" + "45"})
	if err != nil || port != 0xfffffffe || len(frame) != 15 {
		t.Errorf("port %d, %x, %v", port, frame, err)
	}
	for words, want := range map[string]string{
		"tcp": "in_port is missing", "in_port=1,tp_dst=80": "no tcp_dst", "in_port=1,tcp HEX": "leave out all but in_port", "in_port=1 HEX": "no hexadecimal",
		"in_port=1,metadata=5": "no metadata",
	} {
		words, digits, hex := strings.Cut(words, " ")
		var list []string
		if hex {
			list = []string{digits}
		}
		if _, _, err := tracedPacket(words, list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %v: %v, want %q", words, list, err, want)
		}
	}
}

func TestTraceAsText(t *testing.T) {
	var b strings.Builder
	if err := writeTrace(&b, report.FlowTrace{
		Steps: []report.FlowStep{
			{Kind: "table", Match: "in_port=1", Cookie: 5, Actions: "goto_table:1"}, {Kind: "table", Number: 1, Match: "priority=7,tcp", Actions: "group:3"},
			{Kind: "group", Number: 3}, {Kind: "output", Number: 2, Queue: 1, Depth: 1}, {Kind: "table", Number: 2, Missed: true},
		},
		Actions: []string{"enqueue:2:1"}, Like: "tcp,in_port=1",
	}); err != nil {
		t.Fatal(err)
	}
	const want = ` 0. in_port=1, cookie 0x5
    goto_table:1
 1. priority=7,tcp, cookie 0x0
    group:3
    -> group 3
        -> leaves by port 2, queue 1
 2. no entry matches
packets like it: tcp,in_port=1
datapath actions: enqueue:2:1
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}
