package embed

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"sublet/embed/calendar"
	"sublet/embed/rate"
	"sublet/embed/verify"
	"sublet/vnet"
)

// ring is four hosts, two ways from h1 to h3.
func ring() vnet.Substrate {
	sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}, {Name: "h3"}, {Name: "h4"}}}
	for _, ends := range [][2]string{{"h1", "h2"}, {"h2", "h3"}, {"h1", "h4"}, {"h4", "h3"}} {
		sub.Links = append(sub.Links, vnet.SubstrateLink{Ends: ends, Capacity: vnet.Gbit})
	}
	sub.Fill()
	return sub
}

// across joins h1 and h3 by a static rate over at most so many paths.
func across(rate vnet.Rate, paths int) vnet.Request {
	b := vnet.Static(rate)
	return vnet.Request{Network: "n", Tenant: "t", Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{{Name: "a", Host: "h1"}, {Name: "b", Host: "h3"}},
		Links: []vnet.VirtualLink{{Name: "l", Ends: [2]string{"a", "b"}, Bandwidth: [2]vnet.Bandwidth{b, b}, Paths: paths}},
	}}
}

// embedSplit embeds for a caller who can carry split links.
func embedSplit(sub vnet.Substrate, cal *calendar.Calendar, r vnet.Request, w vnet.Window) (vnet.Mapping, error) {
	e, err := New(sub)
	if err != nil {
		return vnet.Mapping{}, err
	}
	return e.Embed(cal, r, w, Options{})
}

// A link is split only when it must be and may be, and what it takes is booked
// by share.
func TestSplit(t *testing.T) {
	sub, window := ring(), vnet.Window{Start: epoch}
	for _, c := range []struct {
		rate  vnet.Rate
		paths int
		want  int // paths; 0: refused
	}{{vnet.Gbit, 2, 1}, {1500 * vnet.Mbit, 2, 2}, {2 * vnet.Gbit, 2, 2}, {2*vnet.Gbit + 8, 2, 0}, {1500 * vnet.Mbit, 1, 0}} {
		r := across(c.rate, c.paths)
		m, err := embedSplit(sub, calendar.New(), r, window)
		var infeasible *Infeasible
		if errors.As(err, &infeasible) != (c.want == 0) || len(m.Paths("l")) != c.want {
			t.Errorf("%s over %d paths: %v, %v", c.rate, c.paths, m, err)
		}
		if err != nil {
			continue
		}
		if err := verify.Mapping(sub, calendar.New(), r, window, m); err != nil {
			t.Error(err)
		}
		rates, err := ratesOn(sub, []Tenancy{{r.Topology, m}})
		if err != nil || rates[0]["l"] != [2]vnet.Rate{c.rate, c.rate} {
			t.Errorf("allocated %v of %s, %v", rates, c.rate, err)
		}
		cal := calendar.New()
		bookings, err := bookingsOn(sub, r, window, m)
		if err != nil || cal.Book(bookings...) != nil {
			t.Fatal(bookings, err)
		}
		booked := cal.Peak("h1-h2>", window) + cal.Peak("h1-h4>", window)
		if booked < int64(c.rate) || booked >= int64(c.rate)+2 {
			t.Errorf("%d of %d are booked", booked, c.rate)
		}
	}
}

// Best effort and asymmetric links split as well: each direction by itself.
func TestSplitOneDirection(t *testing.T) {
	r := across(1600*vnet.Mbit, 3)
	r.Links[0].Bandwidth[vnet.Reverse] = vnet.Bandwidth{}
	m, err := embedSplit(ring(), calendar.New(), r, vnet.Window{Start: epoch})
	if err != nil || len(m.Splits["l"]) != 2 {
		t.Fatal(m, err)
	}
	rates, err := ratesOn(ring(), []Tenancy{{r.Topology, m}})
	if err != nil || rates[0]["l"] != [2]vnet.Rate{1600 * vnet.Mbit, 0} {
		t.Error(rates, err)
	}
}

// Over random lives of a substrate: what may be split is embedded wherever it
// was without, each mapping is valid, and nothing is ever over-booked.
func TestSplitNeverOverbooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sub, cal := drawSubstrate(t), calendar.New()
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			r := drawRequest(t, sub, rapid.IntRange(0, 1).Draw(t, "stages"))
			window := vnet.Window{Start: epoch}
			single, err := embedOn(sub, cal, r, window)
			one := err == nil
			for i := range r.Links {
				r.Links[i].Paths = rapid.IntRange(2, 4).Draw(t, "paths")
			}
			m, err := embedSplit(sub, cal, r, window)
			if one && err != nil {
				t.Fatalf("embedded as %v over single paths, but not split: %v", single, err)
			}
			if err != nil {
				continue
			}
			if err := verify.Mapping(sub, cal, r, window, m); err != nil {
				t.Fatal(err)
			}
			bookings, err := bookingsOn(sub, r, window, m)
			if err != nil {
				t.Fatal(err)
			}
			if err := cal.Book(bookings...); err != nil {
				t.Fatal(err)
			}
			if _, err := ratesOn(sub, []Tenancy{{r.Topology, m}}); err != nil {
				var infeasible *rate.Infeasible
				t.Fatal(errors.As(err, &infeasible), err)
			}
		}
	})
}
