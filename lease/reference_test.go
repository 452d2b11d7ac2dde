package lease

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

// line is a substrate on which there is one way between any two hosts, so that
// what fits can be decided by adding up.
func line() vnet.Substrate {
	var sub vnet.Substrate
	for _, words := range [][]string{{"host", "h0"}, {"host", "h1"}, {"host", "h2"}, {"link", "h0", "h1", "1000"}, {"link", "h1", "h2", "600"}} {
		describe(&sub, words)
	}
	return sub
}

// transfer is one link between two hosts of the line, in Mbit/s.
type transfer struct {
	from, to int // hosts, from < to
	mbit     int
	start    int // minutes after noon
	length   int // minutes; 0: no end
}

func (x transfer) request(i int) vnet.Request {
	return vnet.Request{
		Tenant: "t", Network: vnet.VNetID(fmt.Sprintf("n%d", i)), Start: noon.Add(time.Duration(x.start) * time.Minute), For: time.Duration(x.length) * time.Minute,
		Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "a", Host: vnet.HostID(fmt.Sprintf("h%d", x.from))}, {Name: "b", Host: vnet.HostID(fmt.Sprintf("h%d", x.to))}},
			Links: []vnet.VirtualLink{{Name: "l", Ends: [2]string{"a", "b"}, Bandwidth: [2]vnet.Bandwidth{
				{Min: vnet.Rate(x.mbit) * vnet.Mbit, Max: vnet.Unbounded}, {Min: vnet.Rate(x.mbit) * vnet.Mbit, Max: vnet.Unbounded}}}},
		},
	}
}

// runs says whether it runs at a minute.
func (x transfer) runs(minute int) bool {
	return minute >= x.start && (x.length == 0 || minute < x.start+x.length)
}

// horizon is after all that is drawn begins and ends.
const horizon = 400

// left is what is free on the way of a transfer at a minute.
func left(booked []transfer, x transfer, minute int) int {
	free := []int{1000, 600}
	least := 1 << 30
	for hop := x.from; hop < x.to; hop++ {
		for _, y := range booked {
			if y.from <= hop && hop < y.to && y.runs(minute) {
				free[hop] -= y.mbit
			}
		}
		least = min(least, free[hop])
	}
	return least
}

// fits adds up at every minute.
func fits(booked []transfer, x transfer) bool {
	for minute := x.start; x.runs(minute) && minute < horizon; minute++ {
		if left(booked, x, minute) < x.mbit {
			return false
		}
	}
	return true
}

func drawTransfer(t *rapid.T) transfer {
	from := rapid.IntRange(0, 1).Draw(t, "from")
	return transfer{
		from: from, to: rapid.IntRange(from+1, 2).Draw(t, "to"), mbit: rapid.IntRange(1, 100).Draw(t, "tens of Mbit") * 10,
		start: rapid.IntRange(0, 60).Draw(t, "start"), length: rapid.SampledFrom([]int{0, 5, 20, 60, 60, 60}).Draw(t, "length"),
	}
}

// TestOffersAgainstReferenceModel: what is admitted is what fits, and each offer is
// the best there is along its axis, as found by trying every minute and every
// rate.
func TestOffersAgainstReferenceModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book := New(line())
		var booked []transfer
		for i := range rapid.IntRange(1, 12).Draw(t, "requests") {
			x := drawTransfer(t)
			_, err := book.Admit(noon, x.request(i), 0)
			var refused *vnet.Rejection
			switch {
			case err == nil != fits(booked, x):
				t.Fatalf("%+v beside %+v: %v", x, booked, err)
			case err == nil:
				booked = append(booked, x)
			case !errors.As(err, &refused):
				t.Fatal(err)
			default:
				best := bestOffers(booked, x)
				for _, axis := range []vnet.Axis{vnet.AxisStart, vnet.AxisDuration, vnet.AxisMinimum} {
					if got := offered(refused, axis); got != best[axis] {
						t.Fatalf("%+v beside %+v: %s is offered as %d, the best is %d", x, booked, axis, got, best[axis])
					}
				}
			}
		}
	})
}

// bestOffers are the earliest start and the longest duration in minutes, and
// the largest minimum in Mbit/s; -1: none.
func bestOffers(booked []transfer, x transfer) map[vnet.Axis]int {
	best := map[vnet.Axis]int{vnet.AxisStart: -1, vnet.AxisDuration: -1, vnet.AxisMinimum: -1}
	for start := horizon - 100; start > x.start; start-- {
		y := x
		if y.start = start; fits(booked, y) {
			best[vnet.AxisStart] = start
		}
	}
	for length := 1; length < horizon && (x.length == 0 || length < x.length); length++ {
		y := x
		if y.length = length; fits(booked, y) {
			best[vnet.AxisDuration] = length
		}
	}
	for mbit := 0; mbit < x.mbit; mbit++ {
		y := x
		if y.mbit = mbit; fits(booked, y) {
			best[vnet.AxisMinimum] = mbit
		}
	}
	return best
}

// offered reads an offer along one axis in the reference's units; -1: none.
func offered(r *vnet.Rejection, axis vnet.Axis) int {
	for _, o := range r.Offers {
		if len(o.Axes) != 1 || o.Axes[0] != axis {
			continue
		}
		switch axis {
		case vnet.AxisStart:
			return int(o.Request.Start.Sub(noon) / time.Minute)
		case vnet.AxisDuration:
			return int(o.Request.For / time.Minute)
		}
		return int(o.Request.Links[0].Bandwidth[0].Min / vnet.Mbit)
	}
	return -1
}
