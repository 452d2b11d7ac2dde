package file

import (
	"strings"
	"testing"
)

// An end with access stands for a switch, which all such ends share, also in stages.
func TestAccessAtLinks(t *testing.T) {
	short := `network: net
nodes: [{name: a}, {name: b}]
links:
  - {ends: [a, {access: campus, vlan: 117}], rate: 10Mbit}
  - {ends: [{access: campus}, b], rate: 10Mbit}
stages:
  - {name: s, after: 1h, add: {nodes: [{name: c}], links: [{ends: [c, {access: campus}], rate: 10Mbit}]}}
  - {name: t, after: 2h, remove: [campus]}
  - {name: u, after: 3h, add: {links: [{ends: [a, {access: campus, vlan: 117}], rate: 20Mbit, name: again}]}}
`
	long := `network: net
nodes: [{name: a}, {name: b}]
switches: [{name: campus, access: campus, vlan: 117}]
links:
  - {ends: [a, campus], rate: 10Mbit}
  - {ends: [campus, b], rate: 10Mbit}
stages:
  - {name: s, after: 1h, add: {nodes: [{name: c}], links: [{ends: [c, campus], rate: 10Mbit}]}}
  - {name: t, after: 2h, remove: [campus]}
  - {name: u, after: 3h, add: {switches: [{name: campus, access: campus, vlan: 117}], links: [{ends: [a, campus], rate: 20Mbit, name: again}]}}
`
	if a, b := requestText(t, short), requestText(t, long); a != b {
		t.Errorf("the short form is\n%s\nand the long one\n%s", a, b)
	}
	if err := validate(t, "request", []byte(short)); err != nil {
		t.Error(err)
	}
}

func requestText(t *testing.T, text string) string {
	t.Helper()
	r, err := ParseRequest("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	written, err := FormatRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

// A configuration of FRR may be the name of a file, and a way out of the substrate
// need not be in a list.
func TestShortForms(t *testing.T) {
	text := []byte("network: net\nrouters: [{name: r, protocol: none, frr: r1.conf}, {name: s}]\nlinks: [{ends: [r, s]}]\n")
	r, err := ParseRequestWith("f", text, func(from string) (string, error) { return "hostname " + from, nil })
	if err != nil || r.Routers[0].FRR != "hostname r1.conf" {
		t.Errorf("%v: %q", err, r.Routers[0].FRR)
	}
	if err := validate(t, "request", text); err != nil {
		t.Error(err)
	}
	way := "{host: h1, interface: eth2, pool: 192.0.2.10-192.0.2.20, via: 192.0.2.1, capacity: 1Gbit}"
	single, list := "hosts: [{name: h1}]\nnat: "+way+"\n", "hosts: [{name: h1}]\nnat: ["+strings.Replace(way, "{", "{name: internet, ", 1)+"]\n"
	if a, b := substrateText(t, single), substrateText(t, list); a != b {
		t.Errorf("the short form is\n%s\nand the long one\n%s", a, b)
	}
	if err := validate(t, "substrate", []byte(single)); err != nil {
		t.Error(err)
	}
}

func substrateText(t *testing.T, text string) string {
	t.Helper()
	s, err := ParseSubstrate("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	written, err := FormatSubstrate(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}
