package topology

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/internal/splitmix"
	"sublet/vnet"
)

func TestNamed(t *testing.T) {
	cases := []struct {
		name                   string
		hosts, switches, links int
	}{
		{"demo", 2, 0, 1},
		{"one", 1, 0, 0},
		{"triangle", 3, 0, 3},
		{"line:4", 4, 0, 3},
		{"star:3", 3, 1, 3},
		{"fat-tree:2", 2, 5, 6},
		{"fat-tree:4", 16, 20, 48},
		{"fat-tree:32", 8192, 1280, 24576},
		{"jellyfish:20,4,16,1", 16, 20, 48},
		{"jellyfish:20,4,16", 16, 20, 48},
		{"jellyfish:2,2,1", 1, 2, 2},
		{"waxman:1,0,1", 1, 0, 0},
		{"waxman:50,1,1000,7", 50, 0, 1225},
	}
	for _, c := range cases {
		sub, known, err := Named(c.name)
		if !known || err != nil {
			t.Errorf("%s: %v, %v", c.name, known, err)
			continue
		}
		if got := [3]int{len(sub.Hosts), len(sub.Switches), len(sub.Links)}; got != [3]int{c.hosts, c.switches, c.links} {
			t.Errorf("%s: %d hosts, switches, links", c.name, got)
		}
		if err := sub.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestBadNames(t *testing.T) {
	for name, want := range map[string]string{
		"star:0":               "0 is not a number of hosts",
		"line:x":               `"x" is no number for HOSTS: write it as line:HOSTS`,
		"line:100000":          "not a number of hosts",
		"line:1,2":             "write it as line:HOSTS",
		"fat-tree:3":           "3 is not an even number of ports",
		"fat-tree:58":          "not an even number",
		"fat-tree:NaN":         "is no number",
		"jellyfish:20,4":       "write it as jellyfish:SWITCHES,PORTS,SERVERS,SEED",
		"jellyfish:2,2,4,1":    "leave no port",
		"jellyfish:700,1024,1": "take fewer ports",
		"waxman:10,2,1,1":      "alpha 2 is not",
		"waxman:10,0.5,0,1":    "beta 0 is not",
		"waxman:5,0.5,0.5,1.5": `"1.5" is no number for SEED`,
		"waxman:10000,1,1":     "take a smaller alpha or beta",
	} {
		t.Run(name, func(t *testing.T) {
			_, known, err := Named(name)
			if !known || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, %v", name, known, err)
			}
		})
	}
	for _, name := range []string{"line", "demo:2", "substrate.yaml", "", "fat-tree", ":", "C:4"} {
		t.Run(name, func(t *testing.T) {
			if _, known, _ := Named(name); known {
				t.Errorf("%q is taken for a name", name)
			}
		})
	}
}

// neighbours of every node, by name.
func neighbours(sub vnet.Substrate) map[string][]string {
	near := make(map[string][]string)
	for _, l := range sub.Links {
		near[l.Ends[0]] = append(near[l.Ends[0]], l.Ends[1])
		near[l.Ends[1]] = append(near[l.Ends[1]], l.Ends[0])
	}
	return near
}

// reached counts the nodes that can be reached from a node.
func reached(near map[string][]string, from string) int {
	seen := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, n := range near[queue[0]] {
			if !seen[n] {
				seen[n] = true
				queue = append(queue, n)
			}
		}
	}
	return len(seen)
}

// Every switch of a k-ary fat-tree has k links, every host one.
func TestFatTreeIsRegular(t *testing.T) {
	sub, err := FatTree(6)
	if err != nil {
		t.Fatal(err)
	}
	near := neighbours(sub)
	for name, list := range near {
		if want := map[bool]int{true: 1, false: 6}[name[0] == 'h']; len(list) != want {
			t.Errorf("%s has %d links", name, len(list))
		}
	}
	if n := reached(near, "h1"); n != 54+45 {
		t.Errorf("%d nodes are connected", n)
	}
}

