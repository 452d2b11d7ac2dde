package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"sublet/agent/session"
	"sublet/lab/testbed"
	"sublet/lease/api"
	"sublet/measure/probe"
	"sublet/plan"
	"sublet/vnet"
)

// spareDelay is what is counted on above the measured delay: a quarter, for
// processors that are not idle.
const spareDelay = 1.25

// delay is the latency of a lease's slowest link, as checks measure it.
func delay(ctx context.Context, g *testbed.Testbed, l vnet.Lease) (time.Duration, error) {
	ports, err := plan.Ports(g.Substrate, l)
	if err != nil {
		return 0, err
	}
	v, err := probe.Check(ctx, l, nodeStarter(g.Client, l.ID()), probe.Options{Targets: targets(l, ports), SkipTCP: true, SkipUDP: true, SkipLoss: true})
	if err != nil {
		return 0, err
	}
	slowest := 0.0
	for _, way := range v.Links {
		if way.Latency == 0 {
			return 0, fmt.Errorf("round trips from %s to %s: %s", way.From, way.To, way.Why)
		}
		slowest = max(slowest, way.Latency)
	}
	return time.Duration(slowest*spareDelay) * time.Microsecond, nil
}

// nodeStarter starts probes through the server, in the nodes.
func nodeStarter(client *api.Client, id vnet.LeaseID) probe.Starter {
	return func(ctx context.Context, node string) (io.ReadWriteCloser, error) {
		conn, err := client.Dial(ctx)
		if err != nil {
			return nil, err
		}
		pipe, err := session.OpenPipe(ctx, conn, api.NodePath(id, node, "probe"), session.Spec{Argv: []string{"probe"}})
		if err != nil {
			return nil, explain(err)
		}
		return pipe, nil
	}
}
