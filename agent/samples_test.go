package agent

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// counter is a part that tells how often it was read, for two tenants.
type counter struct {
	*fakeKernel
	kind  plan.Kind
	size  int // of a reason, bytes
	fails error

	mu    sync.Mutex
	reads uint64
}

func (c *counter) Kinds() []plan.Kind { return []plan.Kind{c.kind} }

func (c *counter) Samples(_ context.Context, of report.Scope) ([]report.Sample, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	var list []report.Sample
	for _, tenant := range []vnet.TenantID{"alice", "bob"} {
		s := report.Sample{Kind: c.kind, Key: string(tenant), Lease: vnet.LeaseID{Tenant: tenant, Network: "net"}, Why: strings.Repeat("x", c.size)}
		s.Count("reads", report.None, c.reads)
		if of.Holds(s.Lease) {
			list = append(list, s)
		}
	}
	return list, c.fails
}

// All who ask within a second get one reading, each what is theirs; who asks
// every second gets one each time, and misses none that is kept.
func TestRoundsAreSharedAndScoped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		part := &counter{fakeKernel: newFake(), kind: plan.KindVxLink}
		a := &Agent{Host: "h1", Parts: []Part{part, newFake()}}
		var asking sync.WaitGroup
		for _, tenant := range []vnet.TenantID{"", "alice", "bob", "carol"} {
			asking.Go(func() {
				got := a.Rounds(t.Context(), 0, report.Scope{Tenant: tenant})
				if len(got) != 1 || got[0].Number != 1 || len(got[0].Samples) != map[vnet.TenantID]int{"": 2, "alice": 1, "bob": 1}[tenant] {
					t.Errorf("%q got %+v", tenant, got)
				}
				for _, s := range got[0].Samples {
					if s.Host != "h1" || s.At.IsZero() || tenant != "" && s.Lease.Tenant != tenant {
						t.Errorf("%q got %+v", tenant, s)
					}
				}
			})
		}
		asking.Wait()
		if part.reads != 1 {
			t.Errorf("four who ask at once made %d readings", part.reads)
		}
		for want := uint64(2); want < 10; want++ {
			time.Sleep(time.Second)
			got := a.Rounds(t.Context(), want-1, report.Scope{})
			if len(got) != 1 || got[0].Number != want || got[0].Samples[0].Value("reads", report.None) != want {
				t.Fatalf("after %d: %+v", want-1, got)
			}
		}
		if got := a.Rounds(t.Context(), 4, report.Scope{}); len(got) != 5 || got[0].Number != 5 {
			t.Errorf("after 4: %d rounds", len(got))
		}
		if got := a.Rounds(t.Context(), 4000, report.Scope{}); len(got) != 1 {
			t.Errorf("who had an earlier agent's number got %d rounds", len(got))
		}
	})
}

// numbers is a part that says so many figures, each of eight bytes and more.
type numbers struct {
	*fakeKernel
	count int
	again int // readings
}

func (n *numbers) Samples(context.Context, report.Scope) ([]report.Sample, error) {
	n.again++
	s := report.Sample{Kind: plan.KindVxLink, State: report.State(strings.Repeat("x", n.again%2))}
	for range n.count {
		s.Count("number", report.None, 1<<62)
	}
	return []report.Sample{s}, nil
}

func TestRoundsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Agent{Host: "h1", Parts: []Part{&numbers{fakeKernel: newFake(), count: ringBytes / 40}}}
		for range 20 {
			a.Rounds(t.Context(), 0, report.Scope{})
			time.Sleep(time.Second)
		}
		if got := a.Rounds(t.Context(), 1, report.Scope{}); len(got) < 2 || len(got) > 5 || got[len(got)-1].Number != 21 {
			t.Errorf("%d rounds of about a quarter of the bound each are kept", len(got))
		}
	})
}

// A host on which one reading is larger than the bound is still read.
func TestARoundLargerThanTheBoundIsSaid(t *testing.T) {
	a := &Agent{Host: "h1", Parts: []Part{&numbers{fakeKernel: newFake(), count: ringBytes / 8}}}
	if got := a.Rounds(t.Context(), 0, report.Scope{}); len(got) != 1 || len(got[0].Samples[0].Counters) != ringBytes/8 {
		t.Errorf("%d rounds", len(got))
	}
}

// changing is a part whose thing has another reason, and is long, at each reading.
type changing struct {
	*fakeKernel
	again int
}

func (c *changing) Samples(context.Context, report.Scope) ([]report.Sample, error) {
	c.again++
	return []report.Sample{{Kind: plan.KindVxLink, Why: strings.Repeat("x", 1<<16) + strconv.Itoa(c.again)}}, nil
}

// Who asks in the short form gets each head once, and goes on when a new era begins
// because most heads are of states that are gone.
func TestHeadsGoOverOnceAndDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Agent{Host: "h1", Parts: []Part{&changing{fakeKernel: newFake()}}}
		var known []report.Sample
		era, after, eras, most := uint64(0), uint64(0), 0, 0
		for n := range 200 {
			p := a.Packed(t.Context(), after, report.Scope{}, era, len(known))
			list, err := p.After(era, known)
			if err != nil || len(p.Heads) != 1 || len(p.Rounds) != 1 {
				t.Fatalf("question %d: %d heads and %d rounds, %v", n, len(p.Heads), len(p.Rounds), err)
			}
			round, err := p.Rounds[0].Unpack(list)
			if err != nil || round.Number != uint64(n+1) || !strings.HasSuffix(round.Samples[0].Why, "x"+strconv.Itoa(n+1)) {
				t.Fatalf("question %d: round %d, %v", n, round.Number, err)
			}
			if p.Era != era {
				eras++
			}
			known, era, after, most = list, p.Era, round.Number, max(most, len(list))
			time.Sleep(time.Second)
		}
		if eras < 3 || most > 40 {
			t.Errorf("%d eras, of %d heads at most", eras, most)
		}
	})
}

// What one part cannot read is said, and keeps nothing of the others back. Who
// asks for some kinds asks only their parts.
func TestSamplesOfOthersStandBesideAnError(t *testing.T) {
	good, bad := &counter{fakeKernel: newFake(), kind: plan.KindVxLink}, &counter{fakeKernel: newFake(), kind: plan.KindOverlay, fails: errors.New("no such map")}
	a := &Agent{Host: "h1", Parts: []Part{bad, good}}
	samples, err := a.Samples(t.Context(), report.Scope{})
	if err == nil || len(samples) != 5 || samples[2].State != report.Unreadable || samples[2].Why != "no such map" || samples[2].Kind != plan.KindOverlay {
		t.Errorf("%v, %+v", err, samples)
	}
	if samples, err = a.Samples(t.Context(), report.Scope{}, plan.KindVxLink); err != nil || len(samples) != 2 {
		t.Errorf("of one kind: %v, %+v", err, samples)
	}
	if len(a.Rounds(t.Context(), 0, report.Scope{Tenant: "alice"})[0].Samples) != 2 {
		t.Error("a tenant did not get what is theirs, or got the error")
	}
}
