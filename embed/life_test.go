package embed

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/verify"
	"sublet/vnet"
)

// TestLifeOfASubstrate books ahead, and releases in another order, on graphs
// the reference could not decide: every mapping is valid beside all others, and in
// the end nothing is left.
func TestLifeOfASubstrate(t *testing.T) {
	for name, sub := range map[string]vnet.Substrate{"flat": flat(30, 25), "racks": racks(30, 5, 2)} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			cal := calendar.New()
			var live [][]calendar.Booking
			accepted := 0
			const requests = 250
			for i := range requests {
				start := epoch.Add(time.Duration(random.IntN(24)) * time.Hour)
				w := vnet.Window{Start: start, End: start.Add(time.Duration(1+random.IntN(6)) * time.Hour)}
				nodes := 2 + random.IntN(12)
				if bookings := admitChecked(t, sub, cal, mesh(nodes, nodes+random.IntN(nodes), uint64(i)), w); bookings != nil {
					accepted++
					live = append(live, bookings)
				}
				if len(live) > 40 {
					live = releaseOne(t, cal, live, random.IntN(len(live)))
				}
			}
			for len(live) > 0 {
				live = releaseOne(t, cal, live, random.IntN(len(live)))
			}
			if !cal.Empty() {
				t.Errorf("left: %v", cal)
			}
			t.Logf("%d of %d accepted", accepted, requests)
			if accepted == 0 || accepted == requests {
				t.Error("the test does not come to the limits of the substrate")
			}
		})
	}
}

// admitChecked embeds, checks and books; nil: refused.
func admitChecked(t *testing.T, sub vnet.Substrate, cal *calendar.Calendar, r vnet.Request, w vnet.Window) []calendar.Booking {
	mapping, err := embedOn(sub, cal, r, w)
	if infeasible := new(Infeasible); errors.As(err, &infeasible) {
		return nil
	}
	if err == nil {
		err = verify.Mapping(sub, cal, r, w, mapping)
	}
	if err != nil {
		t.Fatal(err)
	}
	bookings, err := bookingsOn(sub, r, w, mapping)
	if err == nil {
		err = cal.Book(bookings...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bookings
}

func releaseOne(t *testing.T, cal *calendar.Calendar, live [][]calendar.Booking, i int) [][]calendar.Booking {
	if err := cal.Release(live[i]...); err != nil {
		t.Fatal(err)
	}
	live[i] = live[len(live)-1]
	return live[:len(live)-1]
}
