// Package host puts the agent of one host together: the kernel, the parts that
// change it, the loop that tells them what to do, and the routes that the
// server asks.
//
//	server --plan--> agent.Agent --steps--> parts (parts.go) --> kernel
//	       --asks--> agent/api <--what is there--+
package host

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"sublet/agent"
	agentapi "sublet/agent/api"
	"sublet/agent/feedback"
	"sublet/agent/iplbd"
	"sublet/agent/pin"
	"sublet/datapath/kernel"
	"sublet/datapath/latency"
	"sublet/datapath/vnode"
	"sublet/plan"
	"sublet/vnet"
)

// Config of a host's agent.
type Config struct {
	Host    vnet.HostID
	Run     string // directory of sockets, locks and namespaces
	Data    string // directory of the copy of the plan
	Cgroup  string // control group below which the host gets one
	Address string // where the server reaches the agent: a socket's path or an https URL
	Source  agent.Source
	Workers int           // steps done at once
	Spread  iplbd.Options // what is spread over paths beside leases
	Images  string        // directory of images that nodes may run; "": none
	// Registries are from where images may be fetched.
	Registries []string
	// ImagesQuota is the room of all unpacked images; 0: image.DefaultQuota.
	ImagesQuota vnet.Bytes
	// Measured is what this machine was found to do; nil: nobody asks.
	Measured func() vnet.Measurement
	Probe    string // the word with which this program is a prober in a node
	Log      *slog.Logger
	// WiresCarryGSO says that the wires to all other hosts take large packets
	// uncut.
	WiresCarryGSO bool
}

// Host is an agent that is ready to run.
type Host struct {
	agent  *agent.Agent
	kernel *kernel.Host
	parts  []agent.Part
	events chan struct{}
	probe  []string
	// feedback gives functions of chains the processor time that they need.
	feedback *feedback.Loop
	pin      *pin.Loop // keeps functions and switches on cores
	latency  *latency.Prober
	log      *slog.Logger
}

// Open makes the parts of a host. What they do beside the plan's steps ends
// with ctx.
func Open(ctx context.Context, c Config) (*Host, error) {
	k, err := kernel.NewHost(kernel.Config{Host: string(c.Host), Run: c.Run, Cgroup: filepath.Join(c.Cgroup, string(c.Host))})
	if err != nil {
		return nil, err
	}
	h := &Host{kernel: k, events: make(chan struct{}, 1), probe: []string{vnode.SelfInside(c.Run), c.Probe}, log: c.Log}
	news := make(chan struct{}, 1)
	err = h.makeParts(ctx, setup{host: k, config: c, changed: func() { ring(news) }})
	if err != nil {
		h.Close()
		return nil, err
	}
	h.agent = &agent.Agent{
		Host: c.Host, Address: c.Address, Source: c.Source, Copy: filepath.Join(c.Data, "plan-"+string(c.Host)+".json"),
		Parts: h.parts, Events: h.events, Log: c.Log, Workers: c.Workers,
		NoCarrier:  func() ([]string, error) { return k.NoCarrier(plan.IsTrunk) },
		Interfaces: one[interfacer](h.parts).Interfaces,
		Machines:   func() string { accelerator, _ := vnode.Machines(); return accelerator },
		Exposed:    one[*vnode.Part](h.parts).Exposed,
		Cuts:       h.problems, News: news, Touched: h.touched,
	}
	return h, nil
}

// ring puts a token into a channel that has room for one.
func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default: // nobody has looked since the last time
	}
}

// Run keeps the host as planned until ctx ends.
func (h *Host) Run(ctx context.Context) {
	watch := func(what string, watch func() error) {
		if err := watch(); err != nil {
			h.log.Warn("no events of "+what+", audits only", "err", err)
		}
	}
	go watch("the kernel", func() error { return kernel.Watch(ctx, h.kernel, h.events) })
	go h.feedback.Run(ctx)
	go h.pin.Run(ctx)
	go h.latency.Loop(ctx)
	go watch("mounts", func() error { return h.kernel.WatchMounts(ctx, h.events) })
	for _, part := range h.parts {
		if l, ok := part.(looper); ok {
			go l.Loop(ctx, h.events)
		}
	}
	h.agent.Run(ctx)
}

// Serve answers what the server asks until stop is called; guard stands before
// the routes.
func (h *Host) Serve(ctx context.Context, l net.Listener, guard func(http.Handler) http.Handler) (stop func()) {
	return agentapi.Serve(ctx, l, guard(h.answers().Handler()))
}

// Close lets go of what the parts hold; what is in the kernel stays.
func (h *Host) Close() {
	for i := range h.parts {
		if c, ok := h.parts[len(h.parts)-1-i].(closer); ok {
			c.Close()
		}
	}
	h.kernel.Close()
}
