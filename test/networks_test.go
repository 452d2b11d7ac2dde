package test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// randomNetworks is how many TestSoakRandomNetworks makes, each of its own seed.
const randomNetworks = 8

// TestSoakRandomNetworks: nodes, routers and switches of every kind, joined and
// placed at random, reach whom the drawing says they reach. Nobody prepared
// them, so they find what examples do not. $SUBLET_TEST_SEED has others.
func TestSoakRandomNetworks(t *testing.T) {
	t.Parallel()
	first := uint64(1)
	if os.Getenv(seedVariable) != "" {
		first = seed(t)
	}
	l := newLab(t, "star:3")
	for n := range uint64(randomNetworks) {
		d := draw(rand.New(rand.NewPCG(first+n, 0)))
		t.Run(fmt.Sprint(first+n), func(t *testing.T) {
			l := &lab{t: t, run: l.run}
			l.up(d.text)
			for _, pair := range d.reaching() {
				eventually(t, 60*time.Second, func() error {
					if r := l.sublet("exec", "drawn/"+pair[0], "--", "ping", "-q", "-c", "1", "-W", "1", pair[1]); r.code != 0 {
						return errors.New(pair[0] + " to " + pair[1] + ": " + r.out + r.err + d.text)
					}
					return nil
				})
			}
			l.settled()
			l.must("down", "drawn")
		})
		if t.Failed() {
			return // the network may be in the way of the next
		}
	}
}

// drawing is a random network.
type drawing struct {
	text  string // as a request
	nodes []string
	links [][2]string
}

func draw(r *rand.Rand) drawing {
	d := drawing{text: "network: drawn\n"}
	var all []string
	list := func(title string, count int, more func() string) (names []string) {
		var items []string
		for i := range count {
			names = append(names, fmt.Sprint(title[:1], i))
			items = append(items, fmt.Sprintf("{name: %s%s%s}", names[i], chance(r, 0.6, fmt.Sprintf(", host: h%d", 1+r.IntN(3))), more()))
		}
		d.text += title + ": [" + strings.Join(items, ", ") + "]\n"
		all = append(all, names...)
		return names
	}
	routing := ""
	if haveFRR() {
		routing = chance(r, 0.5, ", protocol: ospf")
	}
	d.nodes = list("nodes", 2+r.IntN(4), func() string { return "" })
	list("routers", r.IntN(4), func() string { return routing })
	list("switches", r.IntN(4), func() string { return chance(r, 0.4, ", kind: vxswitch") })
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := 1; i < len(all); i++ {
		d.link(all[i], all[r.IntN(i)])
	}
	for range r.IntN(4) {
		d.link(all[r.IntN(len(all))], all[r.IntN(len(all))])
	}
	d.text += "links:\n"
	for _, ends := range d.links {
		rate := []string{"rate: 10Mbit", "min: 5Mbit, max: 20Mbit", "rate: 20Mbit, reverse: {rate: 5Mbit}", "max: 10Mbit"}[r.IntN(4)]
		d.text += fmt.Sprintf("  - {ends: [%s, %s], %s}\n", ends[0], ends[1], rate)
	}
	return d
}

func chance(r *rand.Rand, of float64, text string) string {
	if r.Float64() < of {
		return text
	}
	return ""
}

// link joins two that are not joined.
func (d *drawing) link(a, b string) {
	if a != b && !slices.Contains(d.links, [2]string{a, b}) && !slices.Contains(d.links, [2]string{b, a}) {
		d.links = append(d.links, [2]string{a, b})
	}
}

// reaching are the pairs of nodes with a way between them through routers and
// switches only: nodes do not forward.
func (d *drawing) reaching() (pairs [][2]string) {
	for _, from := range d.nodes {
		seen := []string{from}
		for i := 0; i < len(seen); i++ {
			if i > 0 && slices.Contains(d.nodes, seen[i]) {
				pairs = append(pairs, [2]string{from, seen[i]})
				continue
			}
			for _, l := range d.links {
				for end, at := range l {
					if at == seen[i] && !slices.Contains(seen, l[1-end]) {
						seen = append(seen, l[1-end])
					}
				}
			}
		}
	}
	return pairs
}
