package sim

import (
	"time"

	"sublet/vnet"
	"sublet/vxswitch"
)

// Scenario is one point of an experiment: a switch, who leases it, what they
// send. Runs differ in the seeds of their traffic only.
type Scenario struct {
	Name     string
	Duration time.Duration // packets that arrive before its end count
	Warmup   time.Duration // and not before this; part of the duration
	Drain    bool          // go on after the duration until the switch is empty
	Seed     uint64        // of the first run; the next has the next
	Runs     int

	Switch          Hosting
	VirtualSwitches []VirtualSwitch
	Traffic         []Traffic
	Split           *Split // nil: one switch
}

// Hosting is the physical switch.
type Hosting struct {
	Ports      int                    // N, inputs as outputs
	Rate       vnet.Rate              // of each, per direction
	Crosspoint vnet.Bytes             // buffer of each crosspoint
	Scheduler  vxswitch.SchedulerKind // inter-switch, of every output
	Capped     bool                   // hold each virtual switch to its rate
	Sharing    string                 // of crosspoint buffers: strict or flexible
	MaxFrame   vnet.Bytes             // longer ones are dropped
}

// VirtualSwitch is one lease on it.
type VirtualSwitch struct {
	Name            string
	Ports           []int                  // physical ports, from 1
	Rate            vnet.Rate              // capacity of each port, per direction
	Police          bool                   // drop what arrives above it
	Buffer          vnet.Bytes             // at each crosspoint
	Lend            float64                // fraction of it lent to others while idle, 0 to 1
	Quantum         vnet.Bytes             // of the inter-switch scheduler; 0: by rate
	Priority        int                    // of strict priority, 0 first
	Scheduler       vxswitch.SchedulerKind // intra-switch, of every output
	InputQuantum    vnet.Bytes             // of the intra-switch scheduler
	InputPriorities []int                  // of its ports at its own strict priority; none: all 0
	Manager         vxswitch.ManagerKind   // nil: tail drop
	Blocked         [][2]int               // (input, output) pairs that may not talk
}

// Traffic is streams of packets, one for each input.
type Traffic struct {
	Inputs, Outputs []int
	Weights         []float64 // by virtual switch: its part of each stream
	Rate            vnet.Rate // mean of each stream, in frame bits
	Arrivals        string    // mmpp, poisson or constant
	Peak, Low       float64   // mmpp: rates of its states by the mean
	Burst           float64   // mmpp: mean packets in the state of the higher rate
	MMPP            *MMPP     // mmpp: instead, its rates
	Sizes           Sizes
	Start, Stop     time.Duration

	Trace  []Arrival // instead: exactly these
	Replay []Frame   // instead: times and sizes of these, to outputs by flow
}

// Frame is one packet of a capture.
type Frame struct {
	At   time.Duration // since the first
	Flow uint64        // even hash of its addresses and ports
	Size int32         // on the wire, bytes
}

// Largest is the longest frame of the traffic.
func (t *Traffic) Largest() vnet.Bytes {
	largest := 0
	for i := range t.Trace {
		largest = max(largest, int(t.Trace[i].Size))
	}
	for i := range t.Replay {
		largest = max(largest, int(t.Replay[i].Size))
	}
	if t.Trace == nil && t.Replay == nil {
		largest = t.Sizes.Max()
	}
	return vnet.Bytes(largest)
}

// Split carries what one virtual switch receives at one input over several
// outputs to a second switch, whose output puts it back into order (thesis
// 4.5.3). The virtual switch has all of that output, so nothing else of the
// second switch matters.
type Split struct {
	Of    int // index of the virtual switch
	Input int
	Rate  vnet.Rate // of the second switch's output
	Stall time.Duration
	Paths []Path
}

// Path is from an output of the first switch to the second.
type Path struct {
	Output int
	Weight int
	Delay  time.Duration
	Buffer vnet.Bytes // at the second switch
}
