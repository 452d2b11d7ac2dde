package replay

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"sublet/embed"
	"sublet/vnet"
)

// line is four nodes in a row, of which two requests use the middle link in
// turn and a third finds it taken.
const line = `P 4 3
10 10 10 10
0 1 100
1 2 50
2 3 100
V 3
2 1 1.0 4.0
8 9
0 1 40
2 1 2.0 2.5
6 6
0 1 40
3 2 6.0 10
10 10 10
0 1 50
1 2 50
E 5
1 0 1.0
1 1 2.0
0 1 4.5
0 0 5.0
1 2 6.0
`

func TestRun(t *testing.T) {
	instance, err := Parse("line", []byte(line))
	if err != nil {
		t.Fatal(err)
	}
	var mappings []Mapping
	ticks := time.Duration(0)
	figures, err := Run(instance, Options{
		Clock:    func() time.Duration { ticks += time.Millisecond; return ticks },
		Accepted: func(m Mapping) error { mappings = append(mappings, m); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	// Two pairs are apart in a row of four; then three nodes fit in a row.
	want := Figures{
		Accepted: 3, Requests: 3, Acceptance: 1, RevenueCost: 1,
		LongTermRevenue: (57*4 + 52*2.5 + 130*10) / 6.0, Mean: 1, P99: 1,
	}
	if figures != want {
		t.Errorf("figures %+v, want %+v", figures, want)
	}
	for _, m := range mappings {
		r := instance.Requests[m.ID]
		for i, l := range r.Links {
			path := m.Links[i].paths[0].Path
			if len(path) != 1 || !joins(instance.Links[path[0]], m.Nodes[l.Ends[0]], m.Nodes[l.Ends[1]]) {
				t.Errorf("mapping %+v: link %d is not where its ends are", m, i)
			}
		}
	}
}

func joins(l Link, a, b int) bool { return l.Ends == [2]int{a, b} || l.Ends == [2]int{b, a} }

// TestRefusalsAndDepartures: what is refused takes nothing and is not missed
// when it leaves; nodes of one request never share a host.
func TestRefusalsAndDepartures(t *testing.T) {
	text := "P 2 1\n10 10\n0 1 5\nV 3\n2 1 0 9\n4 4\n0 1 5\n2 1 1 9\n4 4\n0 1 1\n3 2 2 9\n0 0 0\n0 1 0\n1 2 0\n" +
		"E 6\n1 0 0\n1 1 1\n0 1 1\n1 2 2\n0 2 9\n0 0 9\n"
	instance, err := Parse("pair", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	figures, err := Run(instance, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if figures.Accepted != 1 || figures.Requests != 3 || figures.LongTermRevenue != 13*9/2.0 {
		t.Errorf("figures %+v: only the first of three fits", figures)
	}
}

func TestParseErrors(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(line, old, new, 1) }
	for text, want := range map[string]string{
		"":                                    `x:1:1: the end of the file instead of P, which begins the part of the substrate nodes`,
		"P":                                   `x:1:2: the end of the file is no count of substrate nodes`,
		"hosts:":                              `x:1:1: "hosts:" instead of P`,
		"P 99999999999 1":                     `x:1:3: "99999999999" is no count`,
		"P -1 1":                              `x:1:3: "-1" is no count`,
		replace("10 10", "10 ten"):            `x:2:4: "ten" is not a processor capacity: a number between 0 and 1000000000`,
		replace("10 10", "10 NaN"):            `x:2:4: "NaN" is not`,
		replace("10 10", "10 -1"):             `x:2:4: "-1" is not`,
		replace("10 10", "10 1e300"):          `x:2:4: "1e300" is not`,
		replace("1 2 50", "1 4 50"):           `x:4:3: "4" is no substrate node: they are numbered from 0 to 3`,
		replace("1 2 50", "1 1 50"):           `x:4:3: a link joins substrate node 1 to itself`,
		replace("V 3", "W 3"):                 `x:6:1: "W" instead of V`,
		replace("V 3", "V 4"):                 `x:17:1: "E" is no count of virtual nodes`,
		replace("2 1 1.0", "0 0 1.0"):         `request 0 has no node`,
		replace("0 1 40", "0 2 40"):           `x:9:3: "2" is no virtual node: they are numbered from 0 to 1`,
		replace("1 0 1.0", "2 0 1.0"):         `x:18:1: "2" is no kind of event: they are numbered from 0 to 1`,
		replace("1 0 1.0", "1 3 1.0"):         `x:18:3: "3" is no request`,
		replace("1 1 2.0", "1 0 2.0"):         `request 0 arrives twice`,
		replace("1 1 2.0", "0 1 2.0"):         `request 1 leaves before it arrives`,
		replace("0 0 5.0", "0 1 5.0"):         `request 1 leaves twice`,
		replace("0 0 5.0", "0 0 4.0"):         `an event at 4 follows one at 4.5: sort them by time`,
		line + "1 2 3":                        `x:23:1: "1" after the last event`,
		strings.TrimSuffix(line, "1 2 6.0\n"): `the end of the file is no kind of event`,
	} {
		_, err := Parse("x", []byte(text))
		if input := new(vnet.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// FuzzParse: no text makes the parser fail otherwise than with an
// *vnet.InputError of one line, and what it reads can be replayed.
func FuzzParse(f *testing.F) {
	f.Add([]byte(line))
	f.Add([]byte("P 1 0 0 V 1 1 0 0 0 0 E 1 1 0 0"))
	f.Fuzz(func(t *testing.T, text []byte) {
		instance, err := Parse("x", text)
		if input := new(vnet.InputError); err != nil && (!errors.As(err, &input) || strings.Contains(err.Error(), "\n")) {
			t.Fatalf("%q", err)
		}
		if err != nil || len(text) > 1000 {
			return
		}
		figures, err := Run(instance, Options{Embed: embed.Options{Budget: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		if math.IsNaN(figures.RevenueCost+figures.LongTermRevenue) || figures.Accepted > figures.Requests {
			t.Fatalf("%+v", figures)
		}
	})
}
