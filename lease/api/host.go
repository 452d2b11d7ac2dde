package api

import (
	"time"

	"sublet/report"
	"sublet/vnet"
)

// Host is a substrate node as it is now.
type Host struct {
	Name     vnet.HostID `json:"name"`
	Site     string      `json:"site,omitempty"`
	Agent    AgentState  `json:"agent"`
	Seen     time.Time   `json:"seen,omitzero"` // last sign of life
	CPU      vnet.CPU    `json:"cpu_milli"`
	CPUFree  vnet.CPU    `json:"cpu_free_milli"`
	Memory   vnet.Bytes  `json:"memory_bytes"`
	MemFree  vnet.Bytes  `json:"memory_free_bytes"`
	Nodes    int         `json:"nodes"`    // the caller's virtual nodes on it; all for the operator
	Revision uint64      `json:"revision"` // of the plan it shall have; 0 for tenants, as the next three
	Applied  uint64      `json:"applied"`  // of the plan it has
	Errors   int         `json:"errors"`   // things its agent could not do
	Drift    uint64      `json:"drift"`    // repairs since its agent started
	// Carries is what admission counts on between two of its nodes, per direction;
	// of its measurement, if there is one.
	Carries vnet.Rate `json:"carries_bps"`
	vnet.Measurement
	Down    bool     `json:"down,omitempty"`
	Drained bool     `json:"drained,omitempty"` // it takes nothing new
	Lacks   []string `json:"lacks,omitempty"`   // what its ports need and its agent does not see
	// Problems are what its agent cannot read or do to the host as a whole, each
	// once; the operator sees them.
	Problems []string `json:"problems,omitempty"`
	// Held is what its agent keeps it at instead of the server's plan, until
	// the operator adopts it; nil: it follows.
	Held *report.Held `json:"held,omitempty"`
}

// AgentState is a host's agent's.
type AgentState string

// States of an agent: unknown ones have not been heard of since the server
// started.
const (
	AgentUp      AgentState = "up"
	AgentSilent  AgentState = "silent"
	AgentUnknown AgentState = "unknown"
)
