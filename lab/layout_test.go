package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

func TestLayout(t *testing.T) {
	sub := hosts(2)
	sub.Hosts[1].Name = "a-host-with-a-very-long-name"
	sub.Switches = []string{"a-switch-with-a-very-long-name"}
	join(&sub, "direct", "h1", string(sub.Hosts[1].Name), vnet.Gbit)
	join(&sub, "up-1", "h1", sub.Switches[0], vnet.Gbit)
	join(&sub, "up-2", "h1", sub.Switches[0], vnet.Gbit)
	l, err := newLayout("lab", sub)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.substrate.Links[0].Ports; got[0].Address != netip.MustParseAddr("198.18.0.0") || got[1].Address != netip.MustParseAddr("198.18.0.1") {
		t.Errorf("addresses %v", got)
	}
	if got := l.substrate.Links[2].Ports; got[0].Address != netip.MustParseAddr("198.18.0.4") || got[1] != (vnet.Port{}) {
		t.Errorf("ports of a link to a switch: %v", got)
	}
	if sub.Links[0].Ports[0] != (vnet.Port{}) {
		t.Error("the caller's substrate was changed")
	}
	var names []string
	for _, ports := range l.ports {
		names = append(names, ports[0].Interface)
		if len(ports[0].Interface) > maxInterface || !strings.HasPrefix(ports[0].Interface, "to-a-") {
			t.Errorf("interface %q", ports[0].Interface)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != 3 {
		t.Errorf("interfaces of h1: %q", names)
	}
	if got := l.namespaces(); got[0] != "lab.wires" || got[1] != "lab-h1" || len(got) != 4 {
		t.Errorf("namespaces %q", got)
	}
	if err := l.substrate.Check(); err != nil {
		t.Error(err)
	}
}

func TestFits(t *testing.T) {
	for n, want := range map[int]string{200: "", 201: "a lab of 201 hosts is larger than 200, each of which runs an agent: take a smaller substrate"} {
		got := ""
		if err := Fits(star(n)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d hosts: %q", n, got)
		}
	}
	if err := Fits(vnet.Substrate{Switches: make([]string, 201)}); err == nil {
		t.Error("201 switches fit")
	}
}

func TestRefusals(t *testing.T) {
	good := Spec{Run: "/run/sublet-test", Exe: "/bin/true", Substrate: demo()}
	cases := map[string]struct {
		change func(*Spec)
		want   string
	}{
		"no hosts":     {func(s *Spec) { s.Substrate = vnet.Substrate{} }, "at least one host"},
		"bad name":     {func(s *Spec) { s.Name = "a/b" }, "is not a name"},
		"no program":   {func(s *Spec) { s.Exe = "" }, "program"},
		"root's run":   {func(s *Spec) { s.Run = "/run" }, "not a directory of the lab's own"},
		"parent's":     {func(s *Spec) { s.Run = "/run/x/.." }, "not a directory of the lab's own"},
		"same address": {func(s *Spec) { s.Substrate.Hosts = append(s.Substrate.Hosts, s.Substrate.Hosts[0]) }, "already"},
	}
	for name, c := range cases {
		spec := good
		c.change(&spec)
		if _, err := Up(t.Context(), spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Following the ways hop by hop gives the shortest path, found here by trying
// all, the same one in both directions.
func TestFabric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sub := randomFabric(t)
		ways, err := forwarding(sub)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range sub.Switches {
			for _, to := range sub.Switches {
				got, want := follow(sub, ways, from, to), shortest(sub, from, to)
				if !slices.Equal(got, want) {
					t.Fatalf("%s to %s: %v, want %v", from, to, got, want)
				}
				back := follow(sub, ways, to, from)
				slices.Reverse(back)
				if !slices.Equal(got, back) {
					t.Fatalf("%s to %s: %v, back %v", from, to, got, back)
				}
			}
		}
	})
}

func randomFabric(t *rapid.T) vnet.Substrate {
	sub := hosts(1)
	n := rapid.IntRange(1, 5).Draw(t, "switches")
	for i := range n {
		sub.Switches = append(sub.Switches, fmt.Sprintf("s%d", i))
	}
	names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f", "g"}).Draw(t, "names")
	ends := rapid.SampledFrom(append([]string{"h1"}, sub.Switches...))
	for _, name := range names[:rapid.IntRange(0, len(names)).Draw(t, "links")] {
		a, b := ends.Draw(t, "a"), ends.Draw(t, "b")
		if a == b {
			continue
		}
		join(&sub, name, a, b, vnet.Gbit)
		sub.Links[len(sub.Links)-1].Latency = time.Duration(rapid.IntRange(0, 2).Draw(t, "latency"))
	}
	return sub
}

// follow walks as packets do; nil: there is no way.
func follow(sub vnet.Substrate, ways map[string]map[string]int, from, to string) []string {
	path := []string{}
	for from != to {
		index, ok := ways[to][from]
		if !ok {
			return nil
		}
		path = append(path, sub.Links[index].Name)
		from, _ = across(sub.Links[index], from)
	}
	return path
}

// shortest tries every simple path through switches.
func shortest(sub vnet.Substrate, from, to string) (best []string) {
	var least trail
	var walk func(at string, seen []string, path []string, t trail)
	walk = func(at string, seen, path []string, t trail) {
		if at == to && (best == nil || t.before(least)) {
			best, least = slices.Clone(path), t
			if best == nil {
				best = []string{}
			}
		}
		for i, link := range sub.Links {
			next, ok := across(link, at)
			if ok && slices.Contains(sub.Switches, next) && !slices.Contains(seen, next) {
				walk(next, append(slices.Clone(seen), next), append(slices.Clone(path), link.Name), t.then(i, link))
			}
		}
	}
	walk(from, []string{from}, []string{}, trail{})
	return best
}

// trail is a way through switches: the fabric takes the one with the fewest
// hops, then the least latency, then the alphabetically first link that is not
// on both. The order holds when both grow by the same link and does not depend
// on direction, so a part of a fixed way is a fixed way and hop-by-hop
// forwarding follows it.
type trail struct {
	hops    int
	latency time.Duration
	links   []string // sorted
	last    int      // index of the link that was added last
}

func (t trail) before(u trail) bool {
	if t.hops != u.hops {
		return t.hops < u.hops
	}
	if t.latency != u.latency {
		return t.latency < u.latency
	}
	return slices.Compare(t.links, u.links) < 0
}

func (t trail) then(index int, l vnet.SubstrateLink) trail {
	links := append(slices.Clone(t.links), l.Name)
	slices.Sort(links)
	return trail{hops: t.hops + 1, latency: t.latency + l.Latency, links: links, last: index}
}

// across is the other end of a link.
func across(l vnet.SubstrateLink, from string) (string, bool) {
	switch from {
	case l.Ends[0]:
		return l.Ends[1], true
	case l.Ends[1]:
		return l.Ends[0], true
	}
	return "", false
}
