package plan

import (
	"fmt"

	"sublet/vnet"
)

// Device is an interface of the host that a node has for itself. Built by
// datapath/device.
type Device struct {
	Lease     vnet.LeaseID `json:"lease"`
	Node      string       `json:"node"`
	Name      string       `json:"name"`      // of the interface in the node
	Interface string       `json:"interface"` // of the host
}

// Kind of the section.
func (Device) Kind() Kind { return KindDevice }

// Key is the node's namespace.
func (d Device) Key() string { return Namespace(d.Lease, d.Node) }

// LeaseID is the lease that it is of.
func (d Device) LeaseID() vnet.LeaseID { return d.Lease }

// Meet is the device itself: there is no amount in it.
func (d Device) Meet(Item) Item { return d }

func (d Device) String() string { return fmt.Sprintf("%s/%s on %s", d.Key(), d.Name, d.Interface) }

// device is the item of a node that has a device.
func (c *Compiler) device(l vnet.Lease, node vnet.VirtualNode) (Device, error) {
	offered, ok := c.sub.DeviceOf(node.Device)
	if !ok {
		return Device{}, fmt.Errorf("node %s: there is no device %q for it", node.Name, node.Device)
	}
	return Device{Lease: l.ID(), Node: node.Name, Name: offered.Name, Interface: offered.Interface}, nil
}
