package main

import (
	"context"
	"maps"
	"slices"

	"sublet/measure/probe"
	"sublet/plan"
	"sublet/server"
	"sublet/vnet"
)

// ownDoing is, by link, what tenants did inside of nodes, so that nothing passes
// and nothing can be measured.
type ownDoing map[string]string

// ownDoingOf asks the hosts of a lease's nodes.
func ownDoingOf(ctx context.Context, job server.CheckJob) (ownDoing, error) {
	own := make(ownDoing)
	hosts := slices.Sorted(maps.Values(job.Lease.Mapping.Nodes))
	for _, host := range slices.Compact(hosts) {
		list, err := job.Traffic(ctx, host)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if t.Why != "" {
				own[t.Link] = t.Why
			}
		}
	}
	return own, nil
}

// without leaves out what is sent over such a link.
func (own ownDoing) without(targets []probe.Target, streams []plan.Stream) (rest []probe.Target) {
	over := func(t probe.Target) bool {
		return own[t.Link] != "" || slices.ContainsFunc(streams, func(s plan.Stream) bool {
			return s.From.Link == t.Link && s.Ends == [2]string{t.From, t.To} && own[s.To.Link] != ""
		})
	}
	for _, t := range targets {
		if !over(t) {
			rest = append(rest, t)
		}
	}
	return rest
}

// complete says of such links that they are not measured, and why. Nobody broke a
// promise on them, nor by pairs of nodes that do not reach each other meanwhile.
func (own ownDoing) complete(l vnet.Lease, v *vnet.Verdict) {
	if len(own) == 0 {
		return
	}
	there := make(map[[2]string]bool)
	say := func(link *vnet.LinkVerdict) {
		if why := own[link.Name]; why != "" && link.Outcome != vnet.LinkDown {
			link.OK, link.Outcome, link.Why = true, vnet.NotMeasured, notMeasuredFor+why
		}
	}
	for i := range v.Links {
		there[[2]string{v.Links[i].Name, v.Links[i].From}] = true
		say(&v.Links[i])
	}
	for _, link := range l.Topology().Links {
		for _, d := range vnet.Directions {
			if own[link.Name] == "" || there[[2]string{link.Name, link.Ends[d]}] {
				continue
			}
			is := vnet.LinkVerdict{
				Name: link.Name, From: link.Ends[d], To: link.Ends[d.Opposite()], Alloc: l.Rates[link.Name][d],
				Min: link.Bandwidth[d].Min, Max: min(link.Bandwidth[d].Max, l.Rates[link.Name][d]),
			}
			say(&is)
			v.Links = append(v.Links, is)
		}
	}
	if v.Outcome == vnet.Kept {
		v.OK, v.Outcome = false, vnet.NotMeasured
	}
}
