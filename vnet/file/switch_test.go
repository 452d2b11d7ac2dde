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
		{"kind: kernel", "kind: vxswitch", "f:6:21: switches[0].kind: vxswitch is not built yet: use kernel, or leave it out"},
		{"broadcast_pps: 10", "broadcast: 10", "its fields are macs, broadcast_pps, unknown_pps, to"},
	} {
		_, err := ParseRequest("f", []byte(strings.Replace(switchText, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
}
