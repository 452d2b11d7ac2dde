package server

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

func TestLimits(t *testing.T) {
	r := newRig(t)
	r.stop()
	r.limits = Limits{Leases: 2, PerSecond: 0.001, Burst: 8, Concurrent: 2, Admissions: 100}
	r.start()
	ctx, c := within(t), r.as(1)
	for i := range 2 {
		must[api.Admission](t)(c.Admit(ctx, pair(fmt.Sprint("n", i), vnet.Mbit), false))
	}
	_, err := c.Admit(ctx, pair("n2", vnet.Mbit), false)
	var rejection *vnet.Rejection
	if !errors.As(err, &rejection) || rejection.Offer != nil {
		t.Errorf("the third lease of two allowed: %v", err)
	}
	var problem *api.Problem
	for range 8 {
		if _, err = c.Leases(ctx); err != nil {
			break
		}
	}
	if !errors.As(err, &problem) || problem.Status != 429 || problem.After == 0 {
		t.Errorf("a flood gave %v", err)
	}
	must[[]vnet.Lease](t)(r.as(2).Leases(ctx)) // others are not held up
	must[[]vnet.Lease](t)(r.as(0).Leases(ctx))
	concurrentLimit(t, r)
}

// concurrentLimit fills a tenant's places with long polls.
func concurrentLimit(t *testing.T, r *rig) {
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	c := r.as(3)
	id := must[api.Admission](t)(c.Admit(ctx, pair("net", vnet.Mbit), false)).Lease.ID()
	for range 2 {
		go c.WaitReady(ctx, id)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := c.Leases(ctx)
		var problem *api.Problem
		if errors.As(err, &problem) && problem.Status == 429 {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("two places taken, the third request gave %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
