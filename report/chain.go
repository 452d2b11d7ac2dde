package report

import (
	"strconv"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// ChainHop is what one host counted of a hop of a service chain since it was made
// there. Hops of a chain are in the order of falling indexes.
type ChainHop struct {
	Chain   string            `json:"chain"`
	Hop     string            `json:"hop"`            // a function's name, "to ..." a host, "backend ..." or "from ..." a node of a balancer, or "out"
	Index   int               `json:"index"`          // of the service header
	Back    bool              `json:"back,omitempty"` // on the way back
	Packets uint64            `json:"packets"`
	Bytes   uint64            `json:"bytes"`
	Drops   map[string]uint64 `json:"drops,omitempty"` // by cause
	// Latency is what the function added to packets in the mean: to Timed of them, one in
	// 64, whose time was taken.
	Latency time.Duration `json:"latency_ns,omitempty"`
	Timed   uint64        `json:"timed,omitempty"`
	// CPU is what a function has whose processor time follows the load, in
	// thousandths of a core; Why, why the chain has less than its rate for want of it.
	CPU vnet.CPU `json:"cpu_milli,omitempty"`
	Why string   `json:"why,omitempty"`
	// Core is the one that a program's process is kept on, and Used what it uses of it;
	// nil: it is on no core of its own.
	Core *int     `json:"core,omitempty"`
	Used vnet.CPU `json:"used_milli,omitempty"`
	// Dead says that a program returns nothing of what comes to it, and its chain says
	// what becomes of packets then; or that a node of a balancer does not answer.
	Dead bool `json:"dead,omitempty"`
}

// Counters and labels of hops.
const (
	Passed     = "passed"
	Timed      = "timed" // packets of which the time at a function was taken
	Spent      = "spent" // by these
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
			Latency: mean(s.Value(Spent, Nanoseconds), s.Value(Timed, Packets)), Timed: s.Value(Timed, Packets),
			Core: s.Core(), Used: vnet.CPU(s.Value(InUse, MilliCores)),
			CPU: vnet.CPU(s.Value(Given, MilliCores)), Why: s.Why, Dead: s.State == Down,
		})
	}
	return list
}

// mean is a time's part of each; 0: there was none.
func mean(ns, of uint64) time.Duration {
	if of == 0 {
		return 0
	}
	return time.Duration(ns / of)
}

// Since is what a hop counted after it was looked at before.
func (h ChainHop) Since(before ChainHop) ChainHop {
	h.Packets, h.Bytes = h.Packets-before.Packets, h.Bytes-before.Bytes
	if h.Timed > before.Timed {
		spent := uint64(h.Latency)*h.Timed - uint64(before.Latency)*before.Timed
		h.Latency, h.Timed = mean(spent, h.Timed-before.Timed), h.Timed-before.Timed
	} else {
		h.Latency, h.Timed = 0, 0
	}
	drops := make(map[string]uint64)
	for cause, n := range h.Drops {
		if was := before.Drops[cause]; n > was {
			drops[cause] = n - was
		}
	}
	h.Drops = drops
	return h
}
