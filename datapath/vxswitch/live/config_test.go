package live

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"sublet/vnet"
)

func TestParseExample(t *testing.T) {
	text, err := os.ReadFile("../../../examples/hosting/two-tenants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("two-tenants.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.virtuals(c.places(), nil)
	if err != nil || len(list) != 2 || list[1].Ports[1].In != 20*vnet.Mbit || !list[1].Ports[1].Police || list[0].Buffer.Lend != 0.5 {
		t.Fatalf("%+v, %v", list, err)
	}
}

// TestParseSaysWhatIsWrong in one line, with the place.
func TestParseSaysWhatIsWrong(t *testing.T) {
	const head = "ports:\n- {name: a, tap: a}\n- {name: b, packet: b}\nvirtual_switches:\n"
	for text, want := range map[string]string{
		"ports: [{name: a}]":                                            "one of them",
		"ports: [{name: a, tap: a, packet: b}]":                         "one of them",
		"ports: [{name: a, tap: x/y}]":                                  "no name of a device",
		"ports: [{name: a, tap: a}, {name: a, tap: b}]":                 "names must differ",
		"ports: [{name: a, tap: a, scheduler: best}]":                   "no scheduler",
		"ports: []\nsharing: maybe":                                     "strict or flexible",
		"ports: []\nspeed: 3":                                           "speed",
		head + "- {name: x, ports: [{port: c, in: 1Mbit, out: 1Mbit}]}": `no port "c"`,
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit, claim: {vlan: 3, vni: 4}}]}":                        "name one of",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit, claim: {vlan: 5000}}]}":                             "5000",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}], manager: blue}":                                   "no queue manager",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}], blocked: [[a, q]]}":                               "two ports",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}], lookup: hash}":                                    "there are learning, static, prefix and classifier",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}], table: [{vlan: 3}]}":                              "learning reads none",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}], lookup: static, table: [{vlan: 3}]}":              "the mac of a station and one port",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}], lookup: prefix, table: [{to: [a]}]}":              "states one",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}], lookup: prefix, table: [{dst: 10.0.0.0}]}":        "no prefix",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}], lookup: classifier, table: [{to: [b]}]}":          "name ports of the switch",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}], lookup: classifier, table: [{proto: sctp}]}":      "there are icmp",
		head + "- {name: x, ports: [{port: a, in: 101Gbit, out: 1Mbit}]}":                                                "ask for less",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}, {port: b, in: 1Mbit, out: 1Mbit}], buffer: 65MiB}": "ask for less",
		head + "- {name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit}, {port: a, in: 1bit, out: 1bit}]}":                  "one is possible",
	} {
		_, err := Parse("f", []byte(text))
		var in *vnet.InputError
		if !errors.As(err, &in) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\n  is answered %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("../../../examples/hosting/two-tenants.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("ports: [{name: a, tap: a}]\nvirtual_switches: [{name: x, ports: [{port: a, in: 1Mbit, out: 1Mbit, claim: {prefix: 10.0.0.0/8}}]}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("f", text)
		if err != nil {
			return
		}
		if _, err := c.virtuals(c.places(), c); err != nil { // a change to itself
			t.Fatal(err)
		}
	})
}

// made is a slot with a frame of n bytes behind a virtio header.
func made(n, headers, part int, kind byte) *slot {
	f := &slot{mem: make([]byte, big), off: headroom, len: virtio + n}
	h := f.header()
	h[1] = kind
	binary.NativeEndian.PutUint16(h[2:], uint16(headers))
	binary.NativeEndian.PutUint16(h[4:], uint16(part))
	return f
}

// TestSizeOfSegments: a segment counts as the frames it stands for; headers
// that lie cost at most the longest frame.
func TestSizeOfSegments(t *testing.T) {
	for _, c := range []struct {
		n, headers, part int
		kind             byte
		want             int32
	}{
		{60, 0, 0, 0, 60}, {1514, 66, 1448, 0, 1514}, {66 + 10*1448, 66, 1448, 1, 10 * 1514}, {66 + 10*1448 + 1, 66, 1448, 1, 10*1514 + 67},
		{66 + 10*1448, 66, 1448, 0x81, 10 * 1514}, {65549, 0, 1448, 1, 65549}, {1000, 2000, 10, 1, 1000}, {65000, 66, 0, 1, 65000},
		{65000, 66, 1, 1, int32(longest) + 1}, // more than may be: it will be dropped
	} {
		if got := made(c.n, c.headers, c.part, c.kind).size(); got != c.want {
			t.Errorf("%+v counts as %d", c, got)
		}
	}
}

// TestTagGoesBack to where the kernel took it from, and what counts from the
// frame's begin counts four more.
func TestTagGoesBack(t *testing.T) {
	f := made(100, 54, 40, 1)
	frame := f.frame()
	for i := range 100 {
		frame[i] = byte(i)
	}
	f.tag(0x8100, 7)
	got := f.frame()
	if len(got) != 104 || got[11] != 11 || binary.BigEndian.Uint32(got[12:]) != 0x81000007 || got[16] != 12 || got[103] != 99 {
		t.Errorf("% x", got)
	}
	if h := f.header(); binary.NativeEndian.Uint16(h[2:]) != 58 || binary.NativeEndian.Uint16(h[4:]) != 40 {
		t.Errorf("header % x", h)
	}
}
