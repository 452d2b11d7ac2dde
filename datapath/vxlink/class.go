package vxlink

import (
	"fmt"

	"sublet/datapath/kernel"
)

// setClass makes a class or changes it in place. Classes never move, and the
// kernel takes a parent that is missing for the root: one that ends up
// elsewhere is made anew, or not at all.
func setClass(c *kernel.Conn, index int, minor, parent uint16, class kernel.HTBClass) error {
	id, above := kernel.Handle(1, minor), kernel.Handle(1, parent)
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
func (p *Part) takeMinor(home *kernel.Conn, index int) (uint16, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.minors == nil {
		if err := p.readMinors(); err != nil {
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

// readMinors learns which numbers are written on the tunnels there are.
func (p *Part) readMinors() error {
	fabrics, err := p.host.Names("netns")
	if err != nil {
		return err
	}
	minors := make(map[int]map[uint16]bool)
	for _, name := range fabrics {
		if _, ok := lease(name); !ok {
			continue
		}
		c, err := p.host.Dial(name)
		if err != nil {
			continue // a broken leftover has no tunnels
		}
		devices, err := c.Links()
		c.Close()
		if err != nil {
			return fmt.Errorf("read tunnels of %s: %w", name, err)
		}
		takeMinors(minors, devices)
	}
	p.minors = minors
	return nil
}

func takeMinors(minors map[int]map[uint16]bool, devices []kernel.Link) {
	for _, d := range devices {
		minor, _ := parseMark(d.Alias)
		if minor == 0 || d.Kind != "vxlan" {
			continue
		}
		if minors[d.Peer] == nil {
			minors[d.Peer] = make(map[uint16]bool)
		}
		minors[d.Peer][minor] = true
	}
}

// dropClass deletes a class of an interface and frees its number.
func (p *Part) dropClass(home *kernel.Conn, index int, minor uint16) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := home.DeleteClass(index, kernel.Handle(1, minor)); err != nil {
		return fmt.Errorf("delete class 1:%x of interface %d: %w", minor, index, err)
	}
	delete(p.minors[index], minor)
	return nil
}
