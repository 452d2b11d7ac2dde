package embed

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// alike is a network of equal nodes, each linked to the next.
func alike(n int, like vnet.VirtualNode, l vnet.VirtualLink) vnet.Request {
	r := vnet.Request{Network: "mine"}
	for i := range n {
		like.Name = fmt.Sprintf("n%d", i)
		r.Nodes = append(r.Nodes, like)
	}
	for i := range n - 1 {
		l.Name, l.Ends = fmt.Sprintf("l%d", i), [2]string{r.Nodes[i].Name, r.Nodes[i+1].Name}
		r.Links = append(r.Links, l)
	}
	return r
}

// TestSums: what exceeds all that could give it is refused without a search,
// and the reason says by how much.
func TestSums(t *testing.T) {
	apart := func(r vnet.Request) vnet.Request { r.Colocate = vnet.ColocateForbidden; return r }
	for _, c := range []struct {
		name    string
		before  vnet.Request // booked until 14:00
		request vnet.Request // from 10:00 on
		want    string
	}{
		{
			name:    "more processors than there are",
			request: alike(1000, vnet.VirtualNode{CPU: 100}, both(vnet.Static(vnet.Mbit))),
			want:    "the network needs 100 cores, and all hosts together offer 10 cores to leases",
		}, {
			name:    "more memory than is left",
			before:  one(vnet.VirtualNode{Host: "h2", Memory: 8 * vnet.GiB}),
			request: alike(10, vnet.VirtualNode{Memory: vnet.GiB}, vnet.VirtualLink{}),
			want:    "the network needs 10GiB of memory, and all hosts together have 8GiB free in this window",
		}, {
			name:    "more than a site has",
			request: alike(20, vnet.VirtualNode{Site: "lyon", CPU: 400}, vnet.VirtualLink{}),
			want:    "the nodes at site lyon need 8 cores, and its hosts together offer 6 cores to leases",
		}, {
			name:    "more nodes than hosts",
			request: apart(alike(20, vnet.VirtualNode{}, vnet.VirtualLink{})),
			want:    "colocate: forbidden asks for a host for each of 20 nodes, and there are 3 hosts for it",
		}, {
			name:    "more nodes than hosts of a site",
			request: apart(alike(2, vnet.VirtualNode{Site: "nancy"}, vnet.VirtualLink{})),
			want:    "colocate: forbidden asks for a host for each of 2 nodes at site nancy, and there is 1 host for it",
		}, {
			name:    "a link wider than any",
			request: pair(vnet.VirtualNode{Name: "a", Site: "nancy"}, vnet.VirtualNode{Name: "b", Site: "lyon"}, both(vnet.Static(3*vnet.Gbit))),
			want:    "virtual link back needs 3Gbit, and no link of the substrate has more than 2Gbit free in this window",
		}, {
			name: "links from a site",
			request: vnet.Request{Network: "mine", Topology: vnet.Topology{
				Nodes: []vnet.VirtualNode{{Name: "a", Site: "nancy"}, {Name: "b", Site: "lyon"}},
				Links: []vnet.VirtualLink{{Name: "x", Ends: [2]string{"a", "b"}, Bandwidth: both(vnet.Static(1500 * vnet.Mbit)).Bandwidth},
					{Name: "y", Ends: [2]string{"a", "b"}, Bandwidth: both(vnet.Static(vnet.Gbit)).Bandwidth}},
			}},
			want: "the virtual links from site nancy to others need 2500Mbit together, and the links that leave its hosts have 2Gbit free in this window",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub, cal := lyonNancy(), calendar.New()
			if c.before.Nodes != nil {
				c.before.Network = "other"
				if err := admit(t, sub, cal, c.before, vnet.Window{Start: epoch, End: epoch.Add(6 * time.Hour)}); err != nil {
					t.Fatal(err)
				}
			}
			e, err := New(sub)
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Embed(cal, c.request, vnet.Window{Start: epoch.Add(2 * time.Hour)}, Options{})
			infeasible := new(Infeasible)
			if !errors.As(err, &infeasible) || strings.Join(infeasible.Reasons, "\n") != c.want {
				t.Errorf("Embed = %v,\nwant %s", err, c.want)
			}
			if e.least != nil {
				t.Error("a search was made")
			}
		})
	}
}

// TestReasonOfApart: what keeps nodes apart is said, never an empty amount.
func TestReasonOfApart(t *testing.T) {
	const twice = "embed: host h1, where node n1 is asked for, has another node of this network already, and colocate: forbidden keeps them apart"
	const wide = "embed: no host has links with as much free as all links of node n1 need together"
	for want, r := range map[string]vnet.Request{
		twice: alike(2, vnet.VirtualNode{Host: "h1"}, vnet.VirtualLink{}),
		wide:  alike(3, vnet.VirtualNode{}, both(vnet.Static(1200*vnet.Mbit))),
	} {
		r.Colocate = vnet.ColocateForbidden
		if _, err := embedOn(lyonNancy(), calendar.New(), r, vnet.Window{Start: epoch}); err == nil || err.Error() != want {
			t.Errorf("Embed = %v,\nwant %s", err, want)
		}
	}
}

// tight is a network that no sum rules out and no search finds a place for:
// nodes of which none shares a host with another, on hosts that are too few.
func tight(n int) (vnet.Substrate, vnet.Request) {
	sub := flat(n, 2*n)
	for i := range sub.Hosts {
		sub.Hosts[i].CPU = 2 * vnet.Core
	}
	r := alike(2*n-2, vnet.VirtualNode{CPU: vnet.Core}, both(vnet.Static(vnet.Mbit)))
	r.Nodes[0].CPU = 1001
	r.Nodes[1].CPU = 1001
	r.Nodes[2].CPU = 1001
	return sub, r
}

// TestEffort: the work of an answer is bounded over all its embeddings, ends
// at the same place every time, and who does not want it any more ends it.
func TestEffort(t *testing.T) {
	sub, r := tight(30)
	e, err := New(sub)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(effort *Effort) (told bool) {
		_, err := e.Embed(calendar.New(), r, vnet.Window{Start: epoch}, Options{Budget: time.Second, Effort: effort})
		infeasible := new(Infeasible)
		if !errors.As(err, &infeasible) || len(infeasible.Reasons) == 0 {
			t.Fatalf("Embed = %v, want infeasible", err)
		}
		return infeasible.Undecided
	}
	spent := -1
	for range 2 {
		effort := NewEffort(20*time.Millisecond, nil)
		if !ask(effort) || !effort.Short() || !ask(effort) {
			t.Error("the answer claims to be decided")
		}
		if spent >= 0 && effort.spent != spent {
			t.Errorf("spent %d, before that %d", effort.spent, spent)
		}
		if spent = effort.spent; spent < effort.limit || spent > 2*effort.limit {
			t.Errorf("spent %d of %d", spent, effort.limit)
		}
	}
	rests := 0
	gone := &Effort{Rest: func() bool { rests++; return rests < 3 }}
	if !ask(gone) || rests != 3 {
		t.Errorf("asked %d times whether the answer is wanted, want 3", rests)
	}
	half := NewEffort(time.Second, nil)
	done := half.Part(4)
	half.Spend(half.limit)
	if !half.Over() {
		t.Error("a part is over when it is spent")
	}
	if done(); half.Over() {
		t.Error("a part is not the whole")
	}
}
