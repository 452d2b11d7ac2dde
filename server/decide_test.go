package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

func tenant(name string) trust.Caller {
	return trust.Caller{Tenant: vnet.TenantID(name), Account: vnet.TenantID(name)}
}

// decidesUntil is a question that takes all the work it gets until done, in the
// second lane.
func decidesUntil(began chan<- struct{}, done <-chan struct{}) func(deciding) error {
	return func(d deciding) error {
		for !d.effort.Over() && !d.last {
			d.effort.Spend(1 << 16)
		}
		if !d.last {
			return nil
		}
		began <- struct{}{}
		for {
			select {
			case <-done:
				return nil
			default:
			}
			if d.effort.Spend(1 << 16); d.effort.Gone() {
				return nil
			}
		}
	}
}

// start makes a decision in the background, and waits until it is under way.
func start(t *testing.T, d *deciders, ctx context.Context, c trust.Caller) (stop func(), ended <-chan error) {
	began, done, end := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { end <- d.decide(ctx, c, decidesUntil(began, done)) }()
	select {
	case <-began:
	case <-time.After(time.Minute):
		t.Fatal("a decision does not begin")
	}
	return func() { close(done) }, end
}

// TestDecidingStopsNobody: while large questions of others are decided, leases
// are listed, windows begin and end, and other tenants are admitted.
func TestDecidingStopsNobody(t *testing.T) {
	r := newRig(t)
	server := must[*Server](t)(New(t.Context(), Config{Store: r.store}))
	stop, ended := start(t, server.deciders, t.Context(), tenant("mallory"))
	alice := &call{Caller: tenant("alice")}
	ask := func(name string) api.Ask {
		a := api.Ask{Request: pair(name, vnet.Mbit)}
		a.Request.Tenant, a.Request.For = "alice", time.Hour
		return a
	}
	for i := range 8 {
		must[api.Admission](t)(server.admit(t.Context(), alice, ask(fmt.Sprint("n", i))))
	}
	server.tick(t.Context())
	if err := server.look(func(_ time.Time, b *lease.Book) error {
		if n := len(b.Of("alice")); n != 8 {
			t.Errorf("%d leases, want 8", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Errorf("the large question ended: %v", err)
	default:
	}
	if stop(); <-ended != nil {
		t.Error("the large question failed")
	}
}

// TestTurns: a tenant's requests are decided one after another, in bounded
// number, and do not stand before another tenant's.
func TestTurns(t *testing.T) {
	d := newDeciders()
	stop, ended := start(t, d, t.Context(), tenant("mallory"))
	var more atomic.Int32
	waiting := make(chan error, mostAsked)
	for range mostAsked - 1 {
		go func() {
			waiting <- d.decide(t.Context(), tenant("mallory"), func(deciding) error { more.Add(1); return nil })
		}()
	}
	for d.asked("mallory") < mostAsked {
		time.Sleep(time.Millisecond)
	}
	var problem *api.Problem
	if err := d.decide(t.Context(), tenant("mallory"), nil); !errors.As(err, &problem) || problem.Status != 429 {
		t.Errorf("one more than may wait: %v", err)
	}
	decided := 0
	if err := d.decide(t.Context(), tenant("alice"), func(deciding) error { decided++; return nil }); err != nil || decided != 1 {
		t.Errorf("another tenant: %v, decided %d times", err, decided)
	}
	if more.Load() != 0 {
		t.Error("two questions of one tenant were decided at once")
	}
	if stop(); <-ended != nil {
		t.Error("the first failed")
	}
	for range mostAsked - 1 {
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	}
	if len(d.queues) != 0 {
		t.Errorf("%d queues remain", len(d.queues))
	}
}

func (d *deciders) asked(who string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q, ok := d.queues[who]; ok {
		return q.asked
	}
	return 0
}

// TestWhoGoesAway: a decision ends with who asked for it, be it under way or
// waiting, and a defect in one concerns nobody else.
func TestWhoGoesAway(t *testing.T) {
	d := newDeciders()
	ctx, gone := context.WithCancel(t.Context())
	_, ended := start(t, d, ctx, tenant("mallory"))
	waits := make(chan error, 1)
	go func() { waits <- d.decide(ctx, tenant("mallory"), func(deciding) error { return nil }) }()
	gone()
	for _, end := range []<-chan error{ended, waits} {
		select {
		case err := <-end:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("a decision nobody waits for goes on")
		}
	}
	if err := d.decide(t.Context(), tenant("mallory"), func(deciding) error { panic("out of range") }); err == nil {
		t.Error("a defect gave no error")
	}
	for _, l := range d.lanes {
		if len(l.solvers) != cap(l.solvers) {
			t.Error("a solver is lost")
		}
	}
	if len(d.processors) != cap(d.processors) || len(d.queues) != 0 {
		t.Errorf("%d processors of %d are free, %d queues remain", len(d.processors), cap(d.processors), len(d.queues))
	}
}

// TestLastCapacityAtOnce: of many who ask for the same capacity at once exactly
// one is admitted, and all others are told what binds.
func TestLastCapacityAtOnce(t *testing.T) {
	r := newRig(t)
	server := must[*Server](t)(New(t.Context(), Config{Store: r.store}))
	answers := make(chan error, 12)
	for i := range cap(answers) {
		name := vnet.TenantID(fmt.Sprint("t", i))
		ask := api.Ask{Request: pair("net", 600*vnet.Mbit)}
		ask.Request.Tenant = name
		go func() {
			_, err := server.admit(t.Context(), &call{Caller: tenant(string(name))}, ask)
			answers <- err
		}()
	}
	admitted := 0
	for range cap(answers) {
		var refused *vnet.Rejection
		switch err := <-answers; {
		case err == nil:
			admitted++
		case !errors.As(err, &refused) || len(refused.Reasons) == 0:
			t.Errorf("neither admitted nor refused with a reason: %v", err)
		}
	}
	if admitted != 1 {
		t.Errorf("%d of them have the same capacity", admitted)
	}
}
