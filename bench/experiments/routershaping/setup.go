package main

import (
	"context"
	"fmt"

	"sublet/bench/harness"
	"sublet/vnet"
)

// Names of the configurations.
const (
	linuxName     = "Linux router, HTB on NIC"
	namespaceName = "3 router namespaces, HTB on NIC"
	subletName    = "Sublet"
)

// sublet leases three networks of a sender, a router and a receiver. All
// routers are on one host, senders and receivers on two others.
func sublet(ctx context.Context, exe string) (setup, error) {
	s := setup{name: subletName}
	r, err := harness.Start(ctx, exe, `
hosts:
  - {name: senders, cpu: 8, memory: 8GiB}
  - {name: routers, cpu: 8, memory: 8GiB}
  - {name: receivers, cpu: 8, memory: 8GiB}
links:
  - {ends: [senders, routers], capacity: 1Gbit}
  - {ends: [routers, receivers], capacity: 1Gbit}
`)
	if err != nil {
		return s, err
	}
	s.stop = r.Stop
	var leases []vnet.Lease
	for i, limit := range caps {
		l, err := r.Up(ctx, fmt.Sprintf(`
network: vpxi-%d
nodes: [{name: snd, host: senders}, {name: rcv, host: receivers}]
routers: [{name: vr, host: routers}]
links:
  - {ends: [snd, vr], rate: %s}
  - {ends: [vr, rcv], rate: %s}
`, i+1, limit, limit))
		if err != nil {
			return s, err
		}
		path, err := r.Path(l, "snd", "rcv", limit)
		if err != nil {
			return s, err
		}
		leases, s.targets = append(leases, l), append(s.targets, path)
	}
	s.start = r.Starters(leases...)
	return s, nil
}
