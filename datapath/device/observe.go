package device

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// Observe reads devices back. One that is not there has no interface: no plan has
// that. Whether it is up is the tenant's matter.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	keys, err := p.host.Names(kind)
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, node, ok := plan.ParseNamespace(key)
		if !ok {
			continue
		}
		d := plan.Device{Lease: id, Node: node}
		if err := p.observe(&d); err != nil {
			host.Unseen(fmt.Errorf("observe device %s: %w", key, err), id, plan.KindDevice)
			continue
		}
		host.Add(d)
	}
	return nil
}

func (p *Part) observe(d *plan.Device) error {
	s, err := p.open(d.Key())
	if errors.Is(err, os.ErrNotExist) {
		return p.host.Unseen(d.Key())
	}
	if err != nil {
		return err
	}
	defer s.close()
	list, err := s.devices()
	if err != nil || len(list) != 1 {
		return err
	}
	below, err := s.home.LinkByIndex(list[0].Peer)
	if kernel.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	right, err := silent(s.host, p.table(d.Key()), below.Name)
	if right {
		d.Name, d.Interface = list[0].Name, below.Name
	}
	return err
}
