package embed

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/verify"
	"sublet/vnet"
)

// diamonds is a chain of n diamonds of relays with h1 and h2 at its ends: from
// each of s0 to sn two equal ways lead to the next, so a path takes one relay
// for each.
func diamonds(n int) vnet.Substrate {
	sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1", CPU: vnet.Core}, {Name: "h2", CPU: vnet.Core}}, Relays: make(map[string]netip.Addr)}
	at := func(i int) string { return fmt.Sprint("s", i) }
	grow(&sub, "h1", at(0))
	for i := range n {
		for _, way := range []string{"a", "b"} {
			middle := way + fmt.Sprint(i)
			grow(&sub, at(i), middle)
			grow(&sub, middle, at(i+1))
		}
	}
	grow(&sub, at(n), "h2")
	return sub
}

// grow adds a link, and the switches at its ends.
func grow(sub *vnet.Substrate, a, b string) {
	for _, name := range []string{a, b} {
		if _, host := sub.HostOf(name); !host && !sub.Relays[name].IsValid() {
			sub.Switches = append(sub.Switches, name)
			sub.Relays[name] = netip.AddrFrom4([4]byte{10, 0, 0, byte(len(sub.Switches))})
		}
	}
	sub.Links = append(sub.Links, vnet.SubstrateLink{Name: a + "-" + b, Ends: [2]string{a, b}, Capacity: 10 * vnet.Mbit})
}

// bypass joins the ends of diamonds by a longer chain of switches, of which a
// list needs to name but one or two.
func bypass(sub *vnet.Substrate, name string, n int) {
	last := "s0"
	for i := range 2 * n {
		next := fmt.Sprint(name, i)
		grow(sub, last, next)
		last = next
	}
	grow(sub, last, fmt.Sprint("s", n))
}

func ends(paths int) vnet.Request {
	r := pair(vnet.VirtualNode{Name: "x", Host: "h1"}, vnet.VirtualNode{Name: "y", Host: "h2"}, both(vnet.Static(10*vnet.Mbit)))
	r.Links[0].Paths = paths
	return r
}

// TestPathsOfTooManyRelays: a path that takes as many relays as a packet has
// room for is taken, one that takes more is not there: another is taken, or the
// refusal says why.
func TestPathsOfTooManyRelays(t *testing.T) {
	const most = vnet.MaxRelays
	around, busy := diamonds(most+1), diamonds(most+1)
	bypass(&around, "c", most+1)
	bypass(&busy, "c", most+1)
	for i := range busy.Links {
		if busy.Links[i].Name == "c3-c4" {
			busy.Links[i].Capacity = vnet.Mbit
		}
	}
	for _, c := range []struct {
		name string
		sub  vnet.Substrate
		via  string // a link of the path
		why  []string
	}{
		{"at the limit", diamonds(most), "s0-", nil},
		{"one more", diamonds(most + 1), "", []string{"every path from h1 to h2 takes more than 8 relays"}},
		{"around", around, "c3-c4", nil},
		{"around is full", busy, "", []string{"link c3-c4 towards c4 offers 1Mbit", "the paths from h1 to h2 with room for virtual link back take more than 8 relays"}},
	} {
		for _, paths := range []int{1, 2} {
			for _, bound := range []time.Duration{0, time.Second} {
				r := ends(paths)
				r.Links[0].Latency = bound
				m, err := embedOn(c.sub, calendar.New(), r, vnet.Window{Start: epoch})
				checkPins(t, fmt.Sprintf("%s, %d paths, within %s", c.name, paths, bound), c.sub, r, m, err, c.via, c.why)
			}
		}
	}
}

func checkPins(t *testing.T, name string, sub vnet.Substrate, r vnet.Request, m vnet.Mapping, err error, via string, why []string) {
	t.Helper()
	var infeasible *Infeasible
	switch {
	case via == "" && !errors.As(err, &infeasible):
		t.Errorf("%s: embedded as %v, %v", name, m.Links, err)
	case via == "":
		for _, reason := range why {
			if !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v, want %q", name, err, reason)
			}
		}
	case err != nil:
		t.Errorf("%s: %v", name, err)
	default:
		if path := strings.Join(m.Links["back"], " "); !strings.Contains(path, via) {
			t.Errorf("%s: it goes by %s", name, path)
		}
		if err := verify.Mapping(sub, calendar.New(), r, vnet.Window{Start: epoch}, m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestListsHoldOnTheWhole: what is down has no say in what a list must name, so
// a path is judged as if everything worked.
func TestListsHoldOnTheWhole(t *testing.T) {
	whole := diamonds(vnet.MaxRelays + 1)
	part := whole
	part.Links = nil
	for _, l := range whole.Links {
		if !strings.HasPrefix(l.Ends[0], "b") && !strings.HasPrefix(l.Ends[1], "b") {
			part.Links = append(part.Links, l)
		}
	}
	for _, c := range []struct {
		whole vnet.Substrate
		held  bool
	}{{whole, false}, {part, true}} {
		e, err := NewPart(part, c.whole)
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.Embed(calendar.New(), ends(1), vnet.Window{Start: epoch}, Options{})
		if (err == nil) != c.held {
			t.Errorf("embedded as %v, %v, want %t", m.Links, err, c.held)
		}
		if m.Links != nil && e.CheckPins(ends(1), m) != nil {
			t.Error(e.CheckPins(ends(1), m))
		}
	}
}

// Two relayed paths share a link, neither of them through the diamonds.
func TestSharesAvoidTooManyRelays(t *testing.T) {
	sub := diamonds(vnet.MaxRelays + 1)
	bypass(&sub, "c", vnet.MaxRelays+1)
	bypass(&sub, "d", vnet.MaxRelays+1)
	for i, l := range sub.Links {
		if l.Ends[0] == "h1" || l.Ends[1] == "h2" {
			sub.Links[i].Capacity = 20 * vnet.Mbit
		}
	}
	r := ends(2)
	r.Links[0].Bandwidth = both(vnet.Static(16 * vnet.Mbit)).Bandwidth
	m, err := embedOn(sub, calendar.New(), r, vnet.Window{Start: epoch})
	if err != nil || len(m.Splits["back"]) != 2 {
		t.Fatal(m, err)
	}
	if err := verify.Mapping(sub, calendar.New(), r, vnet.Window{Start: epoch}, m); err != nil {
		t.Error(err)
	}
}
