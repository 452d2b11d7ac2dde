package rate

import (
	"errors"
	"slices"
	"testing"

	"sublet/vnet"

	"pgregory.net/rapid"
)

// TestTable: a virtual link gets the smallest of its elements' rates, and the
// directions of a link do not touch each other.
func TestTable(t *testing.T) {
	sub := vnet.Substrate{
		Hosts: []vnet.SubstrateNode{{Name: "h1", Capacity: vnet.Gbit}, {Name: "h2"}},
		Links: []vnet.SubstrateLink{
			{Name: "wide", Ends: [2]string{"h1", "s1"}, Capacity: 2 * vnet.Gbit},
			{Name: "half", Ends: [2]string{"s1", "h2"}, Capacity: 2 * vnet.Gbit, Share: 50},
		},
	}
	open := vnet.Bandwidth{Max: vnet.Unbounded}
	there := []Element{{"wide", vnet.Forward}, {"half", vnet.Forward}}
	demands := []Demand{
		{open, there},
		{vnet.Static(300 * vnet.Mbit), there[:1]},
		{open, []Element{{"half", vnet.Reverse}, {"wide", vnet.Reverse}}},
		{open, []Element{Inside("h1", vnet.Forward)}},
		{open, []Element{Inside("h2", vnet.Forward)}},
		{vnet.Bandwidth{}, there},
	}
	table := NewTable(Capacities(sub))
	claim, err := table.Enter(demands)
	if err == nil {
		err = table.Settle()
	}
	if err != nil {
		t.Fatal(err)
	}
	got := claim.Rates()
	for i, want := range rates(vnet.Gbit, 300*vnet.Mbit, vnet.Gbit, vnet.Gbit, vnet.DefaultHostCapacity, 0) {
		if got[i] != want {
			t.Errorf("demand %d gets %v, want %v", i, got[i], want)
		}
	}
	over, err := table.Enter([]Demand{{vnet.Static(3 * vnet.Gbit), there[:1]}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		infeasible := new(Infeasible)
		if err := table.Settle(); !errors.As(err, &infeasible) || infeasible.Element != there[0] {
			t.Errorf("Settle = %v, want infeasible on %v", err, there[0])
		}
	}
	table.Leave(over)
	if err := table.Settle(); err != nil || !slices.Equal(claim.Rates(), got) {
		t.Errorf("after who asked too much has left: %v, %v, want %v", err, claim.Rates(), got)
	}
	for _, wrong := range []Demand{{open, nil}, {open, []Element{{"narrow", vnet.Forward}}}} {
		if _, err := table.Enter([]Demand{{open, there}, wrong}); err == nil {
			t.Errorf("%v entered", wrong)
		}
	}
	if err := table.Settle(); err != nil || claim.Changed() {
		t.Errorf("who did not enter changed rates: %v", err)
	}
}

// TestTableFollows: whoever came and went before, everybody has what each of
// their elements allocates among those who are there, and Changed says to whom
// it became different.
func TestTableFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacities := make(map[Element]vnet.Rate)
		var elements []Element
		for _, name := range []string{"a", "b", "c", "d"} {
			e := Element{name, vnet.Forward}
			elements, capacities[e] = append(elements, e), vnet.Rate(rapid.IntRange(1, 40).Draw(t, "capacity"))
		}
		table, last := NewTable(capacities), make(map[*Claim][]vnet.Rate)
		var claims []*Claim
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if len(claims) > 0 && rapid.Bool().Draw(t, "leaves") {
				i := rapid.IntRange(0, len(claims)-1).Draw(t, "who")
				table.Leave(claims[i])
				claims = slices.Delete(claims, i, i+1)
			} else {
				c, err := table.Enter(drawDemands(t, elements))
				if err != nil {
					t.Fatal(err)
				}
				claims = append(claims, c)
			}
			if rapid.Bool().Draw(t, "later") {
				continue
			}
			for table.Settle() != nil { // the last to come has asked for too much
				table.Leave(claims[len(claims)-1])
				claims = claims[:len(claims)-1]
			}
			for _, c := range claims {
				want := fromScratch(t, capacities, claims, c)
				if !c.Changed() && !slices.Equal(last[c], want) {
					t.Fatalf("%v became %v without a word", last[c], want)
				}
				if last[c] = c.Rates(); !slices.Equal(last[c], want) {
					t.Fatalf("%v gets %v, from scratch %v", c.demands, last[c], want)
				}
			}
		}
	})
}

func drawDemands(t *rapid.T, elements []Element) []Demand {
	demands := make([]Demand, rapid.IntRange(0, 3).Draw(t, "demands"))
	for i := range demands {
		low := vnet.Rate(rapid.SampledFrom([]int{0, 0, 1, 3, 10}).Draw(t, "min"))
		high := low + vnet.Rate(rapid.SampledFrom([]int{0, 1, 5, 100}).Draw(t, "more"))
		over := rapid.Permutation(elements).Draw(t, "over")
		demands[i] = Demand{vnet.Bandwidth{Min: low, Max: high}, over[:rapid.IntRange(1, len(over)).Draw(t, "length")]}
	}
	return demands
}

// fromScratch allocates every element a claim runs over.
func fromScratch(t *rapid.T, capacities map[Element]vnet.Rate, claims []*Claim, claim *Claim) []vnet.Rate {
	rates := make([]vnet.Rate, len(claim.demands))
	for i, d := range claim.demands {
		rates[i] = vnet.Unbounded
		for _, e := range d.Elements {
			var asked []vnet.Bandwidth
			mine := 0
			for _, c := range claims {
				for j, other := range c.demands {
					if c == claim && j == i {
						mine = len(asked)
					}
					if slices.Contains(other.Elements, e) {
						asked = append(asked, other.Bandwidth)
					}
				}
			}
			given, err := Allocate(capacities[e], asked)
			if err != nil {
				t.Fatal(err)
			}
			rates[i] = min(rates[i], given[mine])
		}
	}
	return rates
}
