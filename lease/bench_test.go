package lease

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// hundred is a substrate of 100 hosts: ten racks of a switch and ten hosts,
// switches in a ring with chords.
func hundred() vnet.Substrate {
	var sub vnet.Substrate
	for rack := range 10 {
		s := fmt.Sprintf("s%d", rack)
		describe(&sub, []string{"switch", s})
		for i := range 10 {
			h := fmt.Sprintf("h%d-%d", rack, i)
			describe(&sub, []string{"host", h, fmt.Sprintf("site%d", rack)})
			describe(&sub, []string{"link", h, s, "10000"})
		}
	}
	for rack := range 10 {
		for _, step := range []int{1, 3} {
			describe(&sub, []string{"link", fmt.Sprintf("s%d", rack), fmt.Sprintf("s%d", (rack+step)%10), "40000"})
		}
	}
	return sub
}

// fifty is a request of 50 nodes in a random tree with some more links.
func fifty(random *rand.Rand, name string, low vnet.Rate) vnet.Request {
	r := vnet.Request{Tenant: "alice", Network: vnet.VNetID(name), For: time.Hour}
	for i := range 50 {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprintf("v%d", i), CPU: 250})
	}
	link := func(a, b int) {
		b1 := vnet.Bandwidth{Min: low, Max: 4 * low}
		r.Links = append(r.Links, vnet.VirtualLink{
			Ends: [2]string{r.Nodes[a].Name, r.Nodes[b].Name}, Bandwidth: [2]vnet.Bandwidth{b1, b1},
		})
	}
	for i := 1; i < 50; i++ {
		link(random.IntN(i), i)
	}
	for range 10 {
		a := random.IntN(49)
		link(a, a+1+random.IntN(49-a))
	}
	return r
}

// BenchmarkAdmit50On100 is the admission of a 50-node request on a substrate
// of 100 hosts that carries ten others already.
func BenchmarkAdmit50On100(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	book := New(hundred())
	for i := range 10 {
		if _, err := book.Admit(noon, fifty(random, fmt.Sprintf("before%d", i), 20*vnet.Mbit), 1); err != nil {
			b.Fatal(err)
		}
	}
	request := fifty(random, "new", 20*vnet.Mbit)
	for b.Loop() {
		if _, err := book.Admit(noon, request, 1); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		obey(b, book)
		if err := book.Release(noon, vnet.LeaseID{Tenant: "alice", Network: "new"}); err != nil {
			b.Fatal(err)
		}
		obey(b, book)
		b.StartTimer()
	}
}

// BenchmarkRefuse50On100 is a refusal with its offer.
func BenchmarkRefuse50On100(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	book := New(hundred())
	for i := range 10 {
		if _, err := book.Admit(noon, fifty(random, fmt.Sprintf("before%d", i), 20*vnet.Mbit), 1); err != nil {
			b.Fatal(err)
		}
	}
	request := fifty(random, "new", 9*vnet.Gbit)
	for b.Loop() {
		_, err := book.Admit(noon, request, 1)
		var refused *vnet.Rejection
		if !errors.As(err, &refused) || refused.Offer == nil {
			b.Fatalf("want a refusal with an offer, got %v", err)
		}
	}
}

// BenchmarkReport is one host's sign of life in a book of 1,000 running leases.
func BenchmarkReport(b *testing.B) {
	book := New(hundred())
	for i := range 1000 {
		r := vnet.Request{Tenant: "alice", Network: vnet.VNetID(fmt.Sprintf("n%d", i))}
		r.Nodes = []vnet.VirtualNode{{Name: "a"}, {Name: "b"}}
		r.Links = []vnet.VirtualLink{{Ends: [2]string{"a", "b"}, Bandwidth: [2]vnet.Bandwidth{{Max: vnet.Gbit}, {Max: vnet.Gbit}}}}
		r.Start = noon.Add(time.Second)
		if _, err := book.Admit(noon, r, 1); err != nil {
			b.Fatal(err)
		}
	}
	now := noon.Add(time.Second)
	if err := book.Tick(now); err != nil {
		b.Fatal(err)
	}
	p, _ := book.Plan("h0-0")
	for b.Loop() {
		if err := book.Report(now, report.Report{Host: "h0-0", Revision: p.Revision}); err != nil {
			b.Fatal(err)
		}
	}
}

// obey lets every host go through its plan.
func obey(b *testing.B, book *Book) { obeyAt(b, book, noon) }

func obeyAt(b *testing.B, book *Book, now time.Time) {
	for host, p := range book.Plans() {
		if err := book.Report(now, report.Report{Host: host, Revision: p.Revision}); err != nil {
			b.Fatal(err)
		}
	}
}
