package bridge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"sublet/datapath/bpf"
	"sublet/datapath/hop"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Observe reads switches and ports back. A switch without its namespace or its
// tables has no ageing, a port without its device or its program no limits: no
// plan has that.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	keys, err := p.keys()
	if err != nil {
		return fmt.Errorf("list switches: %w", err)
	}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.observe(key, host); err != nil {
			id, _, _ := plan.ParseSwitchNamespace(key, vnet.SwitchKernel)
			host.Unseen(fmt.Errorf("observe switch %s: %w", key, err), id, plan.KindSwitch, plan.KindSwitchPort)
		}
	}
	return nil
}

// keys lists every switch of which there is anything.
func (p *Part) keys() ([]string, error) {
	keys, err := p.host.Names("netns")
	if err != nil {
		return nil, err
	}
	pins, err := p.host.Names("bpf")
	if err != nil {
		return nil, err
	}
	for _, name := range pins {
		if key, ours := keyOf(name); ours {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(key string) bool {
		_, _, ok := plan.ParseSwitchNamespace(key, vnet.SwitchKernel)
		return !ok
	}), nil
}

func (p *Part) observe(key string, host *plan.Host) error {
	id, name, _ := plan.ParseSwitchNamespace(key, vnet.SwitchKernel)
	s := plan.Switch{Lease: id, Switch: name, Type: vnet.SwitchKernel}
	pinned, err := p.pinned(key)
	if err != nil {
		return err
	}
	ns, err := p.host.Open(key)
	if errors.Is(err, os.ErrNotExist) {
		host.Add(s)
		return p.host.Unseen(key)
	}
	if err != nil {
		return err
	}
	defer ns.Close()
	if !pinned {
		host.Add(s)
		return nil
	}
	t, err := p.tables(key)
	if err != nil {
		return err
	}
	setting, err := t.setting()
	if err != nil {
		return err
	}
	if s.Stations, err = t.stations(); err != nil {
		return err
	}
	s.Ageing = time.Duration(setting.Ageing)
	host.Add(s)
	c, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer c.Close()
	links, err := c.Links()
	if err != nil {
		return err
	}
	fabric, err := p.host.NamespaceOf(c, plan.Fabric(id))
	if err != nil {
		return err
	}
	home, err := c.NamespaceID(p.host.Home().Fd())
	if err != nil {
		return err
	}
	return t.observePorts(id, name, links, fabric, home, host)
}

// pinned says whether there is anything of a switch's tables. What is open and
// was unpinned is pinned again.
func (p *Part) pinned(key string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.open[key]; t != nil {
		return true, t.pins.Repin()
	}
	return bpf.Left(p.host, pinsOf(key))
}

// observePorts reads every row that is in use. A port whose other end is in the
// host's own namespace leads to an exit: it has no link to be chained with.
func (t *tables) observePorts(id vnet.LeaseID, name string, links []kernel.Link, fabric, home int, host *plan.Host) error {
	devices := make(map[string]kernel.Link)
	for _, l := range links {
		devices[l.Name] = l
	}
	numbers, err := read[uint32, uint32](t.Numbers)
	if err != nil {
		return err
	}
	setting, err := t.setting()
	if err != nil {
		return err
	}
	for n := range int(setting.Ports) {
		var have vswitchPort
		if err := t.Ports.Lookup(uint32(n), &have); err != nil {
			return err
		}
		if have == (vswitchPort{}) {
			continue
		}
		item := plan.SwitchPort{Lease: id, Switch: name, Type: vnet.SwitchKernel, Interface: device(n)}
		link := devices[device(n)]
		index, slot := link.Index, hop.SlotOf(link.Peer, link.PeerNS, fabric)
		on, err := t.pins.Attached(pinOf(n), index, t.program)
		if err != nil {
			return err
		}
		opened, err := t.joined.Joined(index, slot, uint32(n))
		if err != nil {
			return err
		}
		opened = opened || home >= 0 && link.PeerNS == home
		if row, ok := numbers[have.Index]; on && opened && ok && row == uint32(n) && have.Index == uint32(index) && have.Slot == slot {
			have.fill(&item)
		}
		host.Add(item)
	}
	return nil
}

// fill reads a row back into a port's item.
func (p vswitchPort) fill(item *plan.SwitchPort) {
	item.MACs, item.Broadcast, item.Unknown, item.Blocked = int(p.Addresses), int(p.Broadcast), int(p.Unknown), p.Blocked != 0
	all := true
	var to []string
	for n := range maxPorts {
		if p.To[n/64]>>(n%64)&1 == 1 {
			to = append(to, device(n))
		} else {
			all = false
		}
	}
	if !all {
		slices.Sort(to)
		item.To = to
	}
}
