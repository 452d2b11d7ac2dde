package vnode

import (
	"os"
	"path/filepath"
	"strconv"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// mostKind is the directory that holds, for each node whose processor time follows
// the load, what is booked for it in thousandths of a core. The group's quota is
// what it has now, which is not this room's: up to a core, if nobody has the rest.
const mostKind = "processors"

func (p *Part) mostPath(key string) string { return filepath.Join(p.host.Dir(mostKind), key) }

// follows says whether a limit can be one that the load was found to take.
func follows(limit, booked vnet.CPU) bool { return limit > 0 && limit <= max(booked, vnet.Core) }

// most is what is booked for a node; false: its time does not follow the load.
func (p *Part) most(key string) (vnet.CPU, bool) {
	text, err := os.ReadFile(p.mostPath(key))
	if err != nil {
		return 0, false
	}
	most, err := strconv.ParseInt(string(text), 10, 64)
	return vnet.CPU(most), err == nil
}

// setProcessors limits a node's group. A quota that was set for the load is
// left as it is.
func (p *Part) setProcessors(g kernel.Group, n plan.VNode) error {
	if !n.Auto {
		if err := gone(os.Remove(p.mostPath(n.Key()))); err != nil {
			return err
		}
		return g.SetCPU(int64(n.CPU))
	}
	_, followed := p.most(n.Key())
	if err := kernel.MkdirAll(p.host.Dir(mostKind), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(p.mostPath(n.Key()), strconv.AppendInt(nil, int64(n.CPU), 10), 0o600); err != nil {
		return err
	}
	if now := vnet.CPU(g.CPU()); followed && follows(now, n.CPU) {
		return nil
	}
	return g.SetCPU(int64(n.CPU))
}
