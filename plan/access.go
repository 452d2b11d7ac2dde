package plan

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"sublet/vnet"
)

// Access is the port of a switch that leads to a VLAN of an interface of the host.
// Built by datapath/access.
type Access struct {
	Lease     vnet.LeaseID `json:"lease"`
	Switch    string       `json:"switch"`
	Port      string       `json:"port"`           // of the switch: eth0, eth1, ...
	Interface string       `json:"interface"`      // of the host
	VLAN      uint16       `json:"vlan,omitempty"` // 0: frames without a tag
}

// Kind of the section.
func (Access) Kind() Kind { return KindAccess }

// Key is the switch's namespace.
func (a Access) Key() string { return SwitchNamespace(a.Lease, a.Switch, vnet.SwitchKernel) }

// LeaseID is the lease that it is of.
func (a Access) LeaseID() vnet.LeaseID { return a.Lease }

// Meet is the access itself: there is no amount in it.
func (a Access) Meet(Item) Item { return a }

// Device names the port's other end, in the host's namespace.
func (a Access) Device() string {
	sum := sha256.Sum256([]byte(a.Key()))
	return "sx" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:trunkDigits])
}

func (a Access) String() string {
	if a.VLAN == 0 {
		return fmt.Sprintf("%s/%s to %s", a.Key(), a.Port, a.Interface)
	}
	return fmt.Sprintf("%s/%s to %s vlan %d", a.Key(), a.Port, a.Interface, a.VLAN)
}

// access is the item of a switch with access to an exit, and its port there.
func (c *Compiler) access(net *network, s vnet.VirtualSwitch) (Access, SwitchPort, error) {
	exit, ok := c.sub.ExitOf(s.Access)
	vlan, has := net.lease.Mapping.VLANs[s.Name]
	if !ok || !has {
		return Access{}, SwitchPort{}, fmt.Errorf("switch %s: there is no exit %q for it", s.Name, s.Access)
	}
	a := Access{Lease: net.lease.ID(), Switch: s.Name, Port: net.exits[s.Name], Interface: exit.Interface, VLAN: vlan}
	p := SwitchPort{Lease: a.Lease, Switch: s.Name, Type: vnet.SwitchKernel, Interface: a.Port}
	p.LearningPort = LearningPort{MACs: vnet.MaxMACs, Broadcast: vnet.DefaultFlood, Unknown: vnet.DefaultFlood}
	return a, p, nil
}
