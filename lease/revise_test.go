package lease

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

// revise changes a lease at random; what is offered instead is taken unchanged.
func (w *world) revise(t *rapid.T) {
	leases := w.book.Leases()
	if len(leases) == 0 {
		return
	}
	l := rapid.SampledFrom(leases).Draw(t, "revised")
	asked := rewrite(l.Request)
	if rapid.Bool().Draw(t, "other length") {
		asked.For = rapid.SampledFrom([]time.Duration{0, 50 * time.Minute, time.Hour, 3 * time.Hour}).Draw(t, "revised for")
	}
	if rapid.Bool().Draw(t, "other rates") {
		eachBandwidth(&asked, func(_, _ string, both *[2]vnet.Bandwidth) { *both = drawBandwidths(t) })
	}
	if rapid.Bool().Draw(t, "other impairments") {
		eachLink(&asked, func(l *vnet.VirtualLink) { l.Impair = drawImpairments(t) })
	}
	if rapid.Bool().Draw(t, "other form") {
		reshape(t, &asked)
	}
	before := w.book.calendar.Clone()
	_, changes, err := w.book.Revise(w.now, l.ID(), asked, nil, false)
	var refused *vnet.Rejection
	var bad *vnet.FieldError
	switch {
	case err == nil, errors.Is(err, ErrConflict), errors.As(err, &bad):
		if now, _ := w.book.Lease(l.ID()); err == nil && len(changes) > 0 && now.Revision != l.Revision+1 {
			t.Fatalf("revision %d after %d, changed %v", now.Revision, l.Revision, changes)
		}
	case !errors.As(err, &refused):
		t.Fatalf("revise: %v", err)
	case len(refused.Reasons) == 0 || (refused.Offer == nil) == (refused.Never == ""):
		t.Fatalf("refused %+v", refused)
	case fmt.Sprint(before) != fmt.Sprint(w.book.calendar.Clone()):
		t.Fatal("a refusal changed the calendar")
	default:
		w.offeredRevisions(t, l.ID(), refused)
	}
}

// reshape takes a link or a node away at random, and adds some.
func reshape(t *rapid.T, r *vnet.Request) {
	if n := len(r.Links); n > 0 && rapid.Bool().Draw(t, "link goes") {
		i := rapid.IntRange(0, n-1).Draw(t, "which link")
		r.Links = slices.Delete(slices.Clone(r.Links), i, i+1)
	}
	if n := len(r.Nodes); n > 1 && rapid.Bool().Draw(t, "node goes") {
		i := rapid.IntRange(0, n-1).Draw(t, "which node")
		gone := r.Nodes[i].Name
		r.Nodes = slices.Delete(slices.Clone(r.Nodes), i, i+1)
		r.Links = slices.DeleteFunc(slices.Clone(r.Links), func(l vnet.VirtualLink) bool { return l.Ends[0] == gone || l.Ends[1] == gone })
	}
	if len(r.Nodes) > 0 && rapid.Bool().Draw(t, "node comes") {
		name := rapid.SampledFrom([]string{"new1", "new2"}).Draw(t, "new node")
		if slices.ContainsFunc(r.Nodes, func(n vnet.VirtualNode) bool { return n.Name == name }) {
			return
		}
		r.Nodes = append(slices.Clone(r.Nodes), vnet.VirtualNode{Name: name})
		r.Links = append(slices.Clone(r.Links), vnet.VirtualLink{Name: name + "-l", Ends: [2]string{r.Nodes[0].Name, name}, Bandwidth: drawBandwidths(t)})
	}
}

// offeredRevisions tries every offer on a copy of the book, and takes the nearest.
func (w *world) offeredRevisions(t *rapid.T, id vnet.LeaseID, refused *vnet.Rejection) {
	for _, o := range refused.Offers {
		if _, _, err := w.book.Revise(w.now, id, o.Request, nil, true); err != nil {
			t.Fatalf("offer %+v refused: %v", o.Changes, err)
		}
	}
	if refused.Offer != nil {
		_, _, err := w.book.Revise(w.now, id, *refused.Offer, nil, false)
		w.check(t, err)
	}
}

