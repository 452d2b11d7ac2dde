package agent

import (
	"context"
	"fmt"
	"time"

	"sublet/plan"
	"sublet/report"
)

// take decides about the server's plan. One that goes on from the plan that
// the host has is followed; so is one that the operator said is to be. Any
// other, such as that of a store that was lost, mistaken or put back, is
// followed only if it removes nothing: else the host keeps what it has.
func (l *loop) take(ctx context.Context, next plan.Host) {
	l.unread = ""
	has, why := l.want.Origin(), ""
	follows := l.known && next.Follows(has)
	switch {
	case next.Host != l.Host:
		why = fmt.Sprintf("the server gave it the plan of host %q", next.Host)
	case follows || next.Adopts(has):
		if next.Half {
			next, why = l.shrunk(ctx, next)
		}
	default:
		why = l.harm(ctx, next)
	}
	if why != "" {
		l.hold(ctx, next, why)
		return
	}
	if !follows {
		l.applied = 0
		l.Log.Info("follows the plan of a store", "store", next.Store, "revision", next.Revision)
	}
	l.want, l.known, l.changed, l.saved = next.Kept(), true, true, false
	l.held, l.refused = nil, plan.Host{}
}

// shrunk is the half of a plan that only removes and lowers.
func (l *loop) shrunk(ctx context.Context, next plan.Host) (half plan.Host, why string) {
	have := l.want
	if !l.known {
		if have = Observe(ctx, next, l.Parts); len(have.Unknown) > 0 {
			return next, unread(have)
		}
	}
	return next.Shrunk(have), ""
}

// harm says why a plan that does not go on from the host's must not be
// followed; "": it removes nothing.
func (l *loop) harm(ctx context.Context, next plan.Host) string {
	have := Observe(ctx, next, l.Parts)
	if len(have.Unknown) > 0 {
		return unread(have)
	}
	whole, err := l.whole(ctx, next)
	if err != nil {
		return err.Error()
	}
	removes := 0
	for _, s := range plan.Diff(whole, have) {
		if s.Op == plan.Delete {
			removes++
		}
	}
	if removes == 0 {
		return ""
	}
	return fmt.Sprintf("%s, and the server's would remove %d things that are there", l.stranger(next), removes)
}

func unread(have plan.Host) string {
	return fmt.Sprintf("what is there cannot be read: %s", have.Unknown[0].Why)
}

// stranger says in which way a plan does not go on from the host's.
func (l *loop) stranger(next plan.Host) string {
	switch {
	case !l.known:
		return "it has no copy of its plan"
	case l.want.Store != next.Store:
		return fmt.Sprintf("it has a plan of another store (revision %d)", l.want.Revision)
	}
	return fmt.Sprintf("it has a plan (revision %d) that this store does not know, as of an older copy of it", l.want.Revision)
}

// hold keeps what the host has and says so, in the log once per cause.
func (l *loop) hold(ctx context.Context, next plan.Host, why string) {
	if l.held == nil || l.held.Why != why {
		l.Log.Error("the server's plan is not followed, what runs is kept until the operator adopts this host", "because", why, "command", "sublet hosts adopt "+string(l.Host))
	}
	l.held, l.refused = &report.Held{Origin: l.want.Origin(), Store: l.want.Store, Why: why}, next
	l.report(ctx)
}

// again looks once more, at every sign of life, whether the server's plan can
// be followed now.
func (l *loop) again(ctx context.Context) {
	if l.held != nil && time.Since(l.reported) > heartbeat {
		l.take(ctx, l.refused)
	}
}
