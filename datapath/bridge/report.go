package bridge

import (
	"context"
	"fmt"

	"sublet/datapath/bpf"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// causes names the reasons for drops.
var causes = bpf.EnumNames(loadVswitch, "drop", "DROP_")

// Samples tell of every port of every switch.
func (p *Part) Samples(_ context.Context, of report.Scope) ([]report.Sample, error) {
	p.busy.RLock()
	defer p.busy.RUnlock()
	keys, err := p.keys()
	if err != nil {
		return nil, err
	}
	var list []report.Sample
	for _, key := range keys {
		lease, _, ok := plan.ParseSwitchNamespace(key, vnet.SwitchKernel)
		if !ok || !of.Holds(lease) {
			continue
		}
		if left, err := bpf.Left(p.host, pinsOf(key)); err != nil {
			return nil, err
		} else if !left {
			continue
		}
		t, err := p.tables(key)
		if err != nil {
			return nil, fmt.Errorf("read switch %s: %w", key, err)
		}
		ports, err := t.paths(key)
		if err != nil {
			return nil, fmt.Errorf("read switch %s: %w", key, err)
		}
		for _, port := range ports {
			list = append(list, port.Sample(lease))
		}
	}
	return list, nil
}

func (t *tables) paths(key string) ([]report.Forwarding, error) {
	setting, err := t.setting()
	if err != nil {
		return nil, err
	}
	var list []report.Forwarding
	for n := range setting.Ports {
		var row vswitchPort
		var perCPU []vswitchCount
		if err := t.Ports.Lookup(n, &row); err != nil {
			return nil, err
		}
		if row.Index == 0 {
			continue
		}
		if err := t.Counters.Lookup(n, &perCPU); err != nil {
			return nil, err
		}
		path := report.Forwarding{Kind: plan.KindSwitchPort, Of: key + "/" + device(int(n)), Fast: true}
		for _, c := range perCPU {
			c.add(&path)
		}
		list = append(list, path)
	}
	return list, nil
}

// add sums one processor's share up.
func (c vswitchCount) add(path *report.Forwarding) {
	path.Packets += c.Packets
	path.Bytes += c.Bytes
	path.Chained += c.Chained
	path.Floods += c.Floods
	path.Answers += c.Answers
	path.Full += c.Unlearned
	for i, n := range c.Drops {
		if n > 0 {
			if path.Dropped == nil {
				path.Dropped = make(map[string]uint64)
			}
			path.Dropped[causes()[i]] += n
		}
	}
}