// TestRevisionsAgainstReferenceModel: a window and a rate are changed exactly
// when that fits at every minute from now on, and the window offered is the
// longest that does.
func TestRevisionsAgainstReferenceModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, now := New(line()), 0
		var booked []transfer
		var ids []vnet.LeaseID
		for i := range 8 {
			x := drawTransfer(t)
			if l, err := book.Admit(noon, x.request(i), 0); err == nil {
				booked, ids = append(booked, x), append(ids, l.ID())
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "revisions") {
			now += rapid.IntRange(0, 15).Draw(t, "minutes pass")
			i := rapid.IntRange(0, len(booked)-1).Draw(t, "which")
			if !booked[i].runs(now) && booked[i].start <= now {
				continue // it has ended
			}
			x := booked[i]
			x.length = rapid.SampledFrom([]int{x.length, 0, 30, 90, 200}).Draw(t, "length")
			x.mbit = rapid.SampledFrom([]int{x.mbit, 50, 300, 900}).Draw(t, "mbit")
			if x.length > 0 && x.start+x.length <= now {
				continue
			}
			_, _, err := book.Revise(noon.Add(time.Duration(now)*time.Minute), ids[i], x.request(number(ids[i])), nil, false)
			var refused *vnet.Rejection
			switch {
			case (err == nil) != fitsRevised(booked, i, x, now):
				t.Fatalf("minute %d: %+v for %+v of %+v: %v", now, x, booked[i], booked, err)
			case err == nil:
				booked[i] = x
			case !errors.As(err, &refused):
				t.Fatal(err)
			default:
				if got, want := offered(refused, vnet.AxisDuration), longestRevised(booked, i, x, now); got != want {
					t.Fatalf("minute %d: %+v for %+v of %+v: offered %d, the longest is %d: %+v", now, x, booked[i], booked, got, want, refused)
				}
			}
		}
	})
}

// number is what transfer.request made the lease's name of.
func number(id vnet.LeaseID) (n int) {
	_, err := fmt.Sscanf(string(id.Network), "n%d", &n)
	must(err)
	return n
}

// fitsRevised adds up at every minute from now on.
func fitsRevised(booked []transfer, i int, x transfer, now int) bool {
	others := append(append([]transfer(nil), booked[:i]...), booked[i+1:]...)
	for minute := max(now, x.start); x.runs(minute) && minute < horizon; minute++ {
		if left(others, x, minute) < x.mbit {
			return false
		}
	}
	return true
}

// longestRevised is the longest length in minutes that fits and ends after now; -1: none.
func longestRevised(booked []transfer, i int, x transfer, now int) int {
	best := -1
	for length := 1; length < horizon && (x.length == 0 || length < x.length); length++ {
		y := x
		if y.length = length; x.start+length > now && fitsRevised(booked, i, y, now) {
			best = length
		}
	}
	return best
}

// TestLabelsAreRevised where nothing else is changed.
func TestLabelsAreRevised(t *testing.T) {
	book := New(line())
	l, err := book.Admit(noon, transfer{to: 1, mbit: 100, length: 60}.request(0), 0)
	must(err)
	for _, labels := range []map[string]string{{"course": "net1", "empty": ""}, {"course": "net2"}, nil} {
		asked := rewrite(l.Request)
		asked.Labels = labels
		is, changes, err := book.Revise(noon, l.ID(), asked, nil, false)
		if err != nil || len(changes) == 0 || !maps.Equal(is.Request.Labels, labels) {
			t.Errorf("%v is asked: %v, %v, %v", labels, is.Request.Labels, changes, err)
		}
	}
}

