package vxlink

import (
	"fmt"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// setClass makes a class or changes it in place. Classes never move, and the
// kernel takes a parent that is missing for the root: one that ends up
// elsewhere is made anew, or not at all.
func setClass(c *kernel.Conn, index int, minor, parent uint16, class kernel.HTBClass) error {
	id, above := handleOf(minor), handleOf(parent)
	for range 2 {
		if err := c.Do(kernel.SetClass(index, id, above, class)); err != nil {
			return err
		}
		got, err := c.Class(index, id)
		if err != nil || got.Parent == above || parent == 0 && got.Parent == kernel.TCRoot {
			return err
		}
		if err := c.DeleteClass(index, id); err != nil {
			return fmt.Errorf("take it from below %x: %w", got.Parent, err)
		}
	}
	return fmt.Errorf("there is no class 1:%x to put it below", parent)
}

// takeMinor reserves a free class number of an interface.
func (p *Part) takeMinor(r *programs, index int) (uint16, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.minors == nil {
		if err := p.readMinors(r); err != nil {
			return 0, err
		}
	}
	if p.minors[index] == nil {
		p.minors[index] = make(map[uint16]bool)
	}
	for minor := minorTunnels; minor < 1<<16-1; minor++ {
		if !p.minors[index][minor] {
			p.minors[index][minor] = true
			return minor, nil
		}
	}
	return 0, fmt.Errorf("all classes of interface %d are taken", index)
}

// readMinors learns which numbers are written for the tunnels there are.
func (p *Part) readMinors(r *programs) error {
	all, err := r.all()
	if err != nil {
		return err
	}
	p.minors = minorsOf(all)
	return nil
}

func minorsOf(all map[uint32]vxlinkRecord) map[int]map[uint16]bool {
	minors := make(map[int]map[uint16]bool)
	for _, record := range all {
		uplink := int(record.Uplink)
		if record.Minor == 0 {
			continue
		}
		if minors[uplink] == nil {
			minors[uplink] = make(map[uint16]bool)
		}
		minors[uplink][record.Minor] = true
	}
	return minors
}

// dropClassOf deletes a tunnel's class and frees its number. What is written down of the
// tunnel loses the number first: a try to drop it that is repeated after an error would
// delete the class of whoever took the number meanwhile.
func (p *Part) dropClassOf(r *programs, home *kernel.Conn, slot uint32, record vxlinkRecord) error {
	if record.Minor == 0 {
		return nil
	}
	index, minor := int(record.Uplink), record.Minor
	if err := home.DeleteClass(index, handleOf(minor)); err != nil {
		return fmt.Errorf("delete class 1:%x of interface %d: %w", minor, index, err)
	}
	record.Minor = 0
	if err := r.setRecord(slot, record); err != nil {
		return fmt.Errorf("write down that its class is gone: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.minors[index], minor)
	return nil
}

// dropClass deletes a class of an interface and frees its number.
func (p *Part) dropClass(home *kernel.Conn, index int, minor uint16) error {
	if minor == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := home.DeleteClass(index, handleOf(minor)); err != nil {
		return fmt.Errorf("delete class 1:%x of interface %d: %w", minor, index, err)
	}
	delete(p.minors[index], minor)
	return nil
}

// Class is the class of its uplink that a link's tunnel has; an error: it is not
// there.
func (p *Part) Class(lease vnet.LeaseID, index, end int) (uint16, error) {
	r, err := p.programs()
	if err != nil {
		return 0, err
	}
	slot, ok, record := uint32(0), false, vxlinkRecord{}
	for turn := 0; turn < plan.Places && err == nil && (!ok || record.IsTunnel == 0 || record.Standby != 0); turn++ {
		if slot, ok, err = p.find(r, place{lease, index, end}.turned(turn)); err == nil {
			record, err = r.read(slot)
		}
	}
	if err == nil && (!ok || record.IsTunnel == 0 || record.Minor == 0) {
		err = fmt.Errorf("link %d of %s has no tunnel at end %d", index, plan.Fabric(lease), end)
	}
	return record.Minor, err
}
