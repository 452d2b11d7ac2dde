package lease

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sublet/embed"
	"sublet/vnet"
)

// TestRetriesBeforeARefusal: a request that the first look does not place
// and the second does is admitted, and nothing else is.
func TestRetriesBeforeARefusal(t *testing.T) {

	random := rand.New(rand.NewPCG(3, 1))
	b := New(sparse(random, 20))
	b.MostMoves = 0
	if err := b.Tick(noon); err != nil {
		t.Fatal(err)
	}
	refused, again := 0, 0
	for i := range 16 {
		r := crowd(random, i)
		r.Fill()
		_, first := b.embed(b.calendar, r, windowOf(noon, r))
		_, either := b.view(noon).with(b.solver, new(Effort)).embedWithRetry(r, windowOf(noon, r))
		if first == nil && either != nil {
			t.Fatalf("%s: the first look places it, both together do not: %v", r.Network, either)
		}
		if first != nil && either == nil {
			again++
		}
		if either != nil {
			if refused++; refused > 1 {
				continue // its offers take long
			}
		}
		_, err := b.Admit(noon, r, 0)
		if rejection := new(vnet.Rejection); err != nil && !errors.As(err, &rejection) {
			t.Fatal(err)
		}
		if (err == nil) != (either == nil) {
			t.Fatalf("%s: admitted %v, found %v", r.Network, err, either)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused: the substrate is not full")
	}
	t.Logf("%d refused, %d placed by the second look alone", refused, again)
}

// TestRetryIsLonger: it has more to spend than the first, from elsewhere.
func TestRetryIsLonger(t *testing.T) {
	if o := (embed.Options{}); retryPatience <= max(1, o.Patience) || retrySeed == o.Seed {
		t.Errorf("the second look is the first: patience %d, seed %d", retryPatience, retrySeed)
	}
}

// sparse is a ring of hosts with half as many chords.
func sparse(random *rand.Rand, hosts int) vnet.Substrate {
	var sub vnet.Substrate
	for i := range hosts {
		describe(&sub, []string{"host", fmt.Sprintf("h%d", i)})
	}
	for i := range hosts {
		describe(&sub, []string{"link", fmt.Sprintf("h%d", i), fmt.Sprintf("h%d", (i+1)%hosts), fmt.Sprint(50 + random.IntN(50))})
		if i%2 == 0 {
			describe(&sub, []string{"link", fmt.Sprintf("h%d", i), fmt.Sprintf("h%d", (i+2+random.IntN(hosts-4))%hosts), fmt.Sprint(50 + random.IntN(50))})
		}
	}
	return sub
}

// crowd is a network of 7 to 10 nodes on hosts of their own.
func crowd(random *rand.Rand, i int) vnet.Request {
	r := vnet.Request{Tenant: "alice", Network: vnet.VNetID(fmt.Sprintf("n%d", i)), For: time.Hour, Start: noon.Add(time.Hour),
		Colocate: vnet.ColocateForbidden, Negotiable: []vnet.Axis{vnet.AxisLatency}}
	for v := range 7 + random.IntN(4) {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprintf("v%d", v), CPU: 10})
		for u := range v {
			if u == v-1 || random.IntN(3) == 0 {
				min := vnet.Bandwidth{Min: vnet.Rate(1+random.IntN(15)) * vnet.Mbit}
				min.Max = min.Min
				r.Links = append(r.Links, vnet.VirtualLink{Ends: [2]string{fmt.Sprintf("v%d", u), fmt.Sprintf("v%d", v)}, Bandwidth: [2]vnet.Bandwidth{min, min}})
			}
		}
	}
	return r
}
