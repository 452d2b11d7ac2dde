// Package emulate runs patterns of flows through a fabric of namespaces, where
// package multipath computes them: switches are kernels that forward, with FRR
// and equal-cost paths, links are shaped, and the programs of datapath/iplb
// put the headers on and take them off.
//
// Links are slow (Mbit/s), so that the machine is not the bottleneck. Whether
// it was is measured with every run: by how much senders were late, and what
// was left of the processors.
package emulate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/fabric"
	"sublet/fabric/spread"
	"sublet/lab"
	"sublet/lab/testbed"
	"sublet/plan"
	"sublet/vnet"
)

// Config is what to emulate.
type Config struct {
	Exe       string // the sublet program
	Substrate vnet.Substrate
	Buffering time.Duration // of wires
}

// Fabric is one that is up.
type Fabric struct {
	testbed *testbed.Testbed
	sub     vnet.Substrate
	model   *spread.Fabric
	hosts   []*host
	wait    time.Duration // after which nothing is under way any more
	run     uint32        // number of the run, in its packets
}

// host is one sender and receiver.
type host struct {
	name       string
	at         *kernel.Host
	table      *iplb.Table
	loop, port netip.Addr
	device     string // towards the fabric
	sink       *sink
	spreads    []plan.Spread // in the table
}

// MaxNodes bounds hosts and switches: 208 of them, with links of 500 kbit/s,
// are as many as two processors keep up with (docs/research/multipath-bench.md).
const MaxNodes = 240

// Fits says what makes a substrate too large for an emulation.
func Fits(sub vnet.Substrate) error {
	if n := len(sub.Hosts) + len(sub.Switches); n > MaxNodes {
		return fmt.Errorf("an emulation of %d hosts and switches is larger than %d: use the model", n, MaxNodes)
	}
	return lab.FitsOSPF(sub)
}

// Start makes the fabric. The caller is root.
func Start(ctx context.Context, c Config) (*Fabric, error) {
	if err := Fits(c.Substrate); err != nil {
		return nil, err
	}
	model, err := spread.NewFabric(c.Substrate)
	if err != nil {
		return nil, err
	}
	g, err := testbed.StartSpec(ctx, lab.Spec{Exe: c.Exe, Substrate: c.Substrate, OSPF: true, Buffering: c.Buffering})
	if err != nil {
		return nil, err
	}
	f := &Fabric{testbed: g, sub: g.Substrate, model: model, wait: 8*c.Buffering + 300*time.Millisecond}
	for _, h := range f.sub.Hosts {
		one, err := f.open(string(h.Name))
		if err != nil {
			return nil, errors.Join(err, f.Stop())
		}
		f.hosts = append(f.hosts, one)
	}
	return f, nil
}

// Stop takes everything away.
func (f *Fabric) Stop() error {
	for _, h := range f.hosts {
		h.close()
	}
	return f.testbed.Stop()
}

// open prepares a host: its table of paths on the device towards the fabric,
// and a socket that takes what arrives. The agent's own table is untouched.
func (f *Fabric) open(name string) (*host, error) {
	h := &host{name: name}
	h.loop, _ = lab.Loopback(f.sub, name)
	for _, l := range f.sub.Links {
		if end := slices.Index(l.Ends[:], name); end >= 0 {
			h.port, h.device = l.Ports[end].Address, l.Ports[end].Interface
		}
	}
	var err error
	h.at, err = kernel.NewHost(kernel.Config{Host: name, Run: filepath.Join(f.testbed.Run, "lab", "emulation"), Namespace: lab.Namespace(f.testbed.Name, name)})
	if err != nil {
		return nil, err
	}
	if h.table, err = iplb.Open(h.at, h.loop); err != nil {
		return nil, errors.Join(err, h.at.Close())
	}
	if err = errors.Join(h.table.SetWiresCarryGSO(true), h.table.Spread(h.at, h.device)); err == nil {
		h.sink, err = newSink(h.at.Home())
	}
	if err != nil {
		h.close()
		return nil, fmt.Errorf("prepare host %s: %w", name, err)
	}
	return h, nil
}

func (h *host) close() {
	if h.sink != nil {
		h.sink.close()
	}
	h.table.Close()
	_ = h.at.Close()
}

// spread makes every host send to its target by a method: with a rule for the
// target's loopback, or without one.
func (f *Fabric) spread(targets []int, m spread.Method) error {
	for from, h := range f.hosts {
		if err := h.clear(); err != nil {
			return err
		}
		spread, ok := f.spreadOf(from, targets[from], m)
		if !ok {
			continue
		}
		if err := h.table.Set(spread); err != nil {
			return fmt.Errorf("paths of %s: %w", h.name, err)
		}
		h.spreads = append(h.spreads, spread)
	}
	return nil
}

func (h *host) clear() error {
	for _, p := range h.table.Rules() {
		if err := h.table.Remove(p); err != nil {
			return err
		}
	}
	h.spreads = nil
	return nil
}

// modes by kind of method.
var modes = map[string]plan.SpreadMode{"hash": plan.HashMode, "flow": plan.PerFlow, "ksp": plan.RoundRobin, "even": plan.RoundRobin, "single": plan.HashMode}

// spreadOf is how one host sends to another; false: the fabric decides, or both
// are at one switch.
func (f *Fabric) spreadOf(from, to int, m spread.Method) (plan.Spread, bool) {
	mode, ok := modes[m.Kind()]
	paths := f.model.Paths(from, to, m)
	if !ok || len(paths[0].Links) == 0 {
		return plan.Spread{}, false
	}
	spread := plan.Spread{Prefix: netip.PrefixFrom(f.hosts[to].loop, 32), Mode: mode}
	paths = paths[:min(len(paths), iplb.MaxPaths)]
	weights := f.model.Weights(paths, m)
	for i, p := range paths {
		spread.Paths = append(spread.Paths, plan.RelayPath{Relays: f.relays(p), Weight: weights[i]})
	}
	return spread, true
}

// relays are the addresses of the shortest list that pins a path. Where the
// path is the fabric's only choice, the list is its last switch.
func (f *Fabric) relays(p fabric.Path) []netip.Addr {
	list := f.model.Switches().Pin(p)
	if len(list) == 0 {
		list = fabric.List{{Node: p.Nodes[len(p.Nodes)-1], Link: fabric.None}}
	}
	var addresses []netip.Addr
	for _, r := range list {
		address, _ := lab.Loopback(f.sub, f.sub.Switches[r.Node])
		if r.Link != fabric.None {
			end := slices.Index(f.sub.Links[r.Link].Ends[:], f.sub.Switches[r.Node])
			address = lab.PortAddress(r.Link, end)
		}
		addresses = append(addresses, address)
	}
	return addresses
}

// Hosts is how many there are.
func (f *Fabric) Hosts() int { return len(f.hosts) }
