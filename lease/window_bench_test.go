package lease

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sublet/vnet"
	"sublet/vnet/topology"
)

// BenchmarkWindow opens the window of a network of ten nodes beside many that
// run, and ends it: rates and plans follow twice. Hosts do not report, so what
// grows is not handed over but once.
func BenchmarkWindow(b *testing.B) {
	for _, name := range []string{"fat-tree:8", "fat-tree:16"} {
		for _, beside := range []int{0, 600} {
			b.Run(fmt.Sprintf("%s/%d", name, beside), func(b *testing.B) { benchmarkWindow(b, name, beside) })
		}
	}
}

func benchmarkWindow(b *testing.B, name string, beside int) {
	sub, _, err := topology.Named(name)
	if err != nil {
		b.Fatal(err)
	}
	topology.Sizes{CPU: 64 * vnet.Core, Memory: 256 * vnet.GiB, Capacity: 40 * vnet.Gbit}.Apply(&sub)
	random := rand.New(rand.NewPCG(1, 2))
	book := New(sub)
	for i := range beside {
		r := ten(random, fmt.Sprintf("beside%d", i))
		r.Start = noon.Add(time.Second)
		if _, err := book.Admit(noon, r, 1); err != nil {
			b.Fatal(err)
		}
	}
	now := noon.Add(time.Second)
	if err := book.Tick(now); err != nil {
		b.Fatal(err)
	}
	book.Saved()
	fresh := ten(random, "new")
	for b.Loop() {
		b.StopTimer()
		fresh.Start = now.Add(time.Second)
		if _, err := book.Admit(now, fresh, 1); err != nil {
			b.Fatal(err)
		}
		now = fresh.Start
		b.StartTimer()
		if err := book.Tick(now); err != nil {
			b.Fatal(err)
		}
		if err := book.Release(now, vnet.LeaseID{Tenant: "alice", Network: "new"}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		obeyAt(b, book, now)
		book.Saved()
		b.StartTimer()
	}
}

// ten is a request of ten nodes in a random tree with five more links.
func ten(random *rand.Rand, name string) vnet.Request {
	r := vnet.Request{Tenant: "alice", Network: vnet.VNetID(name), For: time.Hour, Colocate: vnet.ColocateForbidden}
	for i := range 10 {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprintf("v%d", i), CPU: 100})
	}
	link := func(a, b int) {
		both := vnet.Bandwidth{Min: 10 * vnet.Mbit, Max: 20 * vnet.Mbit}
		r.Links = append(r.Links, vnet.VirtualLink{Ends: [2]string{r.Nodes[a].Name, r.Nodes[b].Name}, Bandwidth: [2]vnet.Bandwidth{both, both}})
	}
	for i := 1; i < 10; i++ {
		link(random.IntN(i), i)
	}
	for i := range 5 {
		link(i, i+1+random.IntN(9-i))
	}
	return r
}
