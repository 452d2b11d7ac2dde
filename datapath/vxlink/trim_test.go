package vxlink

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Whatever the frames, a ceiling stays where the plan booked, and what tenants'
// frames get of it is their rate, as long as these are 900 bytes on average.
func TestCeilingFollowsFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := vnet.Rate(rapid.Int64Range(int64(vnet.Mbit), int64(100*vnet.Gbit)).Draw(t, "rate")) / 8 * 8
		list := uint8(rapid.SampledFrom([]int{0, 8, 36}).Draw(t, "list"))
		record := vxlinkRecord{Mtu: 1450, List: list, Shaped: rate.BytesPerSecond(), Rate: rate.BytesPerSecond() / 2, Ceil: plan.Outer(rate).BytesPerSecond()}
		size := rapid.Uint64Range(60, 1464).Draw(t, "size")
		now := trim{record: record, ceil: record.lowest()}
		counts := vxlinkCounts{Packets: rapid.Uint64Range(0, 1<<40).Draw(t, "packets")}
		counts.Bytes = counts.Packets * size
		now.follow(counts)
		floor := uint64(0)
		for range 3 {
			frames := rapid.Uint64Range(1, 1<<30).Draw(t, "frames")
			counts.Packets, counts.Bytes = counts.Packets+frames, counts.Bytes+frames*size
			now.ceil, floor = now.follow(counts)
		}
		if !record.allows(now.ceil, false) {
			t.Fatalf("ceiling %d is not from %d to %d", now.ceil, record.lowest(), record.Ceil)
		}
		got := float64(now.ceil) * float64(size) / float64(size+plan.OuterHeaders) / float64(record.Shaped)
		if got > 1.0005 || size >= 900 && got < 0.9995 {
			t.Fatalf("frames of %d bytes get %.5f of their rate", size, got)
		}
		wire := float64(now.ceil) * float64(size+plan.OuterHeaders+uint64(list)) / float64(size+plan.OuterHeaders)
		if paid := float64(record.Shaped) * (1 + float64(plan.OuterHeaders+uint64(list))/plan.MeanFrame); wire > paid*1.0005 {
			t.Fatalf("frames of %d bytes and lists of %d take %.5f of what is paid for", size, list, wire/paid)
		} else if size < 900 && wire < paid*0.9995 {
			t.Fatalf("frames of %d bytes and lists of %d get %.5f of what is paid for", size, list, wire/paid)
		}
		if class := record.class(now.ceil, floor); class.Rate > class.Ceil || class.Ceil != now.ceil || !record.takes(class, false) {
			t.Fatalf("class %+v", class)
		}
	})
}

// A class that follows nothing, because it is best effort or its frames come
// shaped, is what the plan says.
func TestCeilingsThatFollowNothing(t *testing.T) {
	for _, r := range []vxlinkRecord{
		{Mtu: 1450, Ceil: 1000, Rate: 10},
		{Mtu: 1450, Ceil: 1000, Rate: 10, Shaped: 900, BestEffort: 1},
		{Mtu: 1450, Ceil: 900, Rate: 10, Shaped: 900},
		{Mtu: 1450, Ceil: 1000, Rate: 10, Shaped: 900, BestEffort: 1, List: 8},
	} {
		if r.lowest() != r.Ceil || !r.allows(r.Ceil, false) || r.allows(r.Ceil-1, false) || r.allows(r.Ceil+1, false) {
			t.Errorf("%+v has ceilings from %d", r, r.lowest())
		}
	}
}

// What comes shaped from another host keeps the planned ceiling too, until its
// frames are so small that their lists take more of the wire.
func TestListsOfShapedFrames(t *testing.T) {
	r := vxlinkRecord{Mtu: 1450, Ceil: 95_000_000, Rate: 10, List: 8}
	for mean, want := range map[uint64]uint64{1464: r.Ceil, 900: r.Ceil, 50: 88_703_703} {
		if got := r.ceiling(mean); got != want {
			t.Errorf("frames of %d bytes: ceiling %d, want %d", mean, got, want)
		}
	}
}

// On a kernel that leaves headers of large packets out, what a class passes is its
// rate all the same, whatever its frames and however many a packet has; and what
// is guaranteed falls with what is allowed.
func TestClassFollowsWhatIsCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := vnet.Rate(rapid.Int64Range(int64(vnet.Mbit), int64(100*vnet.Gbit)).Draw(t, "rate")) / 8 * 8
		record := vxlinkRecord{Mtu: 1450, Shaped: rate.BytesPerSecond(), Rate: rate.BytesPerSecond(), Ceil: plan.Outer(rate).BytesPerSecond()}
		size := rapid.Uint64Range(900, 1464).Draw(t, "size")
		frames := rapid.Uint64Range(1000, 1<<30).Draw(t, "frames")
		left := rapid.Float64Range(0, 0.08).Draw(t, "left out") // 116 of 1514 bytes at most
		now := trim{record: record, undercounts: true, ceil: record.full()}
		floor, counts := uint64(0), vxlinkCounts{Packets: 1}
		now.follow(counts)
		out := uint64(left * float64(frames*(size+plan.OuterHeaders)))
		for range 3 {
			counts.Packets, counts.Bytes, counts.Uncounted = counts.Packets+frames, counts.Bytes+frames*size, counts.Uncounted+out
			now.ceil, floor = now.follow(counts)
		}
		share := 1 - float64(out)/float64(frames*(size+plan.OuterHeaders))
		passed := float64(now.ceil) / share * float64(size) / float64(size+plan.OuterHeaders) / float64(record.Shaped)
		if passed < 0.9995 || passed > 1.0005 {
			t.Fatalf("frames of %d bytes, of which %.3f are not counted, get %.5f of their rate", size, left, passed)
		}
		if got := float64(floor) / share / float64(record.Rate); got < 0.9995 || got > 1.0005 {
			t.Fatalf("of the guaranteed rate %.5f remains", got)
		}
		class := record.class(now.ceil, floor)
		if !record.takes(class, true) || left > 0.01 && record.takes(class, false) {
			t.Fatalf("class %+v of %+v is not taken for what it is", class, record)
		}
	})
}

