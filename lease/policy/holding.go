// Package policy decides whether a request keeps an operator's quotas, and
// what of them is used. It knows leases as amounts over time, not where they
// are placed.
package policy

import (
	"slices"
	"time"

	"sublet/vnet"
)

// concurrent are the quotas that hold at every instant, in the order of Amounts.
var concurrent = [...]vnet.QuotaName{
	vnet.QuotaNodes, vnet.QuotaCPU, vnet.QuotaMemory, vnet.QuotaBandwidth,
	vnet.QuotaWaysOut, vnet.QuotaPublish, vnet.QuotaExits, vnet.QuotaJoins, vnet.QuotaDevices,
}

// Where Amounts have the bandwidth, and what leads out.
const (
	bandwidth = 3 + iota
	waysOut
	published
	exits
	joins
	devices
)

// Amounts is what a network takes at one instant: nodes, thousandths of a
// core, bytes, bit/s, and how many of it lead out of the substrate.
type Amounts [len(concurrent)]int64

func (a *Amounts) add(b Amounts) {
	for i, n := range b {
		a[i] = sum(a[i], n)
	}
}

// sum of two amounts; one that is too large is Unlimited, which no limit allows.
func sum(a, b int64) int64 {
	if a > vnet.Unlimited-b {
		return vnet.Unlimited
	}
	return a + b
}

// Use is what a network takes from a time after its start on.
type Use struct {
	After time.Duration
	Amounts
}

// Uses is what a request takes over time, stage by stage; the first use begins
// with the window. Stages on command count as if they had begun, and as if they
// had not: the most of either.
func Uses(r vnet.Request) []Use {
	uses := []Use{{Amounts: amounts(r.At(-1))}}
	for i, s := range r.Stages {
		takes := amounts(r.At(i))
		if s.Timed() {
			uses = append(uses, Use{After: s.After, Amounts: takes})
			continue
		}
		last := &uses[len(uses)-1]
		for j, n := range takes {
			last.Amounts[j] = max(last.Amounts[j], n)
		}
	}
	return uses
}

func amounts(top vnet.Topology) (a Amounts) {
	for _, n := range top.Placed() {
		a.add(Amounts{1, int64(n.CPU), int64(n.Memory)})
	}
	a.add(outside(top))
	for _, l := range top.Links {
		for _, d := range vnet.Directions {
			a.add(Amounts{bandwidth: int64(l.Bandwidth[d].Min)})
		}
	}
	return a
}

// outside counts what leads out of the substrate.
func outside(top vnet.Topology) (a Amounts) {
	count := func(what int, is bool) {
		if is {
			a[what]++
		}
	}
	for _, n := range top.Nodes {
		count(joins, n.Join != "")
		count(devices, n.Device != "")
	}
	for _, r := range top.Routers {
		count(waysOut, r.NAT != "")
		a[published] += int64(len(r.Publish))
	}
	for _, s := range top.Switches {
		count(exits, s.Access != "")
	}
	return a
}

// Holding is a lease that is not over, or a request, as quotas count it.
type Holding struct {
	Tenant vnet.TenantID
	Window vnet.Window
	// Latest is the latest start of one whose start is not fixed; zero: Window.Start.
	Latest time.Time
	Uses   []Use // by After
}

// of is a request as it would be held from now on.
func of(now time.Time, r vnet.Request) Holding {
	h := Holding{Tenant: r.Tenant, Window: vnet.Window{Start: r.Start}, Latest: r.Before, Uses: Uses(r)}
	if r.Start.IsZero() {
		h.Window.Start = now
	}
	if r.For > 0 {
		h.Window.End = h.Window.Start.Add(r.For)
	}
	return h
}

// span is a time in which something is taken all along.
type span struct {
	vnet.Window
	Amounts
}

// spans are what a holding takes over time. One whose start is not fixed
// counts with the most it takes at any time, as long as it may last.
func (h Holding) spans() []span {
	if h.Latest.After(h.Window.Start) {
		all := span{Window: h.Window}
		if !all.End.IsZero() {
			all.End = all.End.Add(h.Latest.Sub(h.Window.Start))
		}
		for _, u := range h.Uses {
			for i, n := range u.Amounts {
				all.Amounts[i] = max(all.Amounts[i], n)
			}
		}
		return []span{all}
	}
	var list []span
	for i, u := range h.Uses {
		s := span{vnet.Window{Start: h.Window.Start.Add(u.After), End: h.Window.End}, u.Amounts}
		if i+1 < len(h.Uses) {
			s.End = earlier(s.End, h.Window.Start.Add(h.Uses[i+1].After))
		}
		if s.End.IsZero() || s.Start.Before(s.End) {
			list = append(list, s)
		}
	}
	return list
}

// bits is the bandwidth times the time for which a holding is still booked.
// Without an end that is Unlimited, if it has a minimum at the end.
func (h Holding) bits(now time.Time) (total int64) {
	fixed := h
	fixed.Latest = time.Time{}
	for _, s := range fixed.spans() {
		from := later(now, s.Start)
		switch {
		case s.Amounts[bandwidth] == 0:
		case s.End.IsZero():
			return vnet.Unlimited
		case s.End.After(from):
			total = sum(total, vnet.BandwidthTime(vnet.Rate(s.Amounts[bandwidth]), s.End.Sub(from)))
		}
	}
	return total
}

// peak is the most that holdings take at any instant of a window.
func peak(holdings []Holding, w vnet.Window) (most Amounts) {
	type step struct {
		at time.Time
		Amounts
	}
	var steps []step
	for _, h := range holdings {
		for _, s := range h.spans() {
			if !s.Overlaps(w) {
				continue
			}
			steps = append(steps, step{later(s.Start, w.Start), s.Amounts})
			if !s.End.IsZero() {
				for i := range s.Amounts {
					s.Amounts[i] = -s.Amounts[i]
				}
				steps = append(steps, step{s.End, s.Amounts})
			}
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return a.at.Compare(b.at) })
	var now Amounts
	for i, s := range steps {
		for j, n := range s.Amounts { // of admitted leases: their sum is small
			now[j] += n
		}
		if i+1 < len(steps) && steps[i+1].at.Equal(s.at) || !w.End.IsZero() && !s.at.Before(w.End) {
			continue
		}
		for j, n := range now {
			most[j] = max(most[j], n)
		}
	}
	return most
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
