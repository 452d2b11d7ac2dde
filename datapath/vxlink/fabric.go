package vxlink

import (
	"errors"
	"fmt"
	"os"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// makeFabric makes a lease's fabric unless it is there.
func (p *Part) makeFabric(name string) error {
	p.fabrics.Lock()
	defer p.fabrics.Unlock()
	if err := p.host.MakeSilent(name); err != nil {
		return fmt.Errorf("make the network's namespace on this host: %w", err)
	}
	return nil
}

// removeFabric removes a fabric in which no link is left, with the trunk; with
// the last fabric the programs.
func (p *Part) removeFabric(lease vnet.LeaseID) error {
	p.fabrics.Lock()
	defer p.fabrics.Unlock()
	empty, err := p.empty(lease)
	if err != nil || !empty {
		return err
	}
	r, err := p.programs()
	if err != nil {
		return err
	}
	if err := p.removeTrunk(r, lease); err != nil {
		return err
	}
	if err := kernel.Unbind(p.host.Path(plan.Fabric(lease))); err != nil {
		return err
	}
	return p.unload()
}

// empty says whether a fabric has no links of ours; a broken one is empty.
func (p *Part) empty(lease vnet.LeaseID) (bool, error) {
	if any, err := p.hasEnds(lease); err != nil || any {
		return false, err
	}
	name := plan.Fabric(lease)
	c, err := p.host.Dial(name)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look into fabric %s: %w", name, err)
	}
	defer c.Close()
	devices, err := c.Links()
	for _, d := range devices {
		if _, _, ok := parseDevice(d.Name); ok {
			return false, nil
		}
	}
	return err == nil, err
}

// hasEnds says whether ends of a lease's links are written down.
func (p *Part) hasEnds(lease vnet.LeaseID) (bool, error) {
	r, err := p.programs()
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.places == nil {
		if err := p.readSlots(r); err != nil {
			return false, err
		}
	}
	for at := range p.places {
		if at.lease == lease && at.index != trunkIndex {
			return true, nil
		}
	}
	return false, nil
}

// note keeps the hint which links a fabric has, and tells how many.
func (p *Part) note(link plan.VxLink, there bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	fabric := plan.Fabric(link.Lease)
	if p.links[fabric] == nil {
		p.links[fabric] = make(map[string]bool)
	}
	if there {
		p.links[fabric][link.Key()] = true
	} else {
		delete(p.links[fabric], link.Key())
	}
	return len(p.links[fabric])
}

// parseDevice reads a link's index and end out of its device's name.
func parseDevice(name string) (index, i int, ok bool) {
	var letter rune
	n, err := fmt.Sscanf(name, "l%d%c", &index, &letter)
	if err != nil || n != 2 || letter < 'a' || letter >= 'a'+2*plan.Places {
		return 0, 0, false
	}
	l := plan.VxLink{Index: index}
	i, turn := int(letter-'a')%2, int(letter-'a')/2
	l.Ends[i].Place = turn
	return index, i, name == l.Device(i)
}
