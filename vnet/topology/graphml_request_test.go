package topology

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sublet/vnet"
)

func TestGraphMLAsARequest(t *testing.T) {
	r, notes, err := ParseGraphMLRequest("folder/zoo.graphml", []byte(zoo))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{string(r.Network)}
	for _, n := range r.Routers {
		got = append(got, fmt.Sprintf("%s %s %s", n.Name, n.Protocol, n.Labels["Country"]))
	}
	for _, s := range r.Switches {
		got = append(got, s.Name)
	}
	for _, l := range r.Links {
		got = append(got, fmt.Sprintf("%s: %s, back %s", l.Name, l.Bandwidth[vnet.Forward], l.Bandwidth[vnet.Reverse]))
	}
	for _, n := range notes {
		got = append(got, fmt.Sprint(n, " ", n.Lost))
	}
	want := `Name-of-the-graph
Zurich-Sud static Schweiz
n1 static 
Bern static 
Bern-2 static 
nx-4
Zurich-Sud-n1: 10Gbit, back 10Gbit
n1-Zurich-Sud: 1Gbit, back 1Gbit
Bern-Bern-2: best effort, back best effort
Bern-2-nx-4: best effort, back best effort
11:5: node 0: "Zürich (Süd)" is Zurich-Sud false
12:5: node 1: "None" is n1 false
14:5: node 3: "Bern" is Bern-2 false
15:5: node x 4: "?" is nx-4 false
18:5: edge 2-2: a link needs two nodes that are there, so it is left out true
19:5: edge 2-3: its speed is not stated: best effort false
20:5: edge 3-x 4: its speed is not stated: best effort false
21:5: edge 3-gone: a link needs two nodes that are there, so it is left out true`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s", text)
	}
	if r.Routers[0].Labels["Latitude"] != "47.3769" || r.Links[0].Labels["LinkSpeedRaw"] != "10000000000.0" {
		t.Errorf("labels %v and %v", r.Routers[0].Labels, r.Links[0].Labels)
	}
}

// Edges of a directed graph are one direction each.
func TestDirectedGraphMLAsARequest(t *testing.T) {
	r, _, err := ParseGraphMLRequest("net.graphml", []byte(`<graphml><key id="l" for="edge" attr.name="LinkLabel"/><graph edgedefault="directed"><node id="a"/><node id="b"/>
<edge source="a" target="b"><data key="l">155 Mbps</data></edge><edge source="b" target="a"><data key="l">OC-192c</data></edge></graph></graphml>`))
	if err != nil || len(r.Links) != 1 || r.Network != "net" {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := r.Links[0].Bandwidth; got != [2]vnet.Bandwidth{vnet.Static(155 * vnet.Mbit), vnet.Static(9953280 * vnet.Kbit)} {
		t.Errorf("%v", got)
	}
}

func TestNameOfFile(t *testing.T) {
	for file, want := range map[string]string{"a/b.clab.yml": "b", "Abilene.graphml": "Abilene", "-": "-", "": ""} {
		if got := NameOfFile(file); got != want {
			t.Errorf("%q is named %q", file, got)
		}
	}
}

// Whatever is read is a valid request or an error with a place.
func FuzzGraphMLRequest(f *testing.F) {
	f.Add([]byte(zoo))
	f.Add([]byte(`<graphml><graph edgedefault="directed"><node id="a"/><node id="b"/><edge source="a" target="b"/><edge source="b" target="a"/></graph></graphml>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, _, err := ParseGraphMLRequest("f", text)
		var input *vnet.InputError
		if err == nil && r.Check() != nil {
			t.Fatal(r.Check())
		}
		if err != nil && !errors.As(err, &input) {
			t.Fatalf("%T %v", err, err)
		}
	})
}
