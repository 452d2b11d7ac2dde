package iplbd

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"sublet/plan"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// fixture is what FRR 8.4.4 printed on the host of a diamond: a - s1 - {m1,
// m2} - s2, relays 10.255.0.1 to .4.
func fixture(t testing.TB) Database {
	t.Helper()
	self, instances, err := parseSummary(read(t, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	routers, err := parseRouters(read(t, "routers.json"))
	if err != nil {
		t.Fatal(err)
	}
	for id := range routers {
		if instances[id].sequence == "" {
			t.Errorf("router %s has no instance", id)
		}
	}
	return Database{Self: self, Routers: routers}
}

func texts(c Computed) []string {
	var lines []string
	for _, s := range c.Spreads {
		lines = append(lines, fmt.Sprintf("%s also %v", s, s.Also))
		for _, p := range s.Paths {
			lines = append(lines, fmt.Sprintf("  turn %s back %v", p.Turn, p.Back))
		}
	}
	return lines
}

func TestPathsFromWhatFRRSays(t *testing.T) {
	db := fixture(t)
	if db.Self != netip.MustParseAddr("10.254.0.1") || len(db.Routers) != 5 {
		t.Fatalf("%s with %d routers", db.Self, len(db.Routers))
	}
	c, err := Compute(db, Choice{Paths: 4, Mode: plan.PerFlow}, Computed{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"10.255.0.2/32 flow []*7 [10.255.0.3 10.255.0.4] also []",
		"  turn 10.255.0.2 back []",
		"  turn 10.255.0.2 back [10.255.0.4 10.255.0.3]",
		"10.255.0.3/32 flow []*7 [10.255.0.2 10.255.0.4] also []",
		"  turn 10.255.0.3 back []",
		"  turn 10.255.0.3 back [10.255.0.4 10.255.0.2]",
		"10.255.0.4/32 flow [10.255.0.2] [10.255.0.3] also [10.1.6.0/30]",
		"  turn 10.255.0.4 back [10.255.0.2]",
		"  turn 10.255.0.4 back [10.255.0.3]",
	}
	if got := texts(c); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	even, err := Compute(db, Choice{Paths: 4, Even: true}, Computed{})
	if err != nil || slices.ContainsFunc(texts(even), func(line string) bool { return strings.Contains(line, "*") }) {
		t.Errorf("evenly: %q, %v", texts(even), err)
	}
	short, err := Compute(db, Choice{Paths: 4, Stretch: 1}, Computed{})
	if err != nil || len(short.Spreads) != 3 || len(short.Spreads[0].Paths) != 1 || len(short.Spreads[2].Paths) != 2 {
		t.Errorf("no longer than the shortest: %q, %v", texts(short), err)
	}
}

// cut takes the links between two routers out of what one of them says, as the
// first news of a failure does.
func cut(db Database, at, other string) Database {
	routers := make(map[netip.Addr]Router)
	for id, r := range db.Routers {
		r.Links = slices.Clone(r.Links)
		if id.String() == at {
			r.Links = slices.DeleteFunc(r.Links, func(l RouterLink) bool { return l.Neighbour.String() == other })
		}
		routers[id] = r
	}
	return Database{db.Self, routers}
}

func TestPathsOverALostLinkGoAtOnce(t *testing.T) {
	db := fixture(t)
	c, err := Compute(db, Choice{Paths: 4}, Computed{})
	if err != nil {
		t.Fatal(err)
	}
	left, lost := c.Without(cut(db, "10.255.0.2", "10.255.0.4"))
	if !lost {
		t.Fatal("nothing is lost")
	}
	var got []string
	for _, s := range left.Spreads {
		got = append(got, s.String())
	}
	want := []string{"10.255.0.2/32 flow []*7", "10.255.0.3/32 flow []*7", "10.255.0.4/32 flow [10.255.0.3]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	if again, lost := left.Without(cut(db, "10.255.0.2", "10.255.0.4")); lost || len(again.Spreads) != 3 {
		t.Error("something is lost twice")
	}
	if _, lost := c.Without(db); lost {
		t.Error("something is lost without a loss")
	}
	if _, err := Compute(cut(db, "10.254.0.1", "10.255.0.1"), Choice{Paths: 4}, Computed{}); err == nil {
		t.Error("paths for a host without a link")
	}
}

// randomDatabase is a random fabric of switches, each with a host.
func randomDatabase(rng *rand.Rand, switches, links int) Database {
	db := Database{Routers: make(map[netip.Addr]Router)}
	id := func(kind, i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(kind), byte(i >> 8), byte(i)}) }
	number := 0
	join := func(a, b netip.Addr) {
		cost := 1 + rng.IntN(3)
		for end, pair := range [][2]netip.Addr{{a, b}, {b, a}} {
			r := db.Routers[pair[0]]
			address := netip.AddrFrom4([4]byte{172, 16 + byte(number>>14), byte(number >> 6), byte(number<<2 + 1 + end)})
			r.Links = append(r.Links, RouterLink{pair[1], address, cost})
			r.Stubs = append(r.Stubs, netip.PrefixFrom(address, 30).Masked())
			db.Routers[pair[0]] = r
		}
		number++
	}
	for i := range switches {
		for kind := range 2 {
			db.Routers[id(kind, i)] = Router{ID: id(kind, i), Stubs: []netip.Prefix{netip.PrefixFrom(id(kind, i), 32)}}
		}
	}
	for i := range switches {
		join(id(0, i), id(1, i))
		join(id(0, i), id(0, (i+1)%switches))
	}
	for range links {
		if a, b := rng.IntN(switches), rng.IntN(switches); a != b {
			join(id(0, a), id(0, b)) // parallel ones too
		}
	}
	db.Self = id(1, 0)
	return db
}

// walk forwards a packet through the database's own routes, choosing at random
// among equal ones, by addresses only; it is the reference of fabric.Follow.
func walk(t *testing.T, db Database, rng *rand.Rand, from, to netip.Addr) []netip.Addr {
	owner, direct := make(map[netip.Addr]netip.Addr), make(map[netip.Addr]bool)
	for id, r := range db.Routers {
		for _, p := range r.Stubs {
			if p.IsSingleIP() {
				owner[p.Addr()] = id
			}
		}
		for _, l := range r.Links {
			owner[l.Address], direct[l.Address] = id, true
		}
	}
	target := owner[to]
	dist := map[netip.Addr]int{target: 0}
	for range db.Routers { // Bellman and Ford
		for id, r := range db.Routers {
			for _, l := range r.Links {
				if d, known := dist[l.Neighbour]; known {
					if mine, known := dist[id]; !known || d+l.Cost < mine {
						dist[id] = d + l.Cost
					}
				}
			}
		}
	}
	path := []netip.Addr{from}
	for from != target {
		var next []netip.Addr
		for _, l := range db.Routers[from].Links {
			if dist[l.Neighbour]+l.Cost == dist[from] {
				next = append(next, l.Neighbour)
			}
		}
		if direct[to] { // a connected network comes before any route
			for _, l := range db.Routers[from].Links {
				if netip.PrefixFrom(l.Address, 30).Masked().Contains(to) {
					next = []netip.Addr{target}
				}
			}
		}
		if len(next) == 0 {
			t.Fatalf("%s does not reach %s", from, to)
		}
		from = next[rng.IntN(len(next))]
		path = append(path, from)
	}
	return path
}

// Whatever the switches do with equal ways, a packet with a list takes the
// path that the list is said to be, also where it was computed before a link
// went, or before one came. Paths that stay keep their lists unless shorter ones do.
func TestListsPinTheirPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 2))
	kept := 0
	for range 8 {
		db := randomDatabase(rng, 4+rng.IntN(12), rng.IntN(20))
		c := computed(t, db, rng, Computed{})
		var switches []netip.Addr
		for _, s := range c.Spreads {
			switches = append(switches, s.Prefix.Addr())
		}
		for _, at := range switches[:min(3, len(switches))] {
			for _, l := range db.Routers[at].Links[:1] {
				less := cut(cut(db, at.String(), l.Neighbour.String()), l.Neighbour.String(), at.String())
				left, _ := c.Without(less)
				if f, err := newFabric(less); err != nil || f.own < 0 || len(f.graph.Leaving(f.own)) == 0 {
					continue
				}
				fresh, again := computed(t, less, rng, Computed{}), computed(t, less, rng, left)
				kept += stays(t, left, fresh, again)
				computed(t, db, rng, again) // and the link is back
			}
		}
	}
	if kept == 0 {
		t.Error("no path has kept a list that would be another one now")
	}
}

