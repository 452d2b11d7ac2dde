package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/openflow/slice"
)

func TestSlicesAreRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "slices.yaml")
	read := func(text string) (slice.Config, error) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readSlices(name)
	}
	const good = "switch: tcp:192.0.2.1:6653\nslices: [{name: a, controller: [tcp:192.0.2.2:6653], ports: [1, 2], match: \"ip,nw_src=10.0.0.0/8\", tables: 3}]\n"
	c, err := read(good)
	if err != nil || len(c.Slices) != 1 || c.Slices[0].Tables != 3 || c.Slices[0].Entries != sliceEntries || len(c.Slices[0].Match) != 2 || c.Check() != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	for want, change := range map[string][2]string{
		"switch: ":         {"tcp:192.0.2.1:6653", "192.0.2.1"},
		"slices[0]: ports": {"[1, 2]", "[0]"},
		"slices[0]: match": {"10.0.0.0/8", "10.0.0.0/80"},
		"name":             {"name: a", "name: \"a b\""},
		"did you mean":     {"tables: 3", "table: 3"},
	} {
		if _, err := read(strings.Replace(good, change[0], change[1], 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", change, err, want)
		}
	}
}

// What plans write as the match of a slice is read.
func TestMatchesOfPlansAreRead(t *testing.T) {
	for _, match := range []string{
		"dl_vlan=7,dl_dst=02:00:00:00:00:0a", "tcp,nw_src=10.0.0.0/8,tp_dst=80", "udp6,ipv6_dst=fd00::/8,nw_tos=40,tp_src=53", "ip,nw_tos=40", "icmp6", "icmp,nw_dst=10.0.0.0/8", "ipv6,ipv6_src=fd00::/8",
	} {
		name := filepath.Join(t.TempDir(), "slices.yaml")
		if err := os.WriteFile(name, []byte(`{"slices":[{"name":"a","controller":["ptcp::6653"],"match":"`+match+`","tables":1,"entries":2,"groups":3,"meters":4}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := readOwnSlices(name)
		if err == nil {
			err = slice.Check(list, 2)
		}
		if err != nil || len(list[0].Match) == 0 {
			t.Errorf("%s: %+v, %v", match, list, err)
		}
	}
}
