package report

import (
	"sublet/plan"
	"sublet/vnet"
)

// TableState is a table of tunnels of the operator's own as it is now.
type TableState struct {
	Host vnet.HostID `json:"host"`
	plan.TableHead
	State         string            `json:"state"`            // TunnelValid or TunnelUnresolved
	Reason        string            `json:"reason,omitempty"` // of being unresolved
	Received      uint64            `json:"received"`         // packets
	ReceivedBytes uint64            `json:"received_bytes"`
	Drops         map[string]uint64 `json:"drops,omitempty"` // by cause, of what came in
	Entries       []EntryState      `json:"entries"`
}

// EntryState is one entry of a table.
type EntryState struct {
	plan.TunnelEntry
	State   string            `json:"state"`
	Reason  string            `json:"reason,omitempty"`
	NextHop string            `json:"next_hop,omitempty"`
	PathMTU int               `json:"path_mtu,omitempty"`
	Hits    uint64            `json:"hits"` // packets sent by it
	Bytes   uint64            `json:"bytes"`
	Drops   map[string]uint64 `json:"drops,omitempty"`
}