// A Jellyfish uses every port but at most one, joins no two switches twice and
// spreads its servers evenly; a seed gives one graph.
func TestJellyfishIsRegular(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		switches := rapid.IntRange(2, 40).Draw(t, "switches")
		ports := rapid.IntRange(2, 12).Draw(t, "ports")
		servers := rapid.IntRange(1, switches*(ports-1)).Draw(t, "servers")
		seed := rapid.Uint64().Draw(t, "seed")
		sub, err := Jellyfish(switches, ports, servers, seed)
		if err != nil {
			t.Skip(err)
		}
		if again, _ := Jellyfish(switches, ports, servers, seed); !reflect.DeepEqual(sub, again) {
			t.Fatal("one seed gave two graphs")
		}
		near, joined, free := neighbours(sub), map[[2]string]bool{}, 0
		for _, l := range sub.Links {
			if pair := [2]string{min(l.Ends[0], l.Ends[1]), max(l.Ends[0], l.Ends[1])}; joined[pair] || pair[0] == pair[1] {
				t.Fatalf("%v is joined twice", pair)
			} else {
				joined[pair] = true
			}
		}
		for i, name := range sub.Switches {
			hosts := servers / switches
			if i < servers%switches {
				hosts++
			}
			links := 0
			for _, n := range near[name] {
				if n[0] == 's' {
					links++
				}
			}
			if len(near[name])-links != hosts {
				t.Fatalf("%s has %d servers, not %d", name, len(near[name])-links, hosts)
			}
			free += min(ports-hosts, switches-1) - links
		}
		// With few switches per port the random graph can leave a clique's parity.
		if free > 1 && switches > 2*ports {
			t.Fatalf("%d ports are free", free)
		}
	})
}

// A Waxman graph is connected, and its links take what their length takes.
func TestWaxmanIsConnected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "hosts")
		sub, err := Waxman(n, rapid.Float64Range(0, 1).Draw(t, "alpha"), rapid.Float64Range(0.01, 2).Draw(t, "beta"), rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		if got := reached(neighbours(sub), "h1"); got != n {
			t.Fatalf("%d of %d hosts are connected", got, n)
		}
		for _, l := range sub.Links {
			if l.Latency < 0 || l.Latency > 7072*time.Microsecond {
				t.Fatalf("a link across the square takes %s", l.Latency)
			}
		}
	})
}

// Short links are likelier than long ones, as alpha and beta say: over many
// graphs the number of links is what the probabilities add up to.
func TestWaxmanProbability(t *testing.T) {
	const graphs, n, alpha, beta = 200, 30, 0.5, 0.2
	links, want := 0, 0.0
	for seed := range uint64(graphs) {
		r := random{splitmix.Source(seed)}
		var places []point
		for range n {
			places = append(places, point{side * r.Float(), side * r.Float()})
		}
		longest := 0.0
		for i, p := range places {
			for _, q := range places[:i] {
				longest = max(longest, p.distance(q))
			}
		}
		for i, p := range places {
			for _, q := range places[:i] {
				want += alpha * math.Exp(-p.distance(q)/(beta*longest))
				if r.Float() < alpha*math.Exp(-p.distance(q)/(beta*longest)) {
					links++
				}
			}
		}
	}
	got := 0
	for seed := range uint64(graphs) {
		sub, err := Waxman(n, alpha, beta, seed)
		if err != nil {
			t.Fatal(err)
		}
		got += len(sub.Links)
	}
	// Those that connect come on top; the deviation of the sum is its root.
	if float64(links) < want-5*math.Sqrt(want) || float64(links) > want+5*math.Sqrt(want) || got < links || got > links+graphs*n/3 {
		t.Errorf("%d links, of which %d by chance; expected are %.0f by chance", got, links, want)
	}
}

func TestSizes(t *testing.T) {
	sub, _, err := Named("demo")
	if err != nil {
		t.Fatal(err)
	}
	Sizes{CPU: 16 * vnet.Core, Capacity: 10 * vnet.Gbit, Latency: time.Millisecond}.Apply(&sub)
	h, l := sub.Hosts[0], sub.Links[0]
	if got := fmt.Sprint(h.CPU, h.Memory, l.Capacity, l.Latency); got != "16 4GiB 10Gbit 1ms" {
		t.Error(got)
	}
}