// computed is a database's paths, of which each list leads over its path.
func computed(t *testing.T, db Database, rng *rand.Rand, before Computed) Computed {
	t.Helper()
	c, err := Compute(db, Choice{Paths: 6}, before)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Spreads) == 0 {
		t.Fatal("no paths")
	}
	for _, s := range c.Spreads {
		for i, p := range s.Paths {
			want := []netip.Addr{c.hops[s.Prefix][i][0].from}
			for _, h := range c.hops[s.Prefix][i] {
				want = append(want, h.to)
			}
			for range 2 {
				got := follow(t, db, rng, want[0], append(slices.Clone(p.Relays), p.Turn))
				if !slices.Equal(got, want) {
					t.Fatalf("%v leads over %v, said to be %v", p.Relays, got, want)
				}
				slices.Reverse(got)
				back := follow(t, db, rng, want[len(want)-1], append(slices.Clone(p.Back), loopback(db.Routers[want[0]])))
				if len(p.Back) > 0 && !slices.Equal(got, back) {
					t.Fatalf("%v leads back over %v, the path is %v", p.Back, back, got)
				}
			}
		}
	}
	return c
}

// stays checks that paths have as few relays as if nothing had been before, and
// the same as before if these were as few; it counts those that would have
// others.
func stays(t *testing.T, before, fresh, again Computed) (kept int) {
	t.Helper()
	was, anew := before.byPrefix(), fresh.byPrefix()
	for prefix, all := range again.byPrefix() {
		for _, now := range all {
			same := func(k chosenPath) bool { return slices.Equal(k.hops, now.hops) }
			old, other := slices.IndexFunc(was[prefix], same), slices.IndexFunc(anew[prefix], same)
			if other < 0 {
				t.Fatalf("to %s over %v: nobody else would go there", prefix, now.hops)
			}
			relays := anew[prefix][other].Relays
			if len(now.Relays) > len(relays) {
				t.Errorf("%v, though %v pins the same", now.Relays, relays)
			}
			if old < 0 || slices.Equal(was[prefix][old].Relays, relays) {
				continue
			}
			if slices.Equal(now.Relays, was[prefix][old].Relays) {
				kept++
			} else if slices.Equal(now.Relays, relays) && len(relays) == len(was[prefix][old].Relays) {
				t.Logf("%v became %v", was[prefix][old].Relays, relays) // it pins no more
			}
		}
	}
	return kept
}

func follow(t *testing.T, db Database, rng *rand.Rand, from netip.Addr, relays []netip.Addr) []netip.Addr {
	path := []netip.Addr{from}
	for _, to := range relays {
		part := walk(t, db, rng, path[len(path)-1], to)
		path = append(path, part[1:]...)
	}
	return path
}

func FuzzLinkState(f *testing.F) {
	f.Add(read(f, "summary.json"))
	f.Add(read(f, "routers.json"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _, _ = parseSummary(text)
		routers, err := parseRouters(text)
		if err != nil {
			return
		}
		for self := range routers {
			_, _ = Compute(Database{Self: self, Routers: routers}, Choice{Paths: 3}, Computed{})
		}
	})
}
