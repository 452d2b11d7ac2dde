package feedback

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"sublet/agent/control"
	"sublet/datapath/chain"
	"sublet/datapath/nsh"
	"sublet/plan"
	"sublet/vnet"
)

// plane is a function that costs time for each packet, and has so much of it as its
// quota gives. It is a Group.
type plane struct {
	cost      time.Duration // of a packet
	share     float64
	used      time.Duration
	throttled int64
	counts    nsh.Counts
}

func (p *plane) Used() (time.Duration, error) { return p.used, nil }
func (p *plane) Throttled() (int64, error)    { return p.throttled, nil }
func (p *plane) SetQuota(quota, period time.Duration) error {
	p.share = quota.Seconds() / period.Seconds()
	return nil
}

// pass has packets arrive during an interval.
func (p *plane) pass(packets, size float64) {
	served := min(packets, p.share*interval.Seconds()/p.cost.Seconds())
	if served < packets {
		p.throttled++
	}
	p.used += time.Duration(served * float64(p.cost))
	p.counts.Packets += uint64(packets)
	p.counts.Bytes += uint64(packets * size)
	p.counts.Returned += uint64(served)
}

// bed is a loop over one function that a chain of a rate passes.
type bed struct {
	loop  *Loop
	plane *plane
	said  bytes.Buffer
	now   time.Time
	item  plan.Chains
}

const rate = 20_000_000 // bit/s

func newBed(auto plan.ChainProcessing) *bed {
	b := &bed{plane: &plane{cost: 20 * time.Microsecond, share: float64(auto.Most) / 1000}, now: time.Unix(0, 0)}
	b.item = plan.Chains{
		Lease:     vnet.LeaseID{Tenant: "t", Network: "n"},
		Functions: []plan.ChainFunction{{Name: "ids", Type: vnet.FunctionProgram, Auto: &auto}},
		Hops:      []plan.ChainHop{{Path: 7, Index: 255, Chain: "web", Function: "ids", Rate: rate}, {Path: 7, Index: 254, Chain: "web", Egress: "b"}},
	}
	b.loop = &Loop{Group: func(string) Group { return b.plane }, Log: slog.New(slog.NewTextHandler(&b.said, nil))}
	return b
}

// run has the chain's rate of packets of a size for so long.
func (b *bed) run(length time.Duration, size float64) {
	for range length / interval {
		b.plane.pass(math.Round(rate/8/size*interval.Seconds()), size)
		b.now = b.now.Add(interval)
		b.loop.step(b.now, []chain.Held{{Chains: b.item, Counts: []nsh.Counts{b.plane.counts, {}}}})
	}
}

// needs fails the test if the share is not what packets of a size take, with a
// twentieth to spare.
func (b *bed) needs(t *testing.T, size float64) {
	t.Helper()
	need := rate / 8 / size * b.plane.cost.Seconds()
	if got := b.plane.share / need; got < 1 || got > 1.1 {
		t.Errorf("a share of %.4f, where %.4f is needed for %g bytes", b.plane.share, need, size)
	}
}

// What a function has follows the load: less than is booked, more when packets are
// smaller, also where nobody measured it.
func TestSharesFollowTheLoad(t *testing.T) {
	for _, auto := range []plan.ChainProcessing{{Most: 1000}, {Most: 500, Fixed: 19e6}} {
		b := newBed(auto)
		b.run(5*time.Second, 1000)
		b.needs(t, 1000)
		b.run(2*time.Second, 250)
		b.needs(t, 250)
		served := b.plane.counts
		b.run(5*time.Second, 250)
		if arrived := b.plane.counts.Packets - served.Packets; b.plane.counts.Returned-served.Returned < arrived*99/100 {
			t.Errorf("%d of %d packets passed", b.plane.counts.Returned-served.Returned, arrived)
		}
		b.run(5*time.Second, 1000)
		b.needs(t, 1000)
		if why := b.loop.Short(b.item.Lease, "web"); why != "" {
			t.Errorf("short: %s", why)
		}
	}
}

