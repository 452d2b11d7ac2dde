// Package forwarding runs an agent for each OpenFlow switch of the substrate, in the
// server: the links of leases that pass a switch are entries and meters there, told by
// a controller of this process. A switch's agent has a plan and reports as a host's does.
package forwarding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"sublet/agent"
	"sublet/openflow/controller"
	"sublet/openflow/secure"
	"sublet/plan"
	"sublet/vnet"
)

// Config of Run.
type Config struct {
	Substrate func() (vnet.Substrate, error) // as it is now; it must cost nothing
	Source    agent.Source
	Data      string // directory of the copies of plans
	Log       *slog.Logger
}

const (
	lookEvery = time.Second     // at the substrate
	tryAgain  = 5 * time.Second // to listen
	workers   = 32              // changes of a switch under way, which one reading of its meters proves
)

// Run serves the switches of the substrate until ctx ends. What they have stays.
func Run(ctx context.Context, c Config) {
	var served []served
	stop := func() {}
	for ctx.Err() == nil {
		sub, err := c.Substrate()
		if now := servedOf(sub); err == nil && !reflect.DeepEqual(now, served) {
			stop()
			served, stop = now, c.start(ctx, now)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
	stop()
}

// served is what is known of a switch.
type served struct {
	at         vnet.OpenFlowSwitch
	capacities map[uint32]vnet.Rate
}

func servedOf(sub vnet.Substrate) (list []served) {
	for _, o := range sub.OpenFlow {
		s := served{o, make(map[uint32]vnet.Rate, len(o.Ports))}
		for name, port := range o.Ports {
			if l, ok := sub.LinkOf(name); ok {
				s.capacities[port] = plan.Outer(l.Capacity)
			}
		}
		list = append(list, s)
	}
	return list
}

// meeting is how switches and the server come together: those of one have one
// controller.
type meeting struct {
	listen netip.AddrPort // zero: they are connected to
	tls    secure.Files   // zero: plainly
}

// start runs a controller for each address at which switches are waited for, and one
// for those that are connected to by the same files.
func (c Config) start(ctx context.Context, all []served) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	groups := make(map[meeting][]served)
	for _, s := range all {
		m := meeting{listen: s.at.Listen}
		if t := s.at.TLS; t != nil {
			m.tls = secure.Files{Certificate: t.Certificate, Key: t.Key, CA: t.CA}
		}
		groups[m] = append(groups[m], s)
	}
	var running sync.WaitGroup
	for m, group := range groups {
		running.Go(func() { c.serve(ctx, m, group) })
	}
	return func() { cancel(); running.Wait() }
}

// serve runs one controller and the agents of its switches.
func (c Config) serve(ctx context.Context, m meeting, group []served) {
	forwarding := controller.NewForwarding(c.Log)
	var running sync.WaitGroup
	defer running.Wait()
	var connect []netip.AddrPort
	for _, s := range group {
		forwarding.Serve(uint64(s.at.DatapathID))
		if s.at.Connect.IsValid() {
			connect = append(connect, s.at.Connect)
		}
		running.Go(func() { c.agentOf(s, forwarding).Run(ctx) })
	}
	config := controller.Config{Listen: m.listen, Connect: connect, App: forwarding.App, Tick: forwarding.Tick, Log: c.Log}
	if m.tls != (secure.Files{}) {
		config.TLS = &m.tls
	}
	for ctx.Err() == nil {
		err := control(ctx, config)
		if err == nil || errors.Is(err, context.Canceled) {
			continue
		}
		c.Log.Error("the switches of the substrate cannot be controlled, which is tried again", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(tryAgain):
		}
	}
}

func control(ctx context.Context, config controller.Config) error {
	served, err := controller.New(config)
	if err != nil {
		return fmt.Errorf("listen on %s for OpenFlow switches: %w", config.Listen, err)
	}
	return served.Run(ctx)
}

func (c Config) agentOf(s served, f *controller.Forwarding) *agent.Agent {
	p := &part{forwarding: f, at: s.at, capacities: s.capacities, items: make(map[uint32]plan.Flow)}
	p.setRest()
	return &agent.Agent{
		Host: vnet.HostID(s.at.Name), Source: c.Source, Copy: filepath.Join(c.Data, "plan-"+s.at.Name+".json"),
		Parts: []agent.Part{p},
		Log:   c.Log.With("switch", s.at.Name), Workers: workers,
	}
}
