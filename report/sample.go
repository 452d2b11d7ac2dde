package report

import (
	"cmp"
	"slices"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// Sample is what is known of one thing at one instant: its state, and what was
// counted of it. All parts of a host use this form, and so do changes of state
// that only the server's book knows. Key and Labels together name the thing.
type Sample struct {
	Host     vnet.HostID       `json:"host,omitempty"` // none: the server says it
	Kind     plan.Kind         `json:"kind"`           // a section of the plan, or KindLease, KindHost, KindLink
	Key      string            `json:"key"`            // of the item, unique within its kind on one host
	Lease    vnet.LeaseID      `json:"lease,omitzero"` // zero: the host's own, for the operator only
	At       time.Time         `json:"at"`
	State    State             `json:"state,omitempty"`
	Why      string            `json:"why,omitempty"` // of the state, if it is not the best one
	Labels   map[string]string `json:"labels,omitempty"`
	Counters []Counter         `json:"counters,omitempty"`
}

// State of a thing, in the words of its kind.
type State string

// Kinds of samples that are of no section of a plan. The server's book knows
// the states of leases, of hosts and of links of the substrate.
const (
	KindLease plan.Kind = "lease"
	KindHost  plan.Kind = "host"
	KindLink  plan.Kind = "link"
	// KindProcessor is of what a host's processors do for a lease beside its processes.
	KindProcessor plan.Kind = "processor"
)

// States. Those of a lease are vnet.State's, those of hosts and links Up and
// Down, those of tunnels and paths are in their own tables.
const (
	Up         State = "up"
	Down       State = "down"
	Unprobed   State = "unprobed"   // of a path: nothing watches it
	Moved      State = "moved"      // of a flow: Labels say from which path to which
	FastPath   State = "fastpath"   // of a router or port: frames do not meet the kernel's stack
	SlowPath   State = "slowpath"   // they do
	Reached    State = "reached"    // of a lease's nodes: they answer each other
	Unreached  State = "unreached"  // some do not
	Unknown    State = "unknown"    // they have not been asked yet
	Unreadable State = "unreadable" // a part cannot read what it has, or a host's agent does not answer
	Readable   State = "readable"   // it answers again
)

// Unit of a counter.
type Unit string

// Units.
const (
	Packets     Unit = "packets"
	Bytes       Unit = "bytes"
	Flows       Unit = "flows"
	Stations    Unit = "stations"
	Nanoseconds Unit = "ns"
	MilliCores  Unit = "milli_cores"
	None        Unit = "1" // a number without a unit
)

// Counter is one figure of a sample. Figures of one name and unit add up over
// their causes.
type Counter struct {
	Name  string `json:"name"`
	Unit  Unit   `json:"unit"`
	Cause string `json:"cause,omitempty"` // of a drop, or of another fate that has several
	// Gauge says that the value may fall; others count since their item was built.
	Gauge bool   `json:"gauge,omitempty"`
	Value uint64 `json:"value"`
}

// Names of labels.
const (
	LabelLink      = "link"      // a virtual link's name
	LabelDirection = "direction" // of a virtual link: 0 from its first end to its second, 1 back
	LabelEnters    = "enters"    // true: frames enter the virtual link at this host
	LabelLeaves    = "leaves"    // true: they leave it at this host
)

// Count adds a counter, also of nothing.
func (s *Sample) Count(name string, unit Unit, value uint64) {
	s.Counters = append(s.Counters, Counter{Name: name, Unit: unit, Value: value})
}

// CountBy adds counters of packets by cause, without those of nothing.
func (s *Sample) CountBy(name string, causes map[string]uint64) {
	first := len(s.Counters)
	for cause, n := range causes {
		if n > 0 {
			s.Counters = append(s.Counters, Counter{Name: name, Unit: Packets, Cause: cause, Value: n})
		}
	}
	slices.SortFunc(s.Counters[first:], func(a, b Counter) int { return cmp.Compare(a.Cause, b.Cause) })
}

// Gauge adds a figure that may fall, unless it is 0.
func (s *Sample) Gauge(name string, unit Unit, value uint64) {
	if value > 0 {
		s.Counters = append(s.Counters, Counter{Name: name, Unit: unit, Gauge: true, Value: value})
	}
}

// Counters of processes that are kept on a core: its number and what they use.
const (
	OnCore = "core"
	InUse  = "in_use"
)

// OnCore adds where a process is kept and what it uses.
func (s *Sample) OnCore(core int, used vnet.CPU) {
	s.Counters = append(s.Counters,
		Counter{Name: OnCore, Unit: None, Gauge: true, Value: uint64(core)}, Counter{Name: InUse, Unit: MilliCores, Gauge: true, Value: uint64(used)})
}

// Core is where a process is kept; nil: on no core of its own.
func (s Sample) Core() *int {
	for _, c := range s.Counters {
		if c.Name == OnCore {
			core := int(c.Value)
			return &core
		}
	}
	return nil
}

// Value is that of a counter; 0: there is none.
func (s Sample) Value(name string, unit Unit) (sum uint64) {
	for _, c := range s.Counters {
		if c.Name == name && c.Unit == unit {
			sum += c.Value
		}
	}
	return sum
}

// By lists a counter's packets by cause; nil: there are none.
func (s Sample) By(name string) map[string]uint64 {
	var causes map[string]uint64
	for _, c := range s.Counters {
		if c.Name != name || c.Cause == "" {
			continue
		}
		if causes == nil {
			causes = make(map[string]uint64)
		}
		causes[c.Cause] += c.Value
	}
	return causes
}

// Size is about what a sample takes of memory, in bytes.
func (s Sample) Size() int {
	size := fixedSize + len(s.Key) + len(s.Why) + counterSize*len(s.Counters)
	for name, value := range s.Labels {
		size += labelSize + len(name) + len(value)
	}
	return size
}

// Parts of Size: the struct with its lease's names, a counter, and a label with
// its share of the map.
const (
	fixedSize   = 320
	counterSize = 72
	labelSize   = 80
)
