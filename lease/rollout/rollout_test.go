package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/lease/conversation"
	"sublet/plan"
	"sublet/vnet"
)

// TestRollout plays testdata/*.txt with a Rollout:
//
//	aim h1 a=100 b=200, h2 a=100     targets: leases t/a, t/b at these Mbit/s
//	report h1 [REVISION] [KIND KEY=PROBLEM]
//	advance 5s
//	lease a                          who has it, and who not yet
func TestRollout(t *testing.T) {
	conversation.Play(t, "testdata/*.txt", func() func([]string) string {
		r := rollouts{now: noon, Rollout: New(DefaultLiveness), shown: map[vnet.HostID]uint64{}}
		return r.say
	})
}

// noon is when every conversation begins.
var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

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
		report, err := conversation.Report(r.hosts[vnet.HostID(words[1])].plan.Revision, words[1:])
		must(err)
		r.Report(r.now, report)
	case "advance":
		d, err := vnet.ParseDuration(words[1])
		must(err)
		r.now = r.now.Add(d)
	case "restart":
		plans, lineage := r.Plans(), r.Lineage()
		r.Rollout = New(DefaultLiveness)
		r.Restore(r.now, lineage, plans, nil)
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
		r.SetTarget(r.now, targets[name])
	}
	r.Retain(r.now, names)
}

// news prints the plans published since the last news, and who is waited for.
func (r *rollouts) news() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.hosts)) {
		if p := r.hosts[name].plan; p.Revision != r.shown[name] {
			r.shown[name] = p.Revision
			fmt.Fprintf(&b, "%s rev %d:", name, p.Revision)
			for _, l := range plan.Of[plan.VxLink](p) {
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

func mbit(text string) vnet.Rate {
	n, err := strconv.ParseFloat(text, 64)
	must(err)
	return vnet.Rate(n * float64(vnet.Mbit))
}

func list(hosts []vnet.HostID) string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = string(h)
	}
	return strings.Join(names, ", ")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