// TestWhatCannotBeRevised is named, and nothing changes.
func TestWhatCannotBeRevised(t *testing.T) {
	book := New(line())
	l, err := book.Admit(noon, transfer{to: 1, mbit: 100, length: 60}.request(0), 0)
	must(err)
	for _, try := range []struct {
		change func(*vnet.Request)
		want   string
	}{
		{func(r *vnet.Request) { r.Nodes[0].Exclusive = true }, "nodes[0].exclusive: is true, and was not stated"},
		{func(r *vnet.Request) { r.Routers, r.Nodes = r.Nodes[:1], r.Nodes[1:] }, "routers[0]: a is a router, and was a node"},
		{func(r *vnet.Request) { r.Nodes[1].Host = "h0" }, "nodes[1].host: b runs on "},
		{func(r *vnet.Request) { r.Links[0].Ends[1] = "c" }, `links[0].ends[1]: no node, router or switch "c"`},
		{func(r *vnet.Request) { r.Links[0].Ends = [2]string{"b", "a"} }, `links[0].ends[0]: is "b", and was "a"`},
		{func(r *vnet.Request) { r.Links[0].Addresses[1] = []netip.Prefix{netip.MustParsePrefix("10.0.1.2/24")} }, "links[0].ends[1].address"},
		{func(r *vnet.Request) { r.Links[0].Interfaces[0] = "up" }, "links[0].ends[0].interface"},
		{func(r *vnet.Request) { r.Routers, r.Nodes[0].Image = nil, "web.tar" }, `nodes[0].image: is "web.tar"`},
		{func(r *vnet.Request) { r.Start = noon.Add(time.Hour) }, "window.start: is"},
		{func(r *vnet.Request) { r.Objective = vnet.Energy }, "objective: is"},
		{func(r *vnet.Request) { r.For = -1 }, "window.for: "},
		{func(r *vnet.Request) { r.Links = slices.Repeat(r.Links, MostRevised+1) }, "links: a network with 2001 links"},
	} {
		asked := rewrite(l.Request)
		try.change(&asked)
		_, _, err := book.Revise(noon, l.ID(), asked, nil, false)
		var field *vnet.FieldError
		if !errors.As(err, &field) || !strings.HasPrefix(field.Error(), try.want) {
			t.Errorf("got %v, want %s", err, try.want)
		}
	}
	if now, _ := book.Lease(l.ID()); now.Revision != 0 {
		t.Errorf("revision %d", now.Revision)
	}
}

// TestOrderOfAFileDoesNotMatter: the same network in another order is no change.
func TestOrderOfAFileDoesNotMatter(t *testing.T) {
	book := New(line())
	l, err := book.Admit(noon, transfer{to: 1, mbit: 100, length: 60}.request(0), 0)
	must(err)
	asked := rewrite(l.Request)
	asked.Nodes[0], asked.Nodes[1] = asked.Nodes[1], asked.Nodes[0]
	asked.Start, asked.Tenant = time.Time{}, ""
	if _, changes, err := book.Revise(noon, l.ID(), asked, nil, false); err != nil || len(changes) > 0 {
		t.Errorf("changes %v, %v", changes, err)
	}
}

// TestAChosenStartIsNoChange: a file that leaves the start open is as asked,
// whenever the network began.
func TestAChosenStartIsNoChange(t *testing.T) {
	book := New(line())
	_, err := book.Admit(noon, transfer{to: 1, mbit: 900, length: 60}.request(0), 0)
	must(err)
	request := transfer{to: 1, mbit: 900, length: 60}.request(1)
	request.Before = noon.Add(2 * time.Hour)
	l, err := book.Admit(noon, request, 0)
	must(err)
	if _, changes, err := book.Revise(noon, l.ID(), request, nil, false); err != nil || len(changes) > 0 || !l.Window.Start.After(request.Start) {
		t.Errorf("changes %v of a network that begins at %s, %v", changes, l.Window.Start, err)
	}
	request.Start = noon.Add(90 * time.Minute)
	if _, _, err := book.Revise(noon, l.ID(), request, nil, false); err == nil {
		t.Error("a start after the one that was chosen is accepted")
	}
}

