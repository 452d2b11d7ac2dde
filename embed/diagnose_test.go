package embed

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// lyonNancy is two hosts at lyon and one at nancy behind two switches.
//
//	h1 --2Gbit-- s1 --1Gbit-- s2 --2Gbit-- h3
//	h2 --2Gbit-- s1
func lyonNancy() vnet.Substrate {
	link := func(a, b string, capacity vnet.Rate, latency time.Duration) vnet.SubstrateLink {
		return vnet.SubstrateLink{Name: a + "-" + b, Ends: [2]string{a, b}, Capacity: capacity, Latency: latency}
	}
	return vnet.Substrate{
		Hosts: []vnet.SubstrateNode{
			{Name: "h1", Site: "lyon", CPU: 4 * vnet.Core, Memory: 4 * vnet.GiB, Capacity: vnet.Gbit},
			{Name: "h2", Site: "lyon", CPU: 2 * vnet.Core, Memory: 8 * vnet.GiB},
			{Name: "h3", Site: "nancy", CPU: 4 * vnet.Core, Memory: 4 * vnet.GiB},
		},
		Switches: []string{"s1", "s2"},
		Links: []vnet.SubstrateLink{
			link("h1", "s1", 2*vnet.Gbit, time.Millisecond),
			link("h2", "s1", 2*vnet.Gbit, time.Millisecond),
			link("s1", "s2", vnet.Gbit, 10*time.Millisecond),
			link("h3", "s2", 2*vnet.Gbit, time.Millisecond),
		},
	}
}

func pair(a, b vnet.VirtualNode, l vnet.VirtualLink) vnet.Request {
	l.Name, l.Ends = "back", [2]string{a.Name, b.Name}
	return vnet.Request{Network: "mine", Topology: vnet.Topology{Nodes: []vnet.VirtualNode{a, b}, Links: []vnet.VirtualLink{l}}}
}

func both(b vnet.Bandwidth) vnet.VirtualLink {
	return vnet.VirtualLink{Bandwidth: [2]vnet.Bandwidth{b, b}}
}

func one(n vnet.VirtualNode) vnet.Request {
	n.Name = "n1"
	return vnet.Request{Network: "mine", Topology: vnet.Topology{Nodes: []vnet.VirtualNode{n}}}
}

