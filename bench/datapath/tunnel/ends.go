package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"

	"sublet/bench/harness"
	"sublet/measure/pktgen"
	"sublet/plan"
	"sublet/vnet"
)

// ends is a network between two nodes on two hosts, by one protocol.
type ends struct {
	name     string
	from, to pktgen.Place
	hosts    []*host
}

func (e *ends) close() {
	for _, h := range e.hosts {
		h.close()
	}
}

// newEnds makes two hosts with a wire between them and a node each; with the
// empty protocol, frames go over the wire as they are.
func newEnds(protocol vnet.Encapsulation) (e *ends, err error) {
	e = &ends{name: string(protocol)}
	if protocol == "" {
		e.name = "no encapsulation"
	}
	run, err := os.MkdirTemp("/run", "sl-overlay-")
	if err != nil {
		return e, err
	}
	near, far := &host{run: run, side: here}, &host{run: run, side: there}
	e.hosts = []*host{far, near}
	near.later(func() { os.RemoveAll(run) })
	if err := near.build(); err != nil {
		return e, err
	}
	if err := far.settle(near.peer); err != nil {
		return e, err
	}
	var failed error
	e.from, err = near.end(protocol)
	e.to, failed = far.end(protocol)
	return e, errors.Join(err, failed)
}

// end makes a host's node and joins it to the wire, by a tunnel or not.
func (h *host) end(protocol vnet.Encapsulation) (pktgen.Place, error) {
	lease := vnet.LeaseID{Tenant: "t", Network: "ends"}
	node, fabric, err := h.node(lease)
	if err == nil {
		err = h.trunk(lease, fabric)
	}
	if err != nil {
		return pktgen.Place{}, err
	}
	port, err := h.index(fabric, "l0a")
	if err == nil {
		err = h.attach(fabric, plan.TrunkInside, ebpf.AttachTCXIngress, redirect(0, port, true))
	}
	if err == nil && protocol != "" {
		err = h.tunnel(lease, number, protocol)
	} else if err == nil {
		err = h.straight(lease)
	}
	if err != nil {
		return pktgen.Place{}, err
	}
	return pktgen.Open(node, "eth0", addr(h.inner))
}

// straight joins trunk and wire by two programs.
func (h *host) straight(lease vnet.LeaseID) error {
	out, err := h.index(h.Namespace, wire)
	in, failed := h.index(h.Namespace, plan.Trunk(lease))
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return errors.Join(
		h.attach(h.Namespace, plan.Trunk(lease), ebpf.AttachTCXIngress, redirect(0, out, false)),
		h.attach(h.Namespace, wire, ebpf.AttachTCXIngress, redirect(0, in, true)))
}

// The processor of all work.
const first = 0

// figures of a network from node to node.
var figures = []struct {
	name, verb string
	take       func(e *ends) (float64, error)
}{
	{"60 B, Mpps", "%.3f", func(e *ends) (float64, error) {
		rate, err := pktgen.Arrive(e.from, e.to, 60, first, *window)
		return rate / 1e6, err
	}},
	{"TCP, Gbit/s", "%.1f", func(e *ends) (float64, error) {
		rate, err := pktgen.Stream(e.from, e.to, first, first, *window)
		return rate / 1e9, err
	}},
	{"rtt p50, us", "%.1f", func(e *ends) (float64, error) {
		p50, _, err := pktgen.Ping(e.from, e.to, first, max(100, int(window.Microseconds()/50)))
		return p50, err
	}},
}

// endToEnd compares the protocols from node to node, in turn.
func endToEnd() error {
	var all []*ends
	defer func() {
		for _, e := range all {
			e.close()
		}
	}()
	for _, p := range append([]vnet.Encapsulation{""}, protocols...) {
		e, err := newEnds(p)
		all = append(all, e)
		if err != nil {
			return fmt.Errorf("make ends of %s: %w", e.name, err)
		}
	}
	samples := make([][]harness.Samples, len(all))
	for i := range samples {
		samples[i] = make([]harness.Samples, len(figures))
	}
	for range *rounds {
		for m, f := range figures {
			for i, e := range all {
				v, err := f.take(e)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", e.name, f.name, err)
				}
				samples[i][m] = append(samples[i][m], v)
			}
		}
		fmt.Fprint(os.Stderr, ".")
	}
	fmt.Fprintln(os.Stderr)
	table := harness.Table{Head: []string{"from node to node"}}
	for _, f := range figures {
		table.Head = append(table.Head, f.name, "of no encapsulation")
	}
	for i, e := range all {
		row := []any{e.name}
		for m, f := range figures {
			row = append(row, samples[i][m].Format(f.verb), samples[i][m].Over(samples[0][m]).Format("%.2f"))
		}
		table.Add(row...)
	}
	fmt.Printf("%s; %d rounds of %s\n\n", harness.Machine(), *rounds, *window)
	table.Print(os.Stdout)
	return nil
}
