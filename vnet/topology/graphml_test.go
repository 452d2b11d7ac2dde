package topology

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"sublet/vnet"
)

// A file with the quirks of the Topology Zoo: labels missing, unusable and
// used twice, places missing, parallel links, a loop, speeds missing, an
// attribute for everything, a hyperedge node.
const zoo = `<?xml version="1.0" encoding="utf-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d4" />
  <key attr.name="LinkSpeed" attr.type="string" for="edge" id="d3" />
  <key attr.name="label" attr.type="string" for="all" id="d0" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d1" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d2" />
  <key attr.name="Country" attr.type="string" for="node" id="d5" />
  <key attr.name="hyperedge" attr.type="int" for="node" id="d6" />
  <graph edgedefault="undirected">
    <data key="d0">Name of the graph</data>
    <node id="0"><data key="d0">Zürich (Süd)</data><data key="d1">47.3769</data><data key="d2">8.5417</data><data key="d5">Schweiz </data></node>
    <node id="1"><data key="d0">None</data><data key="d1">46.2044</data><data key="d2">6.1432</data></node>
    <node id="2"><data key="d0">Bern</data></node>
    <node id="3"><data key="d0">Bern</data></node>
    <node id="x 4"><data key="d0">?</data><data key="d6">1</data></node>
    <edge source="0" target="1"><data key="d3">10</data><data key="d4">10000000000.0</data></edge>
    <edge id="e7" source="1" target="0"><data key="d4">1e9</data></edge>
    <edge source="2" target="2"/>
    <edge source="2" target="3"/>
    <edge source="3" target="x 4"><data key="d4">NaN</data></edge>
    <edge source="3" target="gone"/>
  </graph>
</graphml>`

func TestGraphML(t *testing.T) {
	if !IsGraphML([]byte(zoo)) || IsGraphML([]byte("hosts: []")) || IsGraphML([]byte("<description/>")) {
		t.Error("GraphML is not told from other texts")
	}
	sub, notes, err := ParseGraphML("f", []byte(zoo))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range sub.Hosts {
		got = append(got, string(h.Name)+" "+h.Site)
	}
	got = append(got, sub.Switches...)
	for _, l := range sub.Links {
		got = append(got, l.Name+" "+l.Capacity.String()+" "+vnet.FormatDuration(l.Latency))
	}
	want := `Zurich-Sud Schweiz
n1 
Bern 
Bern-2 
nx-4
Zurich-Sud-n1 10Gbit 1.122ms
n1-Zurich-Sud 1Gbit 1.122ms
Bern-Bern-2 10Gbit 1.122ms
Bern-2-nx-4 10Gbit 1.122ms
links back to where they begin, left out: 1
links of unknown speed, taken for 10Gbit: 2
links to nodes that are not there, left out: 1
links of unknown length, taken for 1.122ms: 2`
	if text := strings.Join(append(got, notes...), "\n"); text != want {
		t.Errorf("got\n%s", text)
	}
}

// Labels of the forms that occur in the Topology Zoo.
func TestSpeedsOfLabels(t *testing.T) {
	for label, want := range map[string]float64{
		"155 Mbps": 155e6, "155Mbps": 155e6, "155 Mb/s": 155e6, "155 MBPS": 155e6, "34Mb": 34e6, "2.5 Gbps": 2.5e9, "2,5 Gbit/s": 2.5e9, "2.5G": 2.5e9,
		"10 Gbit/s": 10e9, "10 Gbits/s": 10e9, "10GE": 10e9, "10 GigE": 10e9, "10GbE": 10e9, "10 Gigabit Ethernet": 10e9, "1 Gb": 1e9, "100M Ethernet": 100e6,
		"1,000 Mbps": 1e9, "2,488 Gbps": 2.488e9, "Nx2.5Gbps": 2.5e9, "10-GigabitEthernet": 10e9, "1000BASE-LX": 1e9, "2 x 10GBASE-LR": 20e9, "155 megabits per second": 155e6, "45 Mbit/sec": 45e6,
		"512 kbps": 512e3, "64k": 64e3, "1 Tbps": 1e12, "2 x 10 Gbps": 20e9, "2x10G": 20e9, "4×10Gbps": 40e9, "< 155 Mbps": 155e6, "10 Gbps (lambda)": 10e9, "Leased line, 2 Mbps": 2e6,
		"OC-192c": 9953.28e6, "OC-3": 155.52e6, "OC48": 2488.32e6, "oc 12": 622.08e6, "STM-16": 2488.32e6, "STM-1": 155.52e6, "STM 64": 9953.28e6, "STS-3c": 155.52e6, "2 x OC-48": 4976.64e6,
		"T1": 1.544e6, "T-3": 44.736e6, "DS3": 44.736e6, "DS-3": 44.736e6, "E1": 2.048e6, "E3": 34.368e6, "2xE1": 4.096e6,
		"Gigabit Ethernet": 1e9, "GigE": 1e9, "GE": 1e9, "Fast Ethernet": 100e6, "FE": 100e6,
		"": 0, "Dark Fibre": 0, "Lit": 0, "Wavelength": 0, "1995": 0, "100": 0, "Phase 2 Gateway": 0, "Geneva": 0, "12 May": 0, "Route 66 E40": 0, "BTC-1": 0, "10 Gateways": 0,
	} {
		t.Run(label, func(t *testing.T) {
			if got := labelled(label); math.Abs(got-want) > 1e-6*want {
				t.Errorf("%q says %g, not %g", label, got, want)
			}
		})
	}
}