// TestReasons: a refusal says in words what binds, and until when, and never
// whose booking it is.
func TestReasons(t *testing.T) {
	at := func(name string, host vnet.HostID) vnet.VirtualNode { return vnet.VirtualNode{Name: name, Host: host} }
	for _, c := range []struct {
		name     string
		before   []vnet.Request // booked from 08:00 to 14:00, in order
		request  vnet.Request   // from 10:00 on
		want     []string
		concerns string
	}{
		{
			name:    "no such host",
			request: one(vnet.VirtualNode{Host: "h9"}),
			want:    []string{"there is no host h9"}, concerns: "n1",
		}, {
			name:    "host at another site",
			request: one(vnet.VirtualNode{Host: "h1", Site: "nancy"}),
			want:    []string{`host h1 is at site "lyon" and cannot be all that node n1 asks`}, concerns: "n1",
		}, {
			name:    "no such site",
			request: one(vnet.VirtualNode{Site: "paris"}),
			want:    []string{"there is no host at site paris"}, concerns: "n1",
		}, {
			name:    "processor at a site",
			before:  []vnet.Request{one(vnet.VirtualNode{Host: "h1", CPU: 2 * vnet.Core})},
			request: one(vnet.VirtualNode{Site: "lyon", CPU: 4 * vnet.Core}),
			want:    []string{"no host at site lyon has 4 cores free"}, concerns: "n1",
		}, {
			name:    "processor and memory nowhere together",
			request: one(vnet.VirtualNode{CPU: 3 * vnet.Core, Memory: 5 * vnet.GiB}),
			want:    []string{"no host has 3 cores and 5GiB of memory free"}, concerns: "n1",
		}, {
			name:    "memory of a host",
			before:  []vnet.Request{one(vnet.VirtualNode{Host: "h1", Memory: 3 * vnet.GiB})},
			request: one(vnet.VirtualNode{Host: "h1", Memory: 2 * vnet.GiB}),
			want:    []string{"memory of host h1 is booked to 3GiB of 4GiB until 2027-03-01T14:00:00Z, and node n1 needs 2GiB"}, concerns: "n1",
		}, {
			name:    "processor beside own nodes",
			request: vnet.Request{Network: "mine", Topology: vnet.Topology{Nodes: []vnet.VirtualNode{{Name: "n1", Host: "h2", CPU: 1500}, {Name: "n2", Host: "h2", CPU: 1500}}}},
			want:    []string{"processor of host h2 offers 2 cores to leases, this network has taken 1.5 cores of it, and node n2 needs 1.5 cores"}, concerns: "n2",
		}, {
			name:    "host wanted alone",
			before:  []vnet.Request{one(vnet.VirtualNode{Host: "h1"})},
			request: one(vnet.VirtualNode{Host: "h1", Exclusive: true}),
			want:    []string{"host h1 carries another network until 2027-03-01T14:00:00Z, and node n1 wants it for itself"}, concerns: "n1",
		}, {
			name:    "host held alone",
			before:  []vnet.Request{one(vnet.VirtualNode{Host: "h3", Exclusive: true})},
			request: one(vnet.VirtualNode{Site: "nancy"}),
			want:    []string{"every host at site nancy is held by another network for itself"}, concerns: "n1",
		}, {
			name:    "bandwidth booked",
			before:  []vnet.Request{pair(at("a", "h1"), at("b", "h2"), both(vnet.Static(1800*vnet.Mbit)))},
			request: pair(at("n1", "h1"), at("n2", "h2"), both(vnet.Static(300*vnet.Mbit))),
			want: []string{
				"link h1-s1 towards s1 is booked to 1800Mbit of 2Gbit until 2027-03-01T14:00:00Z, and virtual link back needs 300Mbit",
				"link h1-s1 towards h1 is booked to 1800Mbit of 2Gbit until 2027-03-01T14:00:00Z, and virtual link back needs 300Mbit",
				"link h2-s1 towards h2 is booked to 1800Mbit of 2Gbit until 2027-03-01T14:00:00Z, and virtual link back needs 300Mbit",
				"link h2-s1 towards s1 is booked to 1800Mbit of 2Gbit until 2027-03-01T14:00:00Z, and virtual link back needs 300Mbit",
			}, concerns: "back",
		}, {
			name:    "more than there is, beside what is booked",
			before:  []vnet.Request{pair(at("a", "h1"), at("b", "h3"), both(vnet.Static(300*vnet.Mbit)))},
			request: pair(at("n1", "h1"), at("n2", "h3"), both(vnet.Static(1200*vnet.Mbit))),
			want: []string{
				"link s1-s2 towards s2 offers 1Gbit to leases, and virtual link back needs 1200Mbit",
				"link s1-s2 towards s1 offers 1Gbit to leases, and virtual link back needs 1200Mbit",
			}, concerns: "back",
		}, {
			name: "one direction only",
			request: pair(at("n1", "h1"), at("n2", "h3"), vnet.VirtualLink{Bandwidth: [2]vnet.Bandwidth{
				vnet.Forward: {Max: vnet.Gbit}, vnet.Reverse: {Min: 1200 * vnet.Mbit, Max: vnet.Unbounded}}}),
			want: []string{"link s1-s2 towards s1 offers 1Gbit to leases, and virtual link back needs 1200Mbit"}, concerns: "back",
		}, {
			name:    "inside a host",
			request: pair(at("n1", "h1"), at("n2", "h1"), vnet.VirtualLink{Bandwidth: [2]vnet.Bandwidth{{Max: vnet.Gbit}, vnet.Static(1100 * vnet.Mbit)}}),
			want:    []string{"host h1 between its own nodes offers 1Gbit to leases, and virtual link back needs 1100Mbit"}, concerns: "back",
		}, {
			name:    "latency",
			request: pair(at("n1", "h1"), at("n2", "h3"), vnet.VirtualLink{Latency: 10 * time.Millisecond}),
			want:    []string{"no path from h1 to h3 within 10ms; the fastest takes 12ms"}, concerns: "back",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub, cal := lyonNancy(), calendar.New()
			for _, r := range c.before {
				r.Network = "secret"
				if err := admit(t, sub, cal, r, vnet.Window{Start: epoch, End: epoch.Add(6 * time.Hour)}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := embedOn(sub, cal, c.request, vnet.Window{Start: epoch.Add(2 * time.Hour)})
			infeasible := new(Infeasible)
			if !errors.As(err, &infeasible) {
				t.Fatalf("Embed = %v, want infeasible", err)
			}
			if got := strings.Join(infeasible.Reasons, "\n"); got != strings.Join(c.want, "\n") {
				t.Errorf("reasons:\n%s\nwant:\n%s", got, strings.Join(c.want, "\n"))
			}
			if got := strings.Join(append(infeasible.Nodes, infeasible.Links...), " "); got != c.concerns {
				t.Errorf("concerns %q, want %q", got, c.concerns)
			}
		})
	}
}

// TestReasonsTogether: when only all nodes together do not fit, the reasons
// tell what the network itself has taken.
func TestReasonsTogether(t *testing.T) {
	r := vnet.Request{Network: "mine", Topology: vnet.Topology{Nodes: []vnet.VirtualNode{
		{Name: "n1", Site: "lyon", CPU: 1500}, {Name: "n2", Site: "lyon", CPU: 1500},
		{Name: "n3", Site: "lyon", CPU: 1500}, {Name: "n4", Site: "lyon", CPU: 1500},
	}}}
	_, err := embedOn(lyonNancy(), calendar.New(), r, vnet.Window{Start: epoch})
	if want := "embed: no host at site lyon has 1.5 cores free beside the other nodes of this network"; err == nil || err.Error() != want {
		t.Errorf("Embed = %v, want %s", err, want)
	}

	r = pair(vnet.VirtualNode{Name: "n1", Host: "h1"}, vnet.VirtualNode{Name: "n2", Host: "h3"}, both(vnet.Static(600*vnet.Mbit)))
	second := r.Links[0]
	second.Name = "second"
	r.Links = append(r.Links, second)
	_, err = embedOn(lyonNancy(), calendar.New(), r, vnet.Window{Start: epoch})
	want := "embed: link s1-s2 towards s2 offers 1Gbit to leases, this network has taken 600Mbit of it, and virtual link second needs 600Mbit; " +
		"link s1-s2 towards s1 offers 1Gbit to leases, this network has taken 600Mbit of it, and virtual link second needs 600Mbit"
	if err == nil || err.Error() != want {
		t.Errorf("Embed = %v,\nwant %s", err, want)
	}
}
