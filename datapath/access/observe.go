package access

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Observe reads accesses back. One of which only parts are there has no interface:
// no plan has that.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	names, err := p.host.Names(marks)
	if err != nil {
		return fmt.Errorf("list accesses: %w", err)
	}
	if len(names) == 0 {
		return nil
	}
	home, err := p.host.Dial("")
	if err != nil {
		return err
	}
	defer home.Close()
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, of, ok := plan.ParseSwitchNamespace(name, vnet.SwitchKernel)
		if !ok {
			continue
		}
		a := plan.Access{Lease: id, Switch: of}
		if err := p.observe(home, &a); err != nil {
			host.Unseen(fmt.Errorf("observe access %s: %w", name, err), id, plan.KindAccess)
			continue
		}
		host.Add(a)
	}
	return nil
}

func (p *Part) observe(home *kernel.Conn, a *plan.Access) error {
	ns, err := p.host.Open(a.Key())
	if errors.Is(err, os.ErrNotExist) {
		return p.host.Unseen(a.Key())
	}
	if err != nil {
		return err
	}
	defer ns.Close()
	inside, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer inside.Close()
	device, err := home.LinkByName(a.Device())
	if kernel.NotFound(err) || err == nil && !device.Up {
		return nil
	}
	if err != nil {
		return err
	}
	if a.Port, err = p.portOf(home, inside, ns, device); err != nil || a.Port == "" {
		return err
	}
	port, err := inside.LinkByIndex(device.Peer)
	if err != nil || !port.Up {
		return err
	}
	return p.observeWay(home, device, a)
}

// observeWay reads where the port leads to.
func (p *Part) observeWay(home *kernel.Conn, device kernel.Link, a *plan.Access) error {
	t, err := p.tables()
	if err != nil {
		return err
	}
	var to accessOutlet
	var back uint32
	err = t.outlets.Lookup(uint32(device.Index), &to)
	if err == nil {
		err = t.inlets.Lookup(accessInletKey{Index: to.Index, Vlan: uint32(to.Vlan)}, &back)
	}
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	out, err := t.pins.Attached(outPin(device.Index), device.Index, t.out)
	if err != nil || !out || back != uint32(device.Index) {
		return err
	}
	in, err := t.pins.Attached(inPin(int(to.Index)), int(to.Index), t.in)
	if err != nil || !in {
		return err
	}
	below, err := home.LinkByIndex(int(to.Index))
	if kernel.NotFound(err) {
		return nil
	}
	if err == nil && below.All && below.Hardware == to.Mac && below.MTU == device.MTU && usable(home, below, to.Vlan) == nil {
		a.Interface, a.VLAN = below.Name, to.Vlan
	}
	return err
}