// TestRevisedImpairments are said, at the start and in stages, also where a
// stage states none any more.
func TestRevisedImpairments(t *testing.T) {
	book := New(line())
	request := transfer{to: 1, mbit: 100, length: 60}.request(0)
	slow := [2]vnet.Impairment{{Delay: time.Millisecond}, {Delay: time.Millisecond}}
	request.Stages = []vnet.Stage{{Name: "slow", After: time.Minute, Impair: map[string][2]vnet.Impairment{"l": slow}}}
	l, err := book.Admit(noon, request, 0)
	must(err)
	must(book.Impair(noon, l.ID(), "l", [2]vnet.Impairment{{Corrupt: 1}, {}}))
	asked := rewrite(l.Request)
	asked.Links[0].Impair = [2]vnet.Impairment{{Loss: 10_000}, {}}
	asked.Stages[0].Impair = nil
	asked.Links[0].Down, asked.Stages[0].Down = true, map[string]bool{"l": false}
	must(book.SetDown(noon, l.ID(), "l", false))
	l, changes, err := book.Revise(noon, l.ID(), asked, nil, false)
	must(err)
	want := []vnet.Change{{What: "impairment of l", From: "none", To: "loss=1%"}, {What: "state of l", From: "up", To: "down"}, {What: "state of l in stage slow", From: "as before", To: "up"}, {What: "impairment of l in stage slow", From: "delay=1ms", To: "as before"}}
	if fmt.Sprint(changes) != fmt.Sprint(want) || l.Topology().Links[0].Impair != asked.Links[0].Impair || !l.Topology().Links[0].Down {
		t.Errorf("changes %v, want %v; it is %+v", changes, want, l.Topology().Links[0])
	}
}

// TestRevisionsMakeVerdictsStale: what a check found is about what was asked
// then, also where the same rates are allocated. A longer window is another
// matter, but for the first change.
func TestRevisionsMakeVerdictsStale(t *testing.T) {
	book := New(line())
	l, err := book.Admit(noon, transfer{to: 1, mbit: 100, length: 60}.request(0), 0)
	must(err)
	for i, c := range []struct {
		change func(*vnet.Request)
		stale  bool
	}{
		{func(r *vnet.Request) { r.Links[0].Bandwidth[0].Min *= 2 }, true},
		{func(r *vnet.Request) { r.Links[0].Impair[1].Loss = 10_000 }, true},
		{func(r *vnet.Request) { r.For *= 2 }, false},
	} {
		was := l
		asked := rewrite(l.Request)
		c.change(&asked)
		l, _, err = book.Revise(noon, l.ID(), asked, nil, false)
		must(err)
		if (l.Digest() != was.Digest()) != c.stale || fmt.Sprint(l.Rates) != fmt.Sprint(was.Rates) {
			t.Errorf("change %d: %s after %s, rates %v after %v", i, l.Digest(), was.Digest(), l.Rates, was.Rates)
		}
	}
}

// TestRevisedAccount: what has passed is quoted as it was, what is left anew.
func TestRevisedAccount(t *testing.T) {
	book := New(line())
	l, err := book.Admit(noon, transfer{to: 1, mbit: 100, length: 60}.request(0), 0)
	must(err)
	asked := rewrite(l.Request)
	asked.For = 2 * time.Hour
	asked.Links[0].Bandwidth[0].Min *= 2
	asked.Links[0].Bandwidth[1].Min *= 2
	l, _, err = book.Revise(noon.Add(30*time.Minute), l.ID(), asked, nil, false)
	must(err)
	// An account counts half of both directions: 100 Mbit/s for 30 minutes, then 200 for 90.
	if got, want := l.Account.Quote.Bandwidth, 100*1800.0+200*5400; got != want {
		t.Errorf("quoted %g Mbit, want %g", got, want)
	}
	if got, want := l.Account.Hourly.Bandwidth, 200*3600.0; got != want {
		t.Errorf("%g Mbit an hour, want %g", got, want)
	}
}