// The ceiling in the kernel follows; Observe takes it for what was planned, a
// new agent leaves it, and another rate begins anew.
func TestTrim(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	b.node(hosts[0], "n0")
	p, link := parts[0], across(0, 100*vnet.Mbit)
	add(t, p, uplink(), link)
	ceil := func() uint64 {
		t.Helper()
		c, err := hosts[0].Dial("")
		check(t, err)
		defer c.Close()
		phy, err := c.LinkByName("phy0")
		check(t, err)
		class, err := c.Class(phy.Index, kernel.Handle(1, minorTunnels))
		check(t, err)
		return class.HTB().Ceil
	}
	full, most := outer(12_500_000, 1464, plan.OuterHeaders), plan.Outer(100*vnet.Mbit).BytesPerSecond()
	if got := ceil(); got != full {
		t.Errorf("a new class has ceiling %d, want %d", got, full)
	}
	slot := p.places[place{demo, 0, 0}]
	sent := func(packets, bytes uint64) {
		t.Helper()
		now, err := p.loaded.counts(slot)
		check(t, err)
		counts := make([]vxlinkCounts, p.loaded.processors)
		counts[0] = vxlinkCounts{Packets: now.Packets + packets, Bytes: now.Bytes + bytes}
		check(t, p.loaded.counters.Put(slot, counts))
		p.trimAll()
	}
	sent(1, 1)
	if got := ceil(); got != full {
		t.Errorf("with one look the ceiling is %d already", got)
	}
	for range 12 {
		sent(1000, 1000*1000)
	}
	thousand := ceil()
	if want := outer(12_500_000, 1000, plan.OuterHeaders); differs(thousand, want) {
		t.Errorf("frames of 1000 bytes: ceiling %d, want %d", thousand, want)
	}
	has(t, p, uplink(), link)
	add(t, p, link)
	other := New(hosts[0])
	has(t, other, uplink(), link)
	add(t, other, link)
	if got := ceil(); got != thousand {
		t.Errorf("a second look and a second agent made the ceiling %d of %d", got, thousand)
	}
	for range 12 {
		sent(1000, 100*1000)
	}
	if got := ceil(); got != most {
		t.Errorf("frames of 100 bytes: ceiling %d, want %d", got, most)
	}
	link = across(0, 50*vnet.Mbit)
	add(t, p, link)
	if got, want := ceil(), outer(6_250_000, 1464, plan.OuterHeaders); got != want {
		t.Errorf("another rate: ceiling %d, want %d", got, want)
	}
}

// What a tunnel's relay list takes is kept with it, and follows the plan.
func TestListsAreKept(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	b.node(hosts[0], "n0")
	for _, list := range []int{8, 12, 0} {
		link := across(0, 100*vnet.Mbit)
		for i := range link.Ends {
			if tunnel := link.Ends[i].Tunnel; tunnel != nil {
				tunnel.List = list
			}
		}
		add(t, parts[0], uplink(), link)
		has(t, parts[0], uplink(), link)
		has(t, New(hosts[0]), uplink(), link)
	}
}

// On a kernel that undercounts, here one that only says so, rate and ceiling in
// the kernel follow within a second; Observe takes them for what was planned, and
// a new agent leaves them.
func TestTrimOfUndercountedFrames(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	b.node(hosts[0], "n0")
	p, link := parts[0], across(0, 100*vnet.Mbit)
	p.undercounts = func() bool { return true }
	add(t, p, uplink(), link)
	class := func() kernel.HTBClass {
		t.Helper()
		c, err := hosts[0].Dial("")
		check(t, err)
		defer c.Close()
		phy, err := c.LinkByName("phy0")
		check(t, err)
		class, err := c.Class(phy.Index, kernel.Handle(1, minorTunnels))
		check(t, err)
		return class.HTB()
	}
	has(t, p, uplink(), link)
	before := class()
	slot := p.places[place{demo, 0, 0}]
	for range 1 + time.Second/trimEvery {
		now, err := p.loaded.counts(slot)
		check(t, err)
		counts := make([]vxlinkCounts, p.loaded.processors)
		counts[0] = vxlinkCounts{Packets: now.Packets + 1000, Bytes: now.Bytes + 1000*1464, Uncounted: now.Uncounted + 1000*60}
		check(t, p.loaded.counters.Put(slot, counts))
		p.trimAll()
	}
	after := class()
	const share = 1 - 60./1514
	for _, v := range [][2]uint64{{after.Ceil, before.Ceil}, {after.Rate, before.Rate}} {
		if got := float64(v[0]) / float64(v[1]); got < share-0.001 || got > share+0.001 {
			t.Errorf("%d became %d, which is %.4f, want %.4f", v[1], v[0], got, share)
		}
	}
	has(t, p, uplink(), link)
	other := New(hosts[0])
	other.undercounts = p.undercounts
	has(t, other, uplink(), link)
	add(t, other, link)
	if got := class(); got != after {
		t.Errorf("a new agent made %+v of %+v", got, after)
	}
}
