// Package lab makes a substrate out of namespaces on one machine, for trying
// out, tests and measurements.
//
//	NAME-h1            NAME.wires              NAME-s1             NAME.wires            NAME-h2
//	to-s1 --veth-- w0a [shape,cross] w0b --veth-- to-h1 | to-h2 --veth-- w1b [..] w1a --veth-- to-s1
//
// Every host and every switch is a network namespace under /run/netns, so
// `ip netns exec NAME-h1` works. Capacity and buffering of the wires are
// enforced in a namespace of their own, outside hosts and switches: the lab
// judges the product and not itself. Switches forward IPv4 along the fabric's
// fixed shortest paths; hosts do not forward. With OSPF (Spec), nodes have
// loopback addresses too, to which switches forward over all shortest paths,
// and switches are relays of explicit multipath.
//
// Whatever a lab makes is written down in RUN/lab/state.json before it is
// made, so Down cleans up after a crash at any point, and touches nothing else.
package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sublet/vnet"
)

// Spec is what a lab is made of.
type Spec struct {
	Name      string   // of the lab, before its namespaces' names; "" is DefaultName
	Run       string   // $SUBLET_RUN of its server and agents
	Data      string   // the server's data directory; "" is one that ends with the lab
	Exe       string   // the sublet program
	Agent     []string // further arguments of its agents
	Substrate vnet.Substrate
	// Bare wires are plain pairs of devices from node to node: nothing
	// enforces capacity or latency. For benchmarks of hosts, whose figures
	// the wires' own work would blur.
	Bare bool
	// OSPF runs FRR's zebra and ospfd in every switch and host, and makes
	// switches take off tunnel headers that are for them (datapath/iplb).
	OSPF bool
	// Delays has the latency of links done by a process where the kernel lacks
	// netem.
	Delays bool
	// Buffering is how long a packet may wait for a full wire, and how much
	// the wire makes up for after it was served late. 0: 15 and 2 ms, but
	// never less than two of the largest segments.
	Buffering time.Duration
	// Ready says whether server and agents are at work; it is asked until it
	// answers nil. nil: they are as soon as they run.
	Ready func(context.Context) error
}

// DefaultName is a lab's name when nobody gave one.
const DefaultName = "lab"

// Lab is one that is up.
type Lab struct {
	Substrate vnet.Substrate // with the hosts' ports filled in
	Notes     []string       // what this kernel cannot emulate, one line each
}

// Up makes the substrate and starts the server and one agent per host. It
// refuses if RUN has a lab, and leaves nothing if it fails or ctx ends.
func Up(ctx context.Context, spec Spec) (*Lab, error) {
	spec, err := spec.normal()
	if err != nil {
		return nil, err
	}
	layout, err := newLayout(spec.Name, spec.Substrate)
	if err != nil {
		return nil, err
	}
	layout.bare, layout.ospf, layout.delays, layout.buffering = spec.Bare, spec.OSPF, spec.Delays, spec.Buffering
	if spec.OSPF {
		layout.stateRelays()
	}
	state, lock, err := claim(spec, layout)
	if err != nil {
		return nil, fmt.Errorf("lab up: %w", err)
	}
	defer lock.Close()
	notes, err := build(ctx, spec, layout, state)
	if err != nil {
		return nil, undo(ctx, state, err)
	}
	return &Lab{Substrate: layout.substrate, Notes: notes}, nil
}

// undo takes back what was made of a lab that does not come up because of err.
// When ctx has ended, that is the only reason worth telling.
func undo(ctx context.Context, s *state, err error) error {
	s.discarded = true
	left := down(s)
	switch {
	case ctx.Err() == nil:
		return errors.Join(fmt.Errorf("lab up: %w", err), left)
	case left != nil:
		return errors.Join(fmt.Errorf("lab up: %w", ctx.Err()), left)
	}
	return fmt.Errorf("lab up: nothing of the lab is left: %w", ctx.Err())
}

func (s Spec) normal() (Spec, error) {
	if s.Name == "" {
		s.Name = DefaultName
	}
	if err := vnet.CheckName(s.Name); err != nil {
		return s, fmt.Errorf("lab up: the lab's name %w", err)
	}
	if err := s.Substrate.Check(); err != nil {
		return s, fmt.Errorf("lab up: %w", err)
	}
	for _, path := range []*string{&s.Run, &s.Exe} {
		if *path == "" {
			return s, errors.New("lab up: it needs a run directory and the program to start")
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return s, fmt.Errorf("lab up: %w", err)
		}
		*path = absolute
	}
	if s.OSPF && !HasFRR() {
		return s, errors.New("lab up: " + NoFRR)
	}
	if filepath.Dir(s.Run) == "/" {
		return s, fmt.Errorf("lab up: %s is not a directory of the lab's own: use one such as /run/sublet", s.Run)
	}
	if s.Data == "" {
		s.Data = ownData(s.Run)
	}
	return s, nil
}

// build does the work of Up after the state is written.
func build(ctx context.Context, spec Spec, l *layout, state *state) (notes []string, err error) {
	if err := l.makeNamespaces(ctx); err != nil {
		return nil, err
	}
	if notes, err = l.makeWires(ctx); err != nil {
		return nil, err
	}
	if err := l.startCarrier(ctx, spec, state); err != nil {
		return nil, fmt.Errorf("delay the wires: %w", err)
	}
	if err := l.makeOutside(); err != nil {
		return nil, fmt.Errorf("make the outside: %w", err)
	}
	if err := l.route(ctx); err != nil {
		return nil, err
	}
	if spec.OSPF {
		if err := l.runOSPF(ctx, spec.Run, state); err != nil {
			return nil, err
		}
	}
	substrate := filepath.Join(dirOf(spec.Run), "substrate.json")
	if err := writeJSON(substrate, l.substrate); err != nil {
		return nil, err
	}
	if err := start(spec, l, state, substrate); err != nil {
		return nil, err
	}
	if err := state.await(ctx, spec.Ready); err != nil || !spec.OSPF {
		return notes, err
	}
	return notes, l.awaitOSPF(ctx, state)
}

// dirOf holds the lab's own files.
func dirOf(run string) string { return filepath.Join(run, "lab") }

// ownData is the server's data directory that ends with a lab.
func ownData(run string) string { return filepath.Join(dirOf(run), "data") }

// agentData is what the agents of a lab keep.
func agentData(run string) string { return filepath.Join(run, "agent") }
