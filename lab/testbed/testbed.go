// Package testbed is a lab that exists for as long as something is tried or
// measured on it: in a directory of its own, with a client of its server.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sublet/lab"
	"sublet/lease/api"
	"sublet/measure/pktgen"
	"sublet/plan"
	"sublet/vnet"
	"sublet/vnet/file"
)

// Testbed is a lab that is up.
type Testbed struct {
	Exe       string // the program
	Name      string // of the lab
	Run       string // $SUBLET_RUN
	Client    *api.Client
	Substrate vnet.Substrate // with the hosts' ports filled in
}

// Start makes a lab of a substrate, with bare wires or not (lab.Spec). The
// caller is root.
func Start(ctx context.Context, exe string, sub vnet.Substrate, bare bool) (*Testbed, error) {
	return StartSpec(ctx, lab.Spec{Exe: exe, Substrate: sub, Bare: bare})
}

// StartSpec is Start of a lab with more said about it; its name, directories
// and readiness are the testbed's.
func StartSpec(ctx context.Context, spec lab.Spec) (*Testbed, error) {
	dir, err := os.MkdirTemp("/run", "slb") // short, for sockets' names
	if err != nil {
		return nil, err
	}
	g := &Testbed{Exe: spec.Exe, Name: filepath.Base(dir), Run: filepath.Join(dir, "run")}
	g.Client = api.NewClient(filepath.Join(g.Run, "api.sock"))
	spec.Name, spec.Run = g.Name, g.Run
	spec.Ready = func(ctx context.Context) error { return AgentsUp(ctx, g.Client) }
	made, err := lab.Up(ctx, spec)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	g.Substrate = made.Substrate
	return g, nil
}

// AgentsUp says whether a server answers and knows all its agents.
func AgentsUp(ctx context.Context, client *api.Client) error {
	hosts, err := client.Hosts(ctx)
	if err != nil {
		return err
	}
	for _, h := range hosts {
		if h.Agent != api.AgentUp {
			return fmt.Errorf("the agent of %s is %s", h.Name, h.Agent)
		}
	}
	return nil
}

// Stop takes the lab away, also if the context of everything else has ended.
func (g *Testbed) Stop() error {
	g.Client.Close()
	if err := lab.Down(g.Run); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Dir(g.Run))
}

// Up leases a network written in YAML and waits until it runs.
func (g *Testbed) Up(ctx context.Context, text string) (vnet.Lease, error) {
	req, err := file.ParseRequest("request", []byte(text))
	if err != nil {
		return vnet.Lease{}, err
	}
	a, err := g.Client.Admit(ctx, req, false)
	if err != nil {
		return vnet.Lease{}, err
	}
	l, err := g.Client.WaitReady(ctx, a.Lease.ID())
	if err == nil && l.State != vnet.Running {
		err = fmt.Errorf("%s is %s: %s", l.ID(), l.State, l.Message)
	}
	return l, err
}

// Ends opens the first interfaces of two nodes of a lease.
func (g *Testbed) Ends(l vnet.Lease, a, z string) (from, to pktgen.Place, err error) {
	if from, err = g.place(l, a); err == nil {
		to, err = g.place(l, z)
	}
	return from, to, err
}

func (g *Testbed) place(l vnet.Lease, node string) (pktgen.Place, error) {
	namespace := filepath.Join(g.Run, "netns", string(l.Mapping.Nodes[node]), plan.Namespace(l.ID(), node))
	return pktgen.Open(namespace, "eth0", l.Addresses[node])
}
