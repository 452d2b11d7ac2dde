package report

import (
	"strconv"

	"sublet/plan"
	"sublet/vnet"
)

// ChainHop is what one host counted of a hop of a service chain since it was made
// there. Hops of a chain are in the order of falling indexes.
type ChainHop struct {
	Chain   string            `json:"chain"`
	Hop     string            `json:"hop"`            // a function's name, "to ..." a host, or "out"
	Index   int               `json:"index"`          // of the service header
	Back    bool              `json:"back,omitempty"` // on the way back
	Packets uint64            `json:"packets"`
	Bytes   uint64            `json:"bytes"`
	Drops   map[string]uint64 `json:"drops,omitempty"` // by cause
	// CPU is what a function has whose processor time follows the load, in
	// thousandths of a core; Why, why the chain has less than its rate for want of it.
	CPU vnet.CPU `json:"cpu_milli,omitempty"`
	Why string   `json:"why,omitempty"`
}

// Counters and labels of hops.
const (
	Passed     = "passed"
	Given      = "given"
	LabelChain = "chain"
	LabelHop   = "hop"
	LabelIndex = "index"
	LabelBack  = "back" // true: on the way back
)

// ChainHops is what samples say of chains.
func ChainHops(samples []Sample) []ChainHop {
	list := []ChainHop{}
	for _, s := range samples {
		if s.Kind != plan.KindChains || s.Labels[LabelChain] == "" {
			continue
		}
		index, _ := strconv.Atoi(s.Labels[LabelIndex]) // this package wrote it
		list = append(list, ChainHop{
			Chain: s.Labels[LabelChain], Hop: s.Labels[LabelHop], Index: index, Back: s.Labels[LabelBack] != "",
			Packets: s.Value(Passed, Packets), Bytes: s.Value(Passed, Bytes), Drops: s.By(Dropped),
			CPU: vnet.CPU(s.Value(Given, MilliCores)), Why: s.Why,
		})
	}
	return list
}
