package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/lab"
	"sublet/measure/pktgen"
)

// Both hosts carry what no host can, so that links without a stated maximum
// are not shaped where their frames stay on one host (plan.Compile).
const (
	oneHost  = "hosts:\n  - {name: h1, capacity: 10000Gbit}\n"
	twoHosts = "hosts:\n  - {name: h1, capacity: 10000Gbit}\n  - {name: h2, capacity: 10000Gbit}\nlinks:\n  - {name: wire, ends: [h1, h2], capacity: 100Gbit, mtu: 1550}\n"
)

// product is a lab of hosts with bare wires and the leases on it.
type product struct{ *harness.Lab }

func startProduct(ctx context.Context, exe, substrate string) (*product, error) {
	r, err := harness.StartBare(ctx, exe, substrate)
	return &product{r}, err
}

// lease makes a network and the path between its nodes a and z.
func (p *product) lease(ctx context.Context, name, text string) (network, error) {
	l, err := p.Up(ctx, text)
	if err != nil {
		return network{name: name}, fmt.Errorf("lease %s: %w", name, err)
	}
	n := network{name: name, close: func() error { return p.Down(context.Background(), l) }}
	n.from, n.to, err = p.Ends(l, "a", "z")
	return n, err
}

// wire is the uplink of a host of the lab.
func (p *product) wire(host, device string) (pktgen.Place, error) {
	n, err := pktgen.Open(filepath.Join("/run/netns", p.Name+"-"+host), device, netip.IPv4Unspecified())
	return n, err
}

// unshape stops the agents, whose work goes on without them, and takes the
// queues of the wires away: what is left is forwarding.
func (p *product) unshape() error {
	status, err := lab.StatusOf(p.Run)
	if err != nil {
		return err
	}
	for _, process := range status.Processes {
		if strings.HasPrefix(process.Name, "agent-") {
			err = errors.Join(err, unix.Kill(process.PID, unix.SIGKILL))
		}
	}
	for host, device := range map[string]string{"h1": "to-h2", "h2": "to-h1"} {
		err = errors.Join(err, harness.Commands(fmt.Sprintf("tc -n %s-%s qdisc del dev %s root", p.Name, host, device)))
	}
	return err
}

// overlayRequest is two nodes on two hosts.
func overlayRequest(network string) string {
	return "network: " + network + "\nnodes:\n  - {name: a, host: h1}\n  - {name: z, host: h2}\nlinks:\n  - {ends: [a, z], min: 1Mbit}\n"
}

// routerRequest is two nodes and a router on one host.
func routerRequest(network string) string {
	return "network: " + network + "\nnodes:\n  - {name: a, host: h1}\n  - {name: z, host: h1}\nrouters:\n  - {name: r, host: h1}\n" +
		"links:\n  - {ends: [a, r], min: 1Mbit}\n  - {ends: [r, z], min: 1Mbit}\n"
}

// switchRequest is four nodes on a switch of one host.
func switchRequest(network string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "network: %s\nswitches:\n  - {name: s, host: h1}\nnodes:\n", network)
	for _, n := range []string{"a", "z", "y", "x"} {
		fmt.Fprintf(&b, "  - {name: %s, host: h1}\n", n)
	}
	b.WriteString("links:\n")
	for _, n := range []string{"a", "z", "y", "x"} {
		fmt.Fprintf(&b, "  - {ends: [%s, s], min: 1Mbit}\n", n)
	}
	return b.String()
}

// pathRequest is node, switch, router, link to the other host, router,
// switch, node.
func pathRequest(network string) string {
	return "network: " + network + "\nnodes:\n  - {name: a, host: h1}\n  - {name: z, host: h2}\n" +
		"switches:\n  - {name: s1, host: h1}\n  - {name: s2, host: h2}\nrouters:\n  - {name: r1, host: h1}\n  - {name: r2, host: h2}\n" +
		"links:\n  - {ends: [a, s1], min: 1Mbit}\n  - {ends: [s1, r1], min: 1Mbit}\n  - {ends: [r1, r2], min: 1Mbit}\n" +
		"  - {ends: [r2, s2], min: 1Mbit}\n  - {ends: [s2, z], min: 1Mbit}\n"
}

// besideRequest is a network that only exists: two nodes on two hosts with
// some links between them, which leave the others the wire.
func besideRequest(network string, links int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "network: %s\nnodes:\n  - {name: a, host: h1}\n  - {name: z, host: h2}\nlinks:\n", network)
	for i := range links {
		fmt.Fprintf(&b, "  - {name: l%d, ends: [a, z], rate: 1Mbit}\n", i)
	}
	return b.String()
}
