package vxswitch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sublet/datapath/vxswitch/live"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Observe reads what the process is. When it does not answer, or is not what
// was written down, its switches are listed without ageing and its ports below
// zero: no plan has that. So are namespaces of which nothing is written down.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.load()
	if err != nil {
		return err
	}
	if err := p.strays(s, host); err != nil {
		return err
	}
	if s.empty() {
		if p.group().Exists() {
			return p.end()
		}
		return nil
	}
	want, err := p.config(s)
	if err != nil {
		return err
	}
	ports, right := p.running(ctx, s, want)
	for _, sw := range s.Switches {
		if err := p.observe(s, sw, right, ports, host); err != nil {
			return err
		}
	}
	return nil
}

// observe lists a switch and its ports.
func (p *Part) observe(s *state, sw plan.Switch, right bool, ports map[string]int, host *plan.Host) error {
	there, err := p.devices(sw.Key())
	if err != nil {
		return err
	}
	for _, port := range s.Ports {
		if !isOf(port, sw) {
			continue
		}
		if link, open := ports[port.Key()]; !right || !open || link != there[port.Interface] {
			e := *port.Engine
			e.In, e.Out = -1, -1
			port.Engine = &e
		}
		host.Add(port)
	}
	if !right || len(there) == 0 {
		sw.Ageing = 0
	}
	host.Add(sw)
	return nil
}

// running gives the open ports' devices, and whether the process is what s says.
func (p *Part) running(ctx context.Context, s *state, c *live.Config) (ports map[string]int, right bool) {
	want, err := c.Text()
	if err != nil {
		return nil, false
	}
	have, err := p.ask(ctx, http.MethodGet, "config", nil)
	if err != nil || !bytes.Equal(have, want) || p.group().CPU() != int64(s.cpu()) {
		return nil, false
	}
	text, err := p.ask(ctx, http.MethodGet, "status", nil)
	var st live.Status
	if err != nil || json.Unmarshal(text, &st) != nil {
		return nil, false
	}
	ports = map[string]int{}
	for _, port := range st.Ports {
		ports[port.Name] = port.Link
	}
	return ports, true
}

// strays lists namespaces of switches that nobody wrote down.
func (p *Part) strays(s *state, host *plan.Host) error {
	names, err := p.host.Names("netns")
	if err != nil {
		return fmt.Errorf("list switches: %w", err)
	}
	known := map[string]bool{}
	for _, sw := range s.Switches {
		known[sw.Key()] = true
	}
	for _, key := range names {
		if id, name, ok := plan.ParseSwitchNamespace(key, vnet.SwitchEngine); ok && !known[key] {
			host.Add(plan.Switch{Lease: id, Switch: name, Type: vnet.SwitchEngine})
		}
	}
	return nil
}

// Samples tell of every port of every switch.
func (p *Part) Samples(ctx context.Context, of report.Scope) ([]report.Sample, error) {
	st, err := p.Status(ctx)
	if err != nil || st == nil {
		return nil, err
	}
	var list []report.Sample
	at := make(map[string]int) // in paths, by port: slices share them
	var paths []report.Forwarding
	var leases []vnet.LeaseID
	for _, v := range st.Switches {
		whole, _, _ := strings.Cut(v.Name, "/")
		lease, _, ok := plan.ParseSwitchNamespace(whole, vnet.SwitchEngine)
		if !ok || !of.Holds(lease) {
			continue
		}
		for _, port := range v.Ports {
			i, there := at[port.Port]
			if !there {
				i, at[port.Port] = len(paths), len(paths)
				paths, leases = append(paths, report.Forwarding{Kind: plan.KindVxSwitchPort, Of: port.Port, Fast: true}), append(leases, lease)
			}
			paths[i].Packets += port.Out.Delivered.Packets
			paths[i].Bytes += port.Out.Delivered.Bytes
			addDrops(&paths[i], port)
		}
	}
	for i, path := range paths {
		list = append(list, path.Sample(leases[i]))
	}
	return list, nil
}

// atCrosspoint are the causes that inputs and outputs both count.
var atCrosspoint = []string{"full", "early", "late", "reclaimed"}

// addDrops counts a frame once: that met a crosspoint at its output, else at
// its input.
func addDrops(path *report.Forwarding, port live.SwitchPortStatus) {
	if path.Dropped == nil {
		path.Dropped = map[string]uint64{}
	}
	for cause, n := range port.Out.Dropped {
		path.Dropped[cause] += n.Packets
	}
	for cause, n := range port.In.Dropped {
		if !slices.Contains(atCrosspoint, cause) {
			path.Dropped[cause] += n.Packets
		}
	}
	if len(path.Dropped) == 0 {
		path.Dropped = nil
	}
}
