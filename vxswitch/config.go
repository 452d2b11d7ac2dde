package vxswitch

import "sublet/vnet"

// Config is a physical switch, or a hosting switch made of real ports.
type Config struct {
	Ports       []PhysicalPort
	Crosspoint  vnet.Bytes // b_ij: memory of each crosspoint, shared by the virtual switches
	MaxFrame    vnet.Bytes // longest frame; 0: 1514. Longer ones are dropped (Full)
	MaxSwitches int        // most virtual switches at a time; 0: 64
	Sharing     Sharing
	Seed        uint64 // of managers that draw lots (RED)

	// Dropped is told of frames that had been queued and will not depart
	// (Late, Reclaimed), so that a driver can free what Ref stands for.
	// May be nil. It must not call the switch.
	Dropped func(ID, Packet, Cause)

	// Clock measures the schedulers of virtual switches, which are their
	// tenants' choice: what a call takes beyond PickBudget is charged to the
	// switch's turn in bytes the output could have sent. nil: not measured.
	Clock      func() Time
	PickBudget Time
}

// PhysicalPort is one port: an input and an output.
type PhysicalPort struct {
	Name      string
	In, Out   vnet.Rate     // c_i: what can be leased; the output sends at Out
	Scheduler SchedulerKind // chooses among virtual switches; entries are switch IDs
	Capped    bool          // also hold each virtual switch to its Port.Out (else it may use what others leave)
}

// Sharing says whether virtual crosspoint buffers lend room to one another.
type Sharing uint8

const (
	// Strict: a VXB has its own bytes and no others.
	Strict Sharing = iota
	// Flexible: a full VXB may use idle bytes that others at the same
	// crosspoint lend (Crosspoint.Lend). See sharing.go for the reclaim rule.
	Flexible
)

// Virtual is a virtual switch as it is leased.
type Virtual struct {
	Name        string
	Ports       []Port         // N^k; at most one on each physical port
	Reach       [][]bool       // F^k: Reach[in][out]; nil: every input reaches every output
	Buffer      Crosspoint     // B^k, Q^k: every crosspoint that Crosspoints does not name
	Crosspoints [][]Crosspoint // [in][out]; nil: Buffer everywhere
	From, Until Time           // lifetime; Until 0: Forever
	Lookup      Forwarder      // L^k, used by Arrive only; nil: a driver that calls Enqueue
	Claims      []Claim        // lookup 1, used by Arrive only: what belongs to this switch
}

// Port is a port of a virtual switch.
type Port struct {
	Physical  int           // index in Config.Ports
	In, Out   vnet.Rate     // c_i^k: capacities, booked against the physical port (condition 4.1)
	Police    bool          // drop what arrives above In (Policed); else In is booked only
	InBurst   vnet.Bytes    // what may arrive at once above In; 0: two MaxFrame
	OutBurst  vnet.Bytes    // what may leave at once above Out on a Capped output; 0: two MaxFrame
	Quantum   vnet.Bytes    // weight at the output's DRR in bytes a turn; 0: by Out, the smallest MaxFrame
	Priority  int           // at the output's strict priority, 0 highest, below MaxPriority
	Scheduler SchedulerKind // s_i^k: chooses among the VXBs of this output; entries are input ports
}

// MaxPriority is the number of priorities.
const MaxPriority = 64

// Crosspoint is a virtual crosspoint buffer (VXB).
type Crosspoint struct {
	Size     vnet.Bytes  // b_ij^k (condition 4.2)
	Lend     float64     // F_ij^k: share of Size lent to others while idle, 0 to 1; Flexible only
	Manager  ManagerKind // q_ij^k; nil: tail drop
	Quantum  vnet.Bytes  // weight at the switch's own DRR; 0: MaxFrame
	Priority int         // at the switch's own strict priority
}