// Long labels and edges that say their speed in a label only.
func TestGraphMLOfLabels(t *testing.T) {
	const name = "Technische Universitat"
	text := `<graphml><key attr.name="LinkLabel" for="edge" id="l"/><key attr.name="LinkSpeed" for="edge" id="s"/><key attr.name="LinkSpeedUnits" for="edge" id="u"/><key attr.name="label" for="node" id="n"/><graph>
<node id="0"><data key="n">` + name + `</data></node><node id="1"><data key="n">operator</data></node><node id="2"><data key="n">Universitat Wien X</data></node>
<edge source="0" target="1"><data key="l">OC-192c</data></edge><edge source="0" target="1"><data key="s">45</data><data key="u">M</data><data key="l">155 Mbps</data></edge>` +
		strings.Repeat(`<edge source="0" target="2"><data key="l">10 Gbit/s</data></edge>`, 3) + `</graph></graphml>`
	sub, notes, err := ParseGraphML("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []vnet.Rate{9953280 * vnet.Kbit, 45 * vnet.Mbit, 10 * vnet.Gbit, 10 * vnet.Gbit, 10 * vnet.Gbit} {
		if got := sub.Links[i].Capacity; got != want {
			t.Errorf("link %d has %s, not %s", i, got, want)
		}
	}
	if !slices.Contains(notes, "links whose speed is in their label: 4") {
		t.Errorf("notes %q", notes)
	}
}

// The two directions of a directed graph are one link.
func TestDirectedGraphML(t *testing.T) {
	sub, _, err := ParseGraphML("f", []byte(`<graphml><graph edgedefault="directed"><node id="a"/><node id="b"/><node id="c"/>
<edge source="a" target="b"/><edge source="b" target="a"/><edge source="b" target="a"/><edge source="b" target="c"/></graph></graphml>`))
	if err != nil || len(sub.Links) != 3 {
		t.Errorf("%d links, %v", len(sub.Links), err)
	}
}

func TestBadGraphML(t *testing.T) {
	deep := strings.Repeat("<a>", 100)
	for text, want := range map[string]string{
		"":                            "f:1:1: there is no graph with nodes in it",
		"<graphml>":                   "unexpected EOF",
		"<gml/>":                      "the root is <gml>",
		"<graphml>" + deep:            "more than 16 deep",
		"<graphml><graph/></graphml>": "no graph with nodes",
		"<graphml><graph><node/></graph></graphml>":                                           "a node needs an id",
		`<graphml><graph><node id="a"/><node id="a"/></graph></graphml>`:                      "a node needs an id of its own",
		`<graphml><graph><node id="a"><graph><node id="b"/></graph></node></graph></graphml>`: "a second graph begins here",
		`<graphml><graph><node id="a"/><edge source="a"/></graph></graphml>`:                  "an edge needs a source and a target",
		`<!DOCTYPE x [<!ENTITY a "b">]><graphml/>`:                                            "a document type is not read",
		`<graphml><graph><node id="a"/>&lol;</graph></graphml>`:                               "invalid character entity &lol;",
		`<graphml><graph><hyperedge/></graph></graphml>`:                                      "a <hyperedge> is not read",
	} {
		t.Run(want, func(t *testing.T) {
			_, _, err := ParseGraphML("f", []byte(text))
			var input *vnet.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v", text[:min(len(text), 60)], err)
			}
		})
	}
	if _, _, err := ParseGraphML("f", make([]byte, MaxGraphML+1)); err == nil {
		t.Error("a file of any size is read")
	}
}

// Whatever is read is a valid substrate, and a reader never fails otherwise
// than by an error with a place.
func FuzzGraphML(f *testing.F) {
	f.Add([]byte(zoo))
	f.Add([]byte(`<graphml><graph edgedefault="directed"><node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		sub, _, err := ParseGraphML("f", text)
		if err == nil {
			err = sub.Check()
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		var input *vnet.InputError
		if !errors.As(err, &input) {
			t.Fatalf("%T %v", err, err)
		}
	})
}

// A range is what a request asks for at least and at most; a substrate has its lower end.
func TestRangesOfSpeeds(t *testing.T) {
	for label, want := range map[string][2]float64{
		"34-155 Mbps": {34e6, 155e6}, "34 - 155 Mbps": {34e6, 155e6}, "100 Mbps to 1 Gbps": {100e6, 1e9}, "0-10 Mbps": {10e6, 10e6}, "2.5–10G": {2.5e9, 10e9},
		"155-34 Mbps": {34e6, 34e6}, "OC-3": {155.52e6, 155.52e6}, "dark fibre": {0, 0}, "STM-16 - STM-64": {2488.32e6, 2488.32e6},
	} {
		if low, high := span(label); math.Abs(low-want[0]) > 1 || math.Abs(high-want[1]) > 1 {
			t.Errorf("%s: %g to %g", label, low, high)
		}
	}
	const text = `<graphml><key id="l" for="edge" attr.name="LinkLabel"/><graph><node id="a"/><node id="b"/><edge source="a" target="b"><data key="l">34-155 Mbps</data></edge></graph></graphml>`
	r, _, err := ParseGraphMLRequest("f", []byte(text))
	if err != nil || r.Links[0].Bandwidth[0] != (vnet.Bandwidth{Min: 34 * vnet.Mbit, Max: 155 * vnet.Mbit}) {
		t.Errorf("%+v, %v", r.Links, err)
	}
	s, _, err := ParseGraphML("f", []byte(text))
	if err != nil || s.Links[0].Capacity != 34*vnet.Mbit {
		t.Errorf("%+v, %v", s.Links, err)
	}
}
