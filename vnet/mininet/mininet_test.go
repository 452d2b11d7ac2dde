package mininet

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sublet/vnet"
)

func sample(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/router.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParse(t *testing.T) {
	r, notes, err := Parse("router.json", []byte(sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{string(r.Network)}
	for _, n := range r.All() {
		got = append(got, fmt.Sprint(n.Name, " ", n.Protocol, " ", n.Address))
	}
	for _, l := range r.Links {
		got = append(got, fmt.Sprintf("%s: %s, back %s", l.Name, l.Bandwidth[vnet.Forward], l.Bandwidth[vnet.Reverse]))
		if !l.Addresses.IsZero() || l.Interfaces != [2]string{} {
			got = append(got, fmt.Sprint("  ", l.Addresses, l.Interfaces))
		}
		if l.Impair != [2]vnet.Impairment{} {
			got = append(got, fmt.Sprintf("  %s, back %s", l.Impair[vnet.Forward], l.Impair[vnet.Reverse]))
		}
	}
	want := `router-net
h-1  192.168.1.100
h-1-2  invalid IP
r0 static 192.168.1.1
s1-r0: best effort, back best effort
  [[] [192.168.1.1/24]] [ r0-eth1]
h-1-s1: 10Mbit, back 10Mbit
  [[192.168.1.100/24] []] [ ]
  delay=5ms jitter=500us loss=1%, back delay=5ms jitter=500us loss=1%
h-1-2-s1: 500kbit, back 2Mbit
  , back delay=250us`
	if text := strings.Join(got, "\n"); text != want || r.Switches[0].Name != "s1" {
		t.Errorf("got\n%s\n%+v", text, r.Switches)
	}
	var told []string
	for _, n := range notes {
		told = append(told, fmt.Sprint(n, " ", n.Lost))
	}
	for _, part := range []string{
		"node r0: what class LinuxRouter does is left out: it is a router with static routes false", `node "h 1": is named h-1 false`,
		"node h-1: defaultRoute is computed: routes lead to all that can be reached false", "node h-1-2: what class CPULimitedHost does is left out true", "node h-1-2: ip \"2001:db8::1\" is left out: it is no address of IPv4 true",
		"node s1: protocols is left out true", "node s1: dpid is left out true",
		"link h-1-s1: max_queue_size is left out true", "link h-1-s1: use_htb is left out false", "node h-1-2: interface h-1-2-eth3 is eth0 false",
	} {
		if !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("no note says %q:\n%s", part, strings.Join(told, "\n"))
		}
	}
	for _, odd := range []string{"mac", "bw"} {
		if slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, ": "+odd+" ") }) {
			t.Errorf("%s is told", odd)
		}
	}
}

// A router between subnets, as Mininet's own example of one; subnets that are not
// each of one segment are no addresses of links.
func TestRouterBetweenSubnets(t *testing.T) {
	text := `{"mininet": 1, "name": "lr", "nodes": [
 {"name": "r0", "cls": "LinuxRouter", "ip": "192.168.1.1/24"}, {"name": "h1", "ip": "192.168.1.100/24", "defaultRoute": "via 192.168.1.1"},
 {"name": "h2", "ip": "172.16.0.100/12", "defaultRoute": "via 172.16.0.9"}, {"name": "s1", "switch": true}, {"name": "s2", "switch": true}],
 "links": [{"node1": "s1", "node2": "r0", "intfName2": "r0-eth1", "params2": {"ip": "192.168.1.1/24"}}, {"node1": "s2", "node2": "r0", "intfName2": "r0-eth2", "params2": {"ip": "172.16.0.1/12"}},
  {"node1": "h1", "node2": "s1"}, {"node1": "h2", "node2": "s2", "intfName2": "a/b"}]}`
	r, notes, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.Links[1].Addresses, r.Links[1].Interfaces, r.Links[2].Addresses, r.Links[3].Addresses); got != "[[] [172.16.0.1/12]] [ r0-eth2] [[192.168.1.100/24] []] [[172.16.0.100/12] []]" {
		t.Error(got)
	}
	var lost []string
	for _, n := range notes {
		if n.Lost {
			lost = append(lost, n.Where+": "+n.Text)
		}
	}
	if got := strings.Join(lost, "; "); got != "node h2: defaultRoute is left out" {
		t.Error(got)
	}
	r, _, err = Parse("f", []byte(strings.Replace(text, "172.16.0.100/12", "192.168.1.101/24", 1)))
	if err != nil || !r.Links[2].Addresses.IsZero() || !r.Links[3].Addresses.IsZero() || r.Links[1].Addresses.IsZero() {
		t.Errorf("%+v, %v", r.Links, err)
	}
}

func TestBadTopologies(t *testing.T) {
	with := func(old, replaced string) string { return strings.Replace(sample(t), old, replaced, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"another version", with(`"mininet": 1`, `"mininet": 2`), "f:1:1: this is no topology that tools/mininet/export.py wrote"},
		{"no nodes", `{"mininet": 1, "links": []}`, "nodes is no list"},
		{"an empty one", `{"mininet": 1, "nodes": [], "links": []}`, "no node at the start"},
		{"a node that is a word", `{"mininet": 1, "nodes": ["a"], "links": []}`, "f:1:26: one of nodes has no fields"},
		{"a node twice", with(`"h 1"`, `"r0"`), "f:6:3: a node needs a name of its own, and r0 is none"},
		{"an unknown end", with(`"node2": "r0"`, `"node2": "r1"`), "f:11:3: node2 of a link is no node: r1"},
		{"a link to itself", with(`"node2": "r0"`, `"node2": "s1"`), "f:11:3: links[0]"},
		{"an odd rate", with(`"bw": 10`, `"bw": "ten"`), "f:12:3: link h-1-s1: bw ten is no number of Mbit/s"},
		{"an endless rate", with(`"bw": 10`, `"bw": "1e300"`), "is no number of Mbit/s"},
		{"too low a rate", with(`"bw": 10`, `"bw": 0.000001`), "f:12:3: links[1].min"},
		{"an odd delay", with(`"5ms"`, `"5 parsecs"`), "f:12:95: link h-1-s1: delay: "},
		{"a loss of more than all", with(`"loss": 1`, `"loss": 101`), "loss: "},
		{"jitter alone", with(`"delay": "5ms", `, ``), "f:12:3: links[1].impair.jitter"},
		{"an address twice", with("192.168.1.100/24", "192.168.1.1"), "f:5:3: routers[0].address"},
		{"no JSON", "{", "f:1:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Parse("f", []byte(c.text))
			var input *vnet.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %s", err, c.want)
			}
		})
	}
}

// Whatever the text, reading it ends, and what comes of it is right.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sample(f)))
	f.Add([]byte(`{"mininet": 1, "nodes": [{"name": [], "switch": {}}, {"name": "\u0000"}], "links": [{"node1": "", "params1": []}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, _, err := Parse("f", text)
		var input *vnet.InputError
		if err != nil && !errors.As(err, &input) {
			t.Fatalf("%T %v", err, err)
		}
		if err == nil && r.Check() != nil {
			t.Fatal(r.Check())
		}
	})
}