// A function that needs more than is booked gets that, and the chain is said to be
// short, once, with the cause.
func TestShortageIsSaid(t *testing.T) {
	b := newBed(plan.ChainProcessing{Most: 50})
	b.run(10*time.Second, 500) // needs a tenth of a core
	if want := quotaOf(0.05); math.Abs(b.plane.share-want) > 1e-4 {
		t.Errorf("a share of %.4f, where %.4f is booked", b.plane.share, want)
	}
	if why := b.loop.Short(b.item.Lease, "web"); !strings.Contains(why, "ids can use no more processor") {
		t.Errorf("short: %q", why)
	}
	if said := strings.Count(b.said.String(), "short of processor time"); said != 1 {
		t.Errorf("said %d times: %s", said, b.said.String())
	}
	b.run(10*time.Second, 1400)
	if why := b.loop.Short(b.item.Lease, "web"); why != "" {
		t.Errorf("short for large packets: %s", why)
	}
}

// A function that needs more than is booked has of what no node of the machine has, as
// long as it is there.
func TestFreeProcessorsAreLent(t *testing.T) {
	b := newBed(plan.ChainProcessing{Most: 50})
	cores := 0.3
	b.loop.Free = func() float64 { return cores - b.plane.share }
	b.run(10*time.Second, 500)
	b.needs(t, 500)
	if why := b.loop.Short(b.item.Lease, "web"); why != "" {
		t.Errorf("short, though there are %g cores: %s", cores, why)
	}
	cores = 0.08 // another node has the rest
	b.run(5*time.Second, 500)
	if want := quotaOf(cores); math.Abs(b.plane.share-want) > 1e-3 {
		t.Errorf("a share of %.4f, where %.4f is left", b.plane.share, want)
	}
	if why := b.loop.Short(b.item.Lease, "web"); why == "" {
		t.Error("not short")
	}
	cores = 0.01
	b.run(5*time.Second, 500)
	if want := quotaOf(0.05); math.Abs(b.plane.share-want) > 1e-3 {
		t.Errorf("a share of %.4f, where %.4f is booked", b.plane.share, want)
	}
}

func quotaOf(share float64) float64 {
	quota, period := control.Quota(share)
	return quota.Seconds() / period.Seconds()
}

// A change of the item begins with what is booked; without it nothing is known of
// the lease.
func TestNewItem(t *testing.T) {
	b := newBed(plan.ChainProcessing{Most: 1000})
	b.run(5*time.Second, 1000)
	low := b.plane.share
	b.item.Hops[0].Rate = 2 * rate
	b.run(3*interval, 1000)
	if law := b.loop.leases[b.item.Lease].law; law.Shares()[0] < low {
		t.Errorf("after a change a share of %.3f, before %.3f", law.Shares()[0], low)
	}
	b.loop.step(b.now.Add(interval), nil)
	if len(b.loop.leases) != 0 || b.loop.Short(b.item.Lease, "web") != "" {
		t.Error("a lease that is gone is held")
	}
}

// Where two chains share a function that is short, the one of higher priority has its
// rate, and the other is said to be short.
func TestPriorityOfChains(t *testing.T) {
	b := newBed(plan.ChainProcessing{Most: 150}) // both need 200 thousandths
	b.item.Hops = []plan.ChainHop{
		{Path: 7, Index: 255, Chain: "rest", Function: "ids", Rate: rate},
		{Path: 8, Index: 255, Chain: "web", Function: "ids", Rate: rate, Priority: 1},
	}
	for range 10 * time.Second / interval {
		b.plane.pass(math.Round(2*rate/8/500*interval.Seconds()), 500)
		each := b.plane.counts
		each.Packets, each.Bytes, each.Returned = each.Packets/2, each.Bytes/2, each.Returned/2
		b.now = b.now.Add(interval)
		b.loop.step(b.now, []chain.Held{{Chains: b.item, Counts: []nsh.Counts{each, each}}})
	}
	if why := b.loop.Short(b.item.Lease, "web"); why != "" {
		t.Errorf("the chain of higher priority is short: %s", why)
	}
	if why := b.loop.Short(b.item.Lease, "rest"); !strings.Contains(why, "ids can use no more processor") {
		t.Errorf("the other one: %q", why)
	}
}
