package main

import (
	"strings"
	"testing"
)

// What a switch in band cannot tell from data is refused.
func TestInBandFlags(t *testing.T) {
	good := openflowFlags{
		controllers: []string{"tcp:10.0.0.254:6653"}, ports: []string{"a", "b"}, dpid: "1", datapath: "process", fail: "secure", miss: "drop",
		tables: 1, entries: 1, local: "l", inBand: true, gateways: []string{"10.0.0.1"}, bandPorts: []string{"2"},
	}
	c, err := good.config()
	if err != nil || c.InBand == nil || len(c.InBand.Controllers) != 1 || len(c.InBand.Gateways) != 1 || len(c.InBand.Ports) != 1 {
		t.Fatalf("%+v, %v", c.InBand, err)
	}
	for want, change := range map[string]func(*openflowFlags){
		"--in-band needs --local": func(f *openflowFlags) { f.local = "" },
		"tcp:ADDRESS:PORT":        func(f *openflowFlags) { f.controllers = []string{"ptcp::6653"} },
		"controller ctl:6653":     func(f *openflowFlags) { f.controllers = []string{"tcp:ctl:6653"} },
		"--gateway \"gw\"":        func(f *openflowFlags) { f.gateways = []string{"gw"} },
		`--in-band-ports "0"`:     func(f *openflowFlags) { f.bandPorts = []string{"0"} },
		"add --in-band":           func(f *openflowFlags) { f.inBand = false },
		"9 controllers are more than 8": func(f *openflowFlags) {
			f.controllers = strings.Split(strings.Repeat("tcp:10.0.0.254:6653 ", 9), " ")[:9]
		},
		"--gateway: 9 are more than 8": func(f *openflowFlags) { f.gateways = strings.Split(strings.Repeat("10.0.0.1 ", 9), " ")[:9] },
	} {
		f := good
		change(&f)
		if _, err := f.config(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
