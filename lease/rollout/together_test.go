package rollout

import (
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// TestChangesBeginTogether: hosts of a lease whose changes begin together wait until one
// instant, for what shrinks and for what grows; those of others, late ones and later
// changes do not wait.
func TestChangesBeginTogether(t *testing.T) {
	now, r := noon, New(DefaultLiveness)
	aim := func(text string) {
		for _, p := range parseTargets(text) {
			r.SetTarget(now, p)
		}
		r.Step(now)
	}
	done := func(hosts ...vnet.HostID) {
		for _, host := range hosts {
			has := r.hosts[host].plan.Origin()
			r.Report(now, report.Report{Host: host, Revision: has.Revision, Plan: &has})
			r.Step(now)
		}
	}
	wait := func(host vnet.HostID) time.Duration {
		if begins := r.Begins(now, host); !begins.IsZero() {
			return begins.Sub(now)
		}
		return 0
	}
	waits := func(when string, want ...time.Duration) {
		t.Helper()
		for i, host := range []vnet.HostID{"h1", "h2", "h3"} {
			if got := wait(host); got != want[i] {
				t.Errorf("%s %s waits %s, not %s", when, host, got, want[i])
			}
		}
	}
	aim("h1 a=100, h2 a=100, h3 b=100")
	done("h1", "h2", "h3")
	waits("at first", 0, 0, 0)

	r.Together(vnet.LeaseID{Tenant: "t", Network: "a"})
	aim("h1 a=50, h2 a=300, h3 b=80")
	waits("while h1 shrinks", Lead, 0, 0)
	now = now.Add(Lead / 4)
	waits("a while later", Lead*3/4, 0, 0)
	now = now.Add(Lead)
	done("h1", "h3")
	waits("while h2 grows", 0, Lead, 0)
	now = now.Add(2 * Lead)
	waits("late", 0, 0, 0)
	now = now.Add(-time.Hour)
	if got := wait("h2"); got != Lead {
		t.Errorf("with its clock set back h2 waits %s", got)
	}
	now = now.Add(time.Hour)
	done("h2")

	aim("h1 a=60, h2 a=60, h3 b=80")
	waits("changed by no stage", 0, 0, 0)
}
