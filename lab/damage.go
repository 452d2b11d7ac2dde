package lab

import (
	"fmt"
	"path/filepath"
	"slices"

	"sublet/datapath/kernel"
	"sublet/vnet"
)

// Damage is what is wrong with a wire.
type Damage int

// Damages. Whole: nothing. Cut: both ends lose their carrier, so both nodes
// see it. Silent: packets of both directions vanish, and nobody is told.
const (
	Whole Damage = iota
	Cut
	Silent
)

// SetWire damages a link of a lab, or mends it.
func SetWire(run string, sub vnet.Substrate, link string, d Damage) error {
	index := slices.IndexFunc(sub.Links, func(l vnet.SubstrateLink) bool { return l.Name == link })
	if index < 0 {
		return fmt.Errorf("the lab has no link %q", link)
	}
	s, err := readState(run)
	if err != nil {
		return fmt.Errorf("damage link %s: %w", link, err)
	}
	ns, c, err := openNamespace(s.Namespaces[0])
	if err != nil {
		return fmt.Errorf("damage link %s: %w", link, err)
	}
	defer ns.Close()
	defer c.Close()
	if err := damage(c, index, d); err != nil {
		return fmt.Errorf("damage link %s: %w", link, err)
	}
	return nil
}

// damage works on both devices of a wire. Without clsact nothing crosses.
func damage(c *kernel.Conn, index int, d Damage) error {
	var devices [2]int
	for end := range devices {
		device, err := c.LinkByName(wire(index, end))
		if err != nil {
			return err
		}
		devices[end] = device.Index
	}
	targets, err := targetsOf(c, index, devices)
	if err != nil {
		return err
	}
	for end, device := range devices {
		change := kernel.UpLink(device)
		if d == Cut {
			change = kernel.DownLink(device)
		}
		if err := c.Do(change); err != nil {
			return err
		}
		if err := crossOrDrop(c, device, targets[1-end], d == Silent); err != nil {
			return err
		}
	}
	return nil
}

func crossOrDrop(c *kernel.Conn, from, to int, drop bool) error {
	if drop {
		return c.DeleteQdisc(from, kernel.TCClsact)
	}
	return cross(c, from, to)
}

// Namespace is the file of a node's network namespace.
func Namespace(name, node string) string { return filepath.Join(netnsDir, name+"-"+node) }
