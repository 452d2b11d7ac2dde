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
	verdict, err := probe.Check(ctx, l, starter(job), probe.Options{
		Targets: append(targets(l, ports), across(l, streams)...), Duration: job.Duration, Progress: job.Progress,
		Carried: func(ctx context.Context) (map[probe.LinkDirection]uint64, error) { return carried(ctx, job) },
	})
	verdict.Links = behind(l, streams, verdict.Links)
	if verdict.Unreached = missing; len(missing) > 0 {
		verdict.OK, verdict.Outcome = false, vnet.Broken
	}
	return verdict, err
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
