package report

import "net/netip"

// Joined is what a machine needs to become a node: the settings of its end of a
// tunnel of WireGuard.
type Joined struct {
	Private  string         `json:"private_key,omitempty"` // of the machine, if it gave none: nobody else has it
	Machine  string         `json:"machine_key"`           // its public one
	Public   string         `json:"public_key"`            // of the other end
	Endpoint netip.AddrPort `json:"endpoint"`
	Address  netip.Prefix   `json:"address"`
	Others   []netip.Prefix `json:"others"` // of the network
	MTU      int            `json:"mtu"`
}
