package main

import (
	"context"
	"io"
	"maps"
	"slices"

	"sublet/agent/session"
	"sublet/measure/probe"
	"sublet/plan"
	"sublet/server"
	"sublet/vnet"
)

// measureLease is the server's server.Checker: probes in the nodes, led from here.
func measureLease(ctx context.Context, job server.CheckJob) (vnet.Verdict, error) {
	l := job.Lease
	ports, err := plan.Ports(job.Substrate, l)
	if err != nil {
		return vnet.Verdict{}, err
	}
	streams, err := plan.Streams(job.Substrate, l)
	if err != nil {
		return vnet.Verdict{}, err
	}
	missing, err := unreached(ctx, job)
	if err != nil {
		return vnet.Verdict{}, err
	}
	own, err := ownDoingOf(ctx, job)
	if err != nil {
		return vnet.Verdict{}, err
	}
	verdict := vnet.Verdict{OK: true, Outcome: vnet.Kept}
	ways, taken := untaken(l, own.without(withoutMachines(l.Topology(), append(targets(l, ports), across(l, streams)...)), streams))
	switch {
	case len(ways) == 0 && (openFlow(l.Topology()) || len(taken)+len(own) > 0):
		verdict = vnet.Verdict{Network: l.ID().Network, Outcome: vnet.NotMeasured}
	case len(ways) > 0 || !allDown(l.Topology()) && len(machinesOf(l.Topology())) == 0:
		verdict, err = probe.Check(ctx, l, starter(job), probe.Options{
			Targets: ways, Duration: job.Duration, Short: job.Short, Progress: job.Progress,
			Carried: func(ctx context.Context) (map[probe.LinkDirection]uint64, error) { return carried(ctx, job) },
		})
	}
	if err != nil {
		return verdict, err
	}
	verdict.Links = append(behind(l, streams, verdict.Links), taken...)
	ofMachines(l, &verdict)
	own.complete(l, &verdict)
	if verdict.Chains, err = measureChains(ctx, job, ports); err != nil {
		return verdict, err
	}
	withChains(&verdict, len(taken) > 0)
	if verdict.Unreached = missing; len(missing) > 0 && len(own) == 0 {
		verdict.OK, verdict.Outcome = false, vnet.Broken
	}
	return verdict, err
}

// allDown says that no link of a network is up.
func allDown(t vnet.Topology) bool {
	return !slices.ContainsFunc(t.Links, func(l vnet.VirtualLink) bool { return !l.Down })
}

func targets(l vnet.Lease, ports map[string][2]plan.Port) []probe.Target {
	mtu := 0
	for _, p := range ports {
		mtu = p[0].MTU // the same on all links of a network
	}
	return probe.Targets(l, mtu, func(link vnet.VirtualLink, end int) string { return ports[link.Name][end].Interface })
}

// starter starts probes through the agents, in the nodes.
func starter(job server.CheckJob) probe.Starter {
	return func(ctx context.Context, node string) (io.ReadWriteCloser, error) {
		conn, path, err := job.Dial(ctx, node)
		if err != nil {
			return nil, err
		}
		pipe, err := session.OpenPipe(ctx, conn, path, session.Spec{Argv: []string{"probe"}})
		if err != nil {
			return nil, explain(err)
		}
		return pipe, nil
	}
}

// carried is how many bytes the hosts counted that the links delivered.
func carried(ctx context.Context, job server.CheckJob) (map[probe.LinkDirection]uint64, error) {
	directions := make(map[probe.LinkDirection]uint64)
	hosts := slices.Sorted(maps.Values(job.Lease.Mapping.Nodes))
	for _, host := range slices.Compact(hosts) {
		list, err := job.Traffic(ctx, host)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			link, _ := job.Lease.Topology().Link(t.Link)
			sum := trafficView{Drops: make(map[string]uint64)}
			sum.add(t)
			sum.DeliveredBytes += link.Impair[t.Direction].Duplicate.Of(sum.DeliveredBytes) // counted where they enter
			directions[probe.LinkDirection{Link: t.Link, From: link.Ends[t.Direction]}] += sum.DeliveredBytes
		}
	}
	return directions, nil
}
