package host

import (
	"context"
	"maps"
	"path/filepath"
	"runtime"
	"slices"

	"sublet/agent"
	agentapi "sublet/agent/api"
	"sublet/agent/feedback"
	"sublet/agent/iplbd"
	"sublet/agent/pin"
	"sublet/agent/session"
	"sublet/datapath/access"
	"sublet/datapath/bridge"
	"sublet/datapath/chain"
	"sublet/datapath/device"
	"sublet/datapath/image"
	"sublet/datapath/image/registry"
	"sublet/datapath/join"
	"sublet/datapath/kernel"
	"sublet/datapath/latency"
	"sublet/datapath/nat"
	"sublet/datapath/openflow"
	"sublet/datapath/overlay"
	"sublet/datapath/reach"
	"sublet/datapath/vnode"
	"sublet/datapath/vnode/process"
	"sublet/datapath/vxlink"
	"sublet/datapath/vxrouter"
	"sublet/datapath/vxswitch"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// setup is what parts are made of.
type setup struct {
	host    *kernel.Host
	config  Config
	changed func() // what a part says of its items may be another thing now
}

// table makes the parts of a host, one a line. What a part does beside the steps
// of a plan is found by the interfaces below.
var table = []func(context.Context, setup) (agent.Part, error){
	func(_ context.Context, s setup) (agent.Part, error) { return vxlink.New(s.host), nil },
	func(_ context.Context, s setup) (agent.Part, error) { return newOverlay(s), nil },
	func(_ context.Context, s setup) (agent.Part, error) { return newNodes(s) },
	func(_ context.Context, s setup) (agent.Part, error) { return vxrouter.New(s.host), nil },
	func(_ context.Context, s setup) (agent.Part, error) { return nat.New(s.host), nil },
	func(_ context.Context, s setup) (agent.Part, error) { return join.New(s.host, s.config.Data), nil },
	func(_ context.Context, s setup) (agent.Part, error) { return device.New(s.host), nil },
	func(_ context.Context, s setup) (agent.Part, error) { return access.New(s.host), nil },
	func(_ context.Context, s setup) (agent.Part, error) { return bridge.New(s.host), nil },
	func(_ context.Context, s setup) (agent.Part, error) { return vxswitch.New(s.host), nil },
	func(_ context.Context, s setup) (agent.Part, error) { return newSwitches(s), nil },
	func(ctx context.Context, s setup) (agent.Part, error) {
		return iplbd.Open(ctx, s.host, s.config.Spread)
	},
	func(_ context.Context, s setup) (agent.Part, error) { return newChains(s), nil },
	func(_ context.Context, s setup) (agent.Part, error) { return newReach(s), nil },
}

func newOverlay(s setup) agent.Part {
	p := overlay.New(s.host)
	p.Changed, p.WiresCarryGSO = s.changed, s.config.WiresCarryGSO
	p.TablesFile = filepath.Join(s.config.Data, "tables-"+string(s.config.Host)+".json")
	return p
}

// newNodes gives nodes the images of this host: several hosts of a lab share the
// directory of data.
func newNodes(s setup) (agent.Part, error) {
	p := vnode.New(s.host)
	p.Changed, p.Process, p.Kept = s.changed, process.Of, filepath.Join(s.config.Data, "kept", string(s.config.Host))
	images, err := image.New(image.Config{
		Dir: filepath.Join(s.config.Data, "images", string(s.config.Host)), Offered: s.config.Images, Registry: registry.Registries{Allowed: s.config.Registries}, Quota: int64(s.config.ImagesQuota), Changed: p.Fetched, Apart: vnode.Unpacker,
	})
	p.Images = images
	return p, err
}

func newChains(s setup) agent.Part {
	p := chain.New(s.host)
	p.Changed, p.Log = s.changed, s.config.Log
	return p
}

func newSwitches(s setup) agent.Part {
	p := openflow.New(s.host)
	p.Changed = s.changed
	return p
}

func newReach(s setup) agent.Part {
	p := reach.New(s.host)
	p.Changed = s.changed
	return p
}

// What a part may do beside the steps of a plan.
type (
	// looper works until ctx ends. It puts a token into events, which has room
	// for one, when the kernel may have something else than before.
	looper interface {
		Loop(ctx context.Context, events chan<- struct{})
	}
	// closer holds something of this process.
	closer interface{ Close() }
	// complainer lists what is there as planned and does not carry, sorted.
	complainer interface{ Problems() report.Errors }
	// toucher is told of leases of which something was changed.
	toucher interface{ Touched(vnet.LeaseID) }
	// interfacer lists the host's interfaces.
	interfacer interface {
		Interfaces() ([]report.Interface, error)
	}
)

// makeParts makes those of the table.
func (h *Host) makeParts(ctx context.Context, s setup) error {
	for _, make := range table {
		part, err := make(ctx, s)
		if err != nil {
			return err
		}
		h.parts = append(h.parts, part)
	}
	links, chains := one[*vxlink.Part](h.parts), one[*chain.Part](h.parts)
	chains.Class, links.Guests, links.Remade = links.Class, chains.Programs, one[*vnode.Part](h.parts).Remade
	h.latency = newLatency(s, links)
	links.Latency = h.latency.Of
	h.feedback = &feedback.Loop{Held: chains.Held, Group: func(namespace string) feedback.Group { return s.host.Group(namespace) }, Free: func() float64 { return freeCores(s.host) }, Log: s.config.Log}
	chains.Short, chains.Measured, links.Measured = h.feedback.Short, s.config.Measured, s.config.Measured
	h.pin = newPin(s, chains, one[*openflow.Part](h.parts))
	return nil
}

// freeCores is how many cores of the machine no node has; nodes without a limit, which have
// nothing booked, have none.
func freeCores(h *kernel.Host) float64 {
	names, err := h.Group("x").Siblings()
	if err != nil {
		return 0
	}
	slices.Sort(names)
	free := float64(runtime.NumCPU())
	for _, name := range slices.Compact(names) {
		if quota, period := h.Group(name).Quota(); period > 0 {
			free -= float64(quota) / float64(period)
		}
	}
	return free
}

// newPin keeps programs of chains and OpenFlow switches on cores.
func newPin(s setup, chains *chain.Part, switches *openflow.Part) *pin.Loop {
	l := &pin.Loop{Machine: pin.Here{}, Log: s.config.Log, Processes: func() (list []pin.Process, err error) {
		for _, keys := range []func() (map[string]vnet.LeaseID, error){chains.Nodes, switches.Running} {
			found, err := keys()
			if err != nil {
				return nil, err
			}
			for _, key := range slices.Sorted(maps.Keys(found)) {
				list = append(list, pin.Process{Key: key, Lease: found[key], Group: s.host.Group(key)})
			}
		}
		return list, nil
	}}
	where := func(key string) (int, vnet.CPU, bool) {
		place, ok := l.Of(key)
		return place.Core, place.Used, ok
	}
	chains.Core, switches.Core = where, where
	return l
}

// newLatency asks the tunnels of links.
func newLatency(s setup, links *vxlink.Part) *latency.Prober {
	return &latency.Prober{Host: s.host, Log: s.config.Log, Tunnels: func() (list []latency.Tunnel, anew bool) {
		all, anew := links.Tunnels()
		for _, t := range all {
			list = append(list, latency.Tunnel{VNI: t.VNI, Local: t.Local, Remote: t.Remote, Class: t.Handle, Rate: t.Class.Ceil, BestEffort: t.Class.BestEffort})
		}
		return list, anew
	}}
}

func (h *Host) problems() (all report.Errors) {
	for _, part := range h.parts {
		if c, ok := part.(complainer); ok {
			all = append(all, c.Problems()...)
		}
	}
	return all
}

func (h *Host) touched(lease vnet.LeaseID) {
	for _, part := range h.parts {
		if t, ok := part.(toucher); ok {
			t.Touched(lease)
		}
	}
}

// one is the part of a kind.
func one[T any](parts []agent.Part) (found T) {
	for _, part := range parts {
		if p, ok := part.(T); ok {
			return p
		}
	}
	return found
}

// answers are what the routes read.
func (h *Host) answers() *agentapi.Host {
	nodes := one[*vnode.Part](h.parts)
	return &agentapi.Host{
		Command: programs(nodes), Attach: consoles(nodes), Prober: h.probe, Copy: nodes.Copy, Processes: nodes.Processes, Log: nodes.Log, Flows: one[*openflow.Part](h.parts).Flows, Switch: one[*openflow.Part](h.parts).Status, Trace: one[*openflow.Part](h.parts).Trace, Namespace: h.kernel.Path,
		Plan: func(ctx context.Context) (plan.Host, error) {
			return h.agent.Source.Plan(ctx, h.agent.Host, plan.Origin{})
		},
		SaveSwitch: one[*openflow.Part](h.parts).SaveKept, BringSwitch: one[*openflow.Part](h.parts).BringKept,
		Learned: one[*vxrouter.Part](h.parts).Learned, Keep: one[*vxrouter.Part](h.parts).Keep,
		Save: saver(nodes), Bring: bringer(nodes), Send: sender(nodes), Take: taker(nodes), GoOn: func(namespace string) error { return refusal(nodes.GoOnLive(namespace)) },
		Join: one[*join.Part](h.parts).Join, Revoke: one[*join.Part](h.parts).Revoke,
		Tables: one[*overlay.Part](h.parts).Tables, ChangeTable: one[*overlay.Part](h.parts).ChangeTable,
		Diff: h.agent.DryRun, Samples: h.agent.Samples, Rounds: h.agent.Rounds, Packed: h.agent.Packed, Counts: h.agent.Counts, Watched: h.Watched(), Reach: one[*reach.Part](h.parts).Ask,
	}
}

// consoles makes sessions at consoles of nodes.
func consoles(nodes *vnode.Part) func(string, session.Spec) (session.Program, error) {
	return func(namespace string, s session.Spec) (session.Program, error) {
		c, err := nodes.Attach(namespace, vnode.Options{TTY: s.TTY, Term: s.Term})
		if err != nil {
			return session.Program{}, err
		}
		return session.Program{Cmd: c.Cmd, Kill: c.Kill, Done: c.Done}, nil
	}
}

// programs makes the commands of sessions in nodes.
func programs(nodes *vnode.Part) func(string, session.Spec) (session.Program, error) {
	return func(namespace string, s session.Spec) (session.Program, error) {
		c, err := nodes.Command(namespace, s.Argv, vnode.Options{TTY: s.TTY, Detach: s.Detach, User: s.User})
		if err != nil {
			return session.Program{}, err
		}
		return session.Program{Cmd: c.Cmd, Kill: c.Kill, Done: c.Done}, nil
	}
}
