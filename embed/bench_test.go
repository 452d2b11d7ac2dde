package embed

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// flat is a random substrate in which every node is a host: a ring with chords.
func flat(hosts, chords int) vnet.Substrate {
	random := rand.New(rand.NewPCG(1, 2))
	var sub vnet.Substrate
	join := func(a, b int) {
		sub.Links = append(sub.Links, vnet.SubstrateLink{
			Name: fmt.Sprintf("w%d", len(sub.Links)), Ends: [2]string{fmt.Sprintf("h%d", a), fmt.Sprintf("h%d", b)},
			Capacity: vnet.Rate(1+random.IntN(10)) * vnet.Gbit, Latency: time.Duration(1+random.IntN(5)) * time.Millisecond,
		})
	}
	for i := range hosts {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(fmt.Sprintf("h%d", i)), Site: fmt.Sprintf("site%d", i%4), CPU: 4 * vnet.Core, Memory: 8 * vnet.GiB})
		join(i, (i+1)%hosts)
	}
	for range chords {
		a := random.IntN(hosts)
		join(a, (a+1+random.IntN(hosts-1))%hosts)
	}
	return sub
}

// racks is a leaf-spine substrate: hosts at leaves, every leaf at every spine.
func racks(hosts, leaves, spines int) vnet.Substrate {
	var sub vnet.Substrate
	for i := range leaves + spines {
		sub.Switches = append(sub.Switches, fmt.Sprintf("s%d", i))
	}
	join := func(a, b string, capacity vnet.Rate) {
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: a + "-" + b, Ends: [2]string{a, b}, Capacity: capacity, Latency: time.Millisecond})
	}
	for i := range hosts {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(fmt.Sprintf("h%d", i)), Site: fmt.Sprintf("site%d", i%4), CPU: 4 * vnet.Core, Memory: 8 * vnet.GiB})
		join(fmt.Sprintf("h%d", i), sub.Switches[i%leaves], 2*vnet.Gbit)
	}
	for l := range leaves {
		for s := range spines {
			join(sub.Switches[l], sub.Switches[leaves+s], 10*vnet.Gbit)
		}
	}
	return sub
}

// mesh is a random connected request.
func mesh(nodes, links int, seed uint64) vnet.Request {
	random := rand.New(rand.NewPCG(seed, 0))
	r := vnet.Request{Network: "mesh"}
	for i := range nodes {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprintf("n%d", i), CPU: vnet.CPU(500 + random.IntN(1500)), Memory: vnet.GiB})
	}
	for i := range links {
		a := random.IntN(nodes)
		b := (a + 1 + random.IntN(nodes-1)) % nodes
		if i+1 < nodes {
			a, b = i+1, random.IntN(i+1)
		}
		rate := vnet.Rate(10+random.IntN(190)) * vnet.Mbit
		r.Links = append(r.Links, vnet.VirtualLink{Name: fmt.Sprintf("l%d", i), Ends: [2]string{r.Nodes[a].Name, r.Nodes[b].Name},
			Bandwidth: [2]vnet.Bandwidth{{Min: rate, Max: 2 * rate}, {Min: rate / 2, Max: rate}}, Latency: 40 * time.Millisecond})
	}
	return r
}

// admit embeds and books.
func admit(t testing.TB, sub vnet.Substrate, cal *calendar.Calendar, r vnet.Request, w vnet.Window) error {
	mapping, err := embedOn(sub, cal, r, w)
	if err != nil {
		return err
	}
	bookings, err := bookingsOn(sub, r, w, mapping)
	if err != nil {
		t.Fatal(err)
	}
	return cal.Book(bookings...)
}

// BenchmarkEmbed50on100 is the admission of one 50-node request with 80 links
// on 100 hosts, empty and half full; it must stay well under 20 ms.
func BenchmarkEmbed50on100(b *testing.B) {
	for name, sub := range map[string]vnet.Substrate{"flat": flat(100, 150), "racks": racks(100, 10, 4)} {
		for _, before := range []int{0, 2} {
			cal := calendar.New()
			w := vnet.Window{Start: epoch, End: epoch.Add(time.Hour)}
			for i := range before {
				if err := admit(b, sub, cal, mesh(50, 80, uint64(i)), w); err != nil {
					b.Fatal(err)
				}
			}
			b.Run(fmt.Sprintf("%s/before=%d", name, before), func(b *testing.B) {
				r := mesh(50, 80, 7)
				for b.Loop() {
					if err := admit(b, sub, cal.Clone(), r, w); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkEmbed1000on4 is a thousand nodes in a chain of a thousand links; it
// must stay under 2 s.
func BenchmarkEmbed1000on4(b *testing.B) {
	sub := racks(4, 1, 1)
	for i := range sub.Hosts {
		sub.Hosts[i].CPU, sub.Hosts[i].Memory = 300*vnet.Core, 300*vnet.GiB
	}
	r := mesh(1000, 1000, 3)
	for i := range r.Nodes {
		r.Nodes[i].CPU = vnet.Core
	}
	for i := range r.Links {
		r.Links[i].Bandwidth = [2]vnet.Bandwidth{vnet.Static(vnet.Mbit), vnet.Static(vnet.Mbit)}
	}
	for b.Loop() {
		if err := admit(b, sub, calendar.New(), r, vnet.Window{Start: epoch}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRefuse is a request for which nothing is found, on 100 hosts: every
// attempt fails, and then the exhaustive search gives up.
func BenchmarkRefuse(b *testing.B) {
	for name, sub := range map[string]vnet.Substrate{"flat": flat(100, 150), "racks": racks(100, 10, 4)} {
		for _, nodes := range []int{5, 50} {
			r := mesh(nodes, 2*nodes, 7)
			for i := range r.Nodes {
				r.Nodes[i].CPU = 3 * vnet.Core
			}
			for i := range r.Links {
				r.Links[i].Bandwidth = [2]vnet.Bandwidth{vnet.Static(6 * vnet.Gbit), vnet.Static(6 * vnet.Gbit)}
			}
			b.Run(fmt.Sprintf("%s/nodes=%d", name, nodes), func(b *testing.B) {
				for b.Loop() {
					if err := admit(b, sub, calendar.New(), r, vnet.Window{Start: epoch}); err == nil {
						b.Fatal("embedded")
					}
				}
			})
		}
	}
}
