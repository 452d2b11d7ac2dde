package vnet

import (
	"slices"
	"strings"
)

// Crosspoint is what a switch of kind vxswitch has between two of its ports
// instead of its Buffer and Manager.
type Crosspoint struct {
	From    string `json:"from"` // link at the input
	To      string `json:"to"`   // link at the output
	Buffer  Bytes  `json:"buffer_bytes,omitempty"`
	Manager string `json:"manager,omitempty"`
}

// Defaults and bounds of switches of kind vxswitch.
const (
	DefaultBuffer  = 256 * KiB // at each crosspoint: four of the largest segments
	MinBuffer      = 2 * 1514  // two frames: an output sends the one while the other comes
	MaxBuffer      = 1 * GiB
	MaxEnginePorts = 64 // links at one such switch, over all stages
	MinQuantum     = 64 // bytes: the smallest frame
	MaxQuantum     = 1 * MiB
	MaxPriority    = 63
)

// Schedulers among the inputs of a switch of kind vxswitch (vxswitch/sched).
var Schedulers = []string{"drr", "rr", "fcfs", "lqf", "sp"}

// BufferOf is what a switch holds between two of its ports, by their links.
func (s VirtualSwitch) BufferOf(from, to string) Bytes {
	for _, c := range s.Crosspoints {
		if c.From == from && c.To == to && c.Buffer != 0 {
			return c.Buffer
		}
	}
	if s.Buffer != 0 {
		return s.Buffer
	}
	return DefaultBuffer
}

// memory is what a switch takes of its host's; of kind vxswitch what all
// its crosspoints take: condition 4.2 of F. Anhalt's thesis
// over all of them, because in a hosting switch made of software they share
// the host's memory. It is booked like the memory of nodes.
func (s VirtualSwitch) memory(links []VirtualLink) Bytes {
	switch s.Kind {
	case SwitchOpenFlow:
		return s.Memory()
	case SwitchEngine:
	default:
		return 0
	}
	ports := make(map[string]bool)
	for _, l := range links {
		if slices.Contains(l.Ends[:], s.Name) {
			ports[l.Name] = true
		}
	}
	pairs := Bytes(len(ports) * (len(ports) - 1))
	total := pairs * s.BufferOf("", "")
	for _, x := range s.Slices {
		total += pairs * x.BufferOf(s)
	}
	for _, c := range s.Crosspoints {
		if ports[c.From] && ports[c.To] {
			total += s.BufferOf(c.From, c.To) - s.BufferOf("", "")
		}
	}
	return total
}

// engine checks what only switches of kind vxswitch have.
func (s VirtualSwitch) engine(path string) error {
	if s.Kind != SwitchEngine {
		return s.noEngine(path)
	}
	if err := checkScheduler(path+".scheduler", s.Scheduler); err != nil {
		return err
	}
	if err := checkQueue(path, s.Buffer, s.Manager); err != nil {
		return err
	}
	for i, c := range s.Crosspoints {
		where := at(path+".crosspoints", i)
		if err := checkQueue(where, c.Buffer, c.Manager); err != nil {
			return err
		}
		if c.From == c.To {
			return fieldf(where+".to", "%q is the input itself: a frame never leaves by the port it came by", c.To)
		}
		if slices.ContainsFunc(s.Crosspoints[:i], func(o Crosspoint) bool { return o.From == c.From && o.To == c.To }) {
			return fieldf(where, "from %q to %q is there already: state each crosspoint once", c.From, c.To)
		}
	}
	return s.lookups(path)
}

// noEngine refuses what a switch of another kind would not keep.
func (s VirtualSwitch) noEngine(path string) error {
	const instead = "is for kind: vxswitch: state that kind, or leave it out"
	switch {
	case s.Scheduler != "":
		return fieldf(path+".scheduler", instead)
	case s.Buffer != 0:
		return fieldf(path+".buffer", instead)
	case s.Manager != "":
		return fieldf(path+".manager", instead)
	case len(s.Crosspoints) > 0:
		return fieldf(path+".crosspoints", instead)
	case s.Lend != 0:
		return fieldf(path+".lend", instead)
	case s.Lookup != "":
		return fieldf(path+".lookup", instead)
	case len(s.Table) > 0:
		return fieldf(path+".table", instead)
	case len(s.Slices) > 0:
		return fieldf(path+".slices", instead)
	}
	return nil
}

func checkQueue(path string, buffer Bytes, manager string) error {
	if buffer != 0 && (buffer < MinBuffer || buffer > MaxBuffer) {
		return fieldf(path+".buffer", "%s is not between %d bytes, two frames, and %s: state what each crosspoint holds", buffer, int(MinBuffer), Bytes(MaxBuffer))
	}
	if manager == "" {
		return nil
	}
	if _, err := ParseQueueManager(manager); err != nil {
		return fieldf(path+".manager", "%v", err)
	}
	return nil
}

func checkScheduler(path, name string) error {
	if name == "" || slices.Contains(Schedulers, name) {
		return nil
	}
	return fieldf(path, "no scheduler %q: there are %s", name, strings.Join(Schedulers, ", "))
}

// engine checks the options of a port by the kind of its switch.
func (p SwitchPort) engine(path string, kind SwitchKind) error {
	if kind != SwitchEngine {
		for _, o := range []struct {
			field  string
			stated bool
		}{{".in", p.In != 0}, {".out", p.Out != 0}, {".scheduler", p.Scheduler != ""}, {".quantum", p.Quantum != 0}, {".priority", p.Priority != 0}} {
			if o.stated {
				return fieldf(path+o.field, "is for switches of kind: vxswitch: state that kind, or leave it out")
			}
		}
		return nil
	}
	for _, o := range []struct {
		field string
		value int
	}{{".macs", p.MACs}, {".broadcast_pps", p.Broadcast}, {".unknown_pps", p.Unknown}} {
		if o.value != 0 {
			return fieldf(path+o.field, "is for switches of kind: kernel; of kind vxswitch in, out and buffers bound what a port takes: leave it out")
		}
	}
	if err := checkRate(path+".in", p.In, true); err != nil {
		return err
	}
	if err := checkRate(path+".out", p.Out, true); err != nil {
		return err
	}
	if p.Quantum != 0 && (p.Quantum < MinQuantum || p.Quantum > MaxQuantum) {
		return fieldf(path+".quantum", "%d bytes are not between %d and %d: leave it out for one frame", p.Quantum, int(MinQuantum), int(MaxQuantum))
	}
	if p.Priority < 0 || p.Priority > MaxPriority {
		return fieldf(path+".priority", "%d is not between 0, the first, and %d", p.Priority, MaxPriority)
	}
	return checkScheduler(path+".scheduler", p.Scheduler)
}
