package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"sublet/vnet"
)

// Control is what control in band of OpenFlow switches is with: controllers, and
// gateways to them, of all switches of a lease.
type Control struct {
	Controllers []netip.AddrPort `json:"controllers"`
	Gateways    []netip.Addr     `json:"gateways,omitempty"`
}

// MaxControl bounds both together: what tells control from data is done to each frame.
const MaxControl = 16

func (c *Control) String() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf(" control %v gateways %v", c.Controllers, c.Gateways)
}

// controlOf is what is control of a link's frames; nil: no control passes it.
func (n *network) controlOf(link vnet.VirtualLink) *Control {
	if link.Chain != "" || !n.leadsControl(link.Ends[0]) || !n.leadsControl(link.Ends[1]) {
		return nil
	}
	if n.control == nil {
		n.control = n.controlInBand()
	}
	if len(n.control.Controllers) == 0 {
		return nil
	}
	return n.control
}

// controlInBand is that of the switches of the running stage.
func (n *network) controlInBand() *Control {
	c := &Control{}
	for _, s := range n.top.Switches {
		if s.Kind != vnet.SwitchOpenFlow {
			continue
		}
		b := n.inBand(s.Name)
		if b == nil {
			continue
		}
		c.Gateways = append(c.Gateways, b.Gateways...)
		for _, text := range s.AllControllers() {
			c.Controllers = append(c.Controllers, n.controller(s.Name, text, true))
		}
	}
	c.Controllers = distinct(c.Controllers, netip.AddrPort.Compare, MaxControl)
	c.Gateways = distinct(c.Gateways, netip.Addr.Compare, MaxControl-len(c.Controllers))
	return c
}

// distinct is a list in order, each of it once, and so many at most; nil: none.
func distinct[T comparable](list []T, compare func(a, b T) int, most int) []T {
	slices.SortFunc(list, compare)
	if list = slices.Compact(list); len(list) > most {
		list = list[:most]
	}
	if len(list) == 0 {
		return nil
	}
	return list
}
