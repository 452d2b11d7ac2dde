package report

import (
	"sublet/plan"
	"sublet/vnet"
)

// TunnelState is an entry of an overlay forwarding table as it is now, or what a host dropped for none.
type TunnelState struct {
	Host vnet.HostID `json:"host"`
	plan.Overlay
	State         string            `json:"state"`              // TunnelValid, TunnelUnresolved or TunnelNone
	Reason        string            `json:"reason,omitempty"`   // of being unresolved
	NextHop       string            `json:"next_hop,omitempty"` // Ethernet address
	PathMTU       int               `json:"path_mtu,omitempty"` // of the inner packet, as the path is now
	Hits          uint64            `json:"hits"`               // packets sent by it
	Bytes         uint64            `json:"bytes"`              // of inner frames
	Received      uint64            `json:"received"`           // packets
	ReceivedBytes uint64            `json:"received_bytes"`
	Drops         map[string]uint64 `json:"drops,omitempty"` // by cause
}

// States of an entry. None is what a host dropped and could tell no entry of.
const (
	TunnelValid      = "valid"
	TunnelUnresolved = "unresolved"
	TunnelNone       = "none"
)
