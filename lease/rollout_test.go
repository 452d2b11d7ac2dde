package lease

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// TestRollout plays testdata/rollout/*.txt with a Rollout:
//
//	aim h1 a=100 b=200, h2 a=100     targets: leases t/a, t/b at these Mbit/s
//	report h1 [REVISION] [KIND KEY=PROBLEM]
//	advance 5s
//	lease a                          who has it, and who not yet
func TestRollout(t *testing.T) {
	play(t, "testdata/rollout/*.txt", func() func([]string) string {
		r := rollouts{now: noon, Rollout: NewRollout(DefaultLiveness), shown: map[vnet.HostID]uint64{}}
		return r.say
	})
}

type rollouts struct {
	*Rollout
	now   time.Time
	shown map[vnet.HostID]uint64
}

func (r *rollouts) say(words []string) string {
	switch words[0] {
	case "aim":
		r.aim(parseTargets(strings.Join(words[1:], " ")))
	case "report":
		r.Report(r.now, parseReport(r.Rollout, words[1:]))
	case "advance":
		d, err := vnet.ParseDuration(words[1])
		must(err)
		r.now = r.now.Add(d)
	case "restart":
		plans, counters := r.Plans(), Counters{Revision: r.revision, Terms: r.terms}
		r.Rollout = NewRollout(DefaultLiveness)
		r.Restore(r.now, counters, plans)
	case "lease":
		id := vnet.LeaseID{Tenant: "t", Network: vnet.VNetID(words[1])}
		all := slices.Sorted(maps.Keys(r.hosts))
		return fmt.Sprintf("missing %v remaining %v errors %q\n", r.Missing(id, all), r.Remaining(id, all), r.Errors(id, all))
	default:
		return "not understood\n"
	}
	r.Step(r.now)
	return r.news()
}

func (r *rollouts) aim(targets map[vnet.HostID]plan.Host) {
	names := slices.Sorted(maps.Keys(targets))
	for _, name := range names {
		r.Aim(r.now, targets[name])
	}
	r.Keep(r.now, names)
}

// news prints the plans published since the last news, and who is waited for.
func (r *rollouts) news() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.hosts)) {
		if p := r.hosts[name].plan; p.Revision != r.shown[name] {
			r.shown[name] = p.Revision
			fmt.Fprintf(&b, "%s rev %d:", name, p.Revision)
			for _, l := range p.Links {
				fmt.Fprintf(&b, " %s=%g", l.Lease.Network, l.Ends[0].Rate.Mbps())
			}
			b.WriteString("\n")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.shown)) {
		if r.hosts[name] == nil {
			delete(r.shown, name)
			fmt.Fprintf(&b, "%s forgotten\n", name)
		}
	}
	if blockers := r.Blockers(r.now); len(blockers) > 0 {
		fmt.Fprintf(&b, "waiting for %s until %s\n", list(blockers), r.Next(r.now).Sub(noon).Round(time.Second))
	}
	return b.String()
}

func parseTargets(text string) map[vnet.HostID]plan.Host {
	targets := make(map[vnet.HostID]plan.Host)
	for _, host := range strings.Split(text, ",") {
		words := strings.Fields(host)
		p := plan.Host{Host: vnet.HostID(words[0])}
		for _, word := range words[1:] {
			name, rate, _ := strings.Cut(word, "=")
			p.Add(plan.VxLink{
				Lease: vnet.LeaseID{Tenant: "t", Network: vnet.VNetID(name)},
				Ends:  [2]plan.End{{Rate: mbit(rate)}, {}},
			})
		}
		targets[p.Host] = p
	}
	return targets
}

func parseReport(r *Rollout, words []string) plan.Report {
	name := vnet.HostID(words[0])
	report := plan.Report{Host: name}
	if h := r.hosts[name]; h != nil {
		report.Revision = h.plan.Revision
	}
	if len(words) == 2 {
		_, err := fmt.Sscan(words[1], &report.Revision)
		must(err)
	}
	if len(words) > 2 {
		key, problem, _ := strings.Cut(strings.Join(words[2:], " "), "=")
		report.Tried, report.Revision = report.Revision, 0
		report.Errors = plan.Errors{{Kind: plan.Kind(words[1]), Key: key, Lease: leaseOf(key), Text: problem}}
		if words[1] == string(plan.KindReach) {
			report.Errors[0].Lease, report.Errors[0].Op = leaseOf(key+"#"), plan.Carry
			if problem == "not asked yet" {
				report.Errors[0].Op = plan.Await
			}
		}
	}
	return report
}

// leaseOf is the lease of a link, by its key in a conversation; none: an uplink's.
func leaseOf(key string) vnet.LeaseID {
	fabric, _, ok := strings.Cut(key, "#")
	tenant, network, _ := strings.Cut(fabric, ".")
	if !ok {
		return vnet.LeaseID{}
	}
	return vnet.LeaseID{Tenant: vnet.TenantID(tenant), Network: vnet.VNetID(network)}
}
