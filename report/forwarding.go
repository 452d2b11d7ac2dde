package report

import (
	"sublet/plan"
	"sublet/vnet"
)

// Forwarding is what the program of a router, or of a switch's port, tells of itself.
type Forwarding struct {
	Kind plan.Kind `json:"kind"`
	Of   string    `json:"of"` // key of the item
	// Fast says that frames, a router's of IPv4, do not meet the stack; Why
	// says what keeps a router, or one of IPv4 and IPv6, from that.
	Fast      bool              `json:"short"`
	Why       string            `json:"why,omitempty"`
	Packets   uint64            `json:"packets"` // sent on by the program
	Bytes     uint64            `json:"bytes"`
	Chained   uint64            `json:"entered"`             // of Packets, without a step into the namespace
	Floods    uint64            `json:"floods,omitempty"`    // of Packets, to several ports
	Answers   uint64            `json:"answers,omitempty"`   // address resolution answered
	Full      uint64            `json:"unlearned,omitempty"` // senders not learned, or flows not kept, for want of room
	Fallbacks map[string]uint64 `json:"passed,omitempty"`    // left to the stack, or to a switch's process, by reason
	Dropped   map[string]uint64 `json:"dropped,omitempty"`   // by reason
}

// Counters of routers and of ports of switches.
const (
	Forwarded  = "forwarded"
	Chained    = "chained" // forwarded without a step into the namespace
	Flooded    = "flooded"
	Answered   = "answered" // address resolution
	NotLearned = "not_learned"
	Fallback   = "fallback" // to the kernel's stack, or to a switch's process, by cause
)

// Sample is the form that all parts use; the lease is the item's.
func (f Forwarding) Sample(lease vnet.LeaseID) Sample {
	s := Sample{Kind: f.Kind, Key: f.Of, Lease: lease, State: SlowPath, Why: f.Why}
	if f.Fast {
		s.State = FastPath
	}
	s.Counters = make([]Counter, 0, 6+len(f.Fallbacks)+len(f.Dropped))
	s.Count(Forwarded, Packets, f.Packets)
	s.Count(Forwarded, Bytes, f.Bytes)
	s.Count(Chained, Packets, f.Chained)
	s.Count(Flooded, Packets, f.Floods)
	s.Count(Answered, Packets, f.Answers)
	s.Count(NotLearned, Stations, f.Full)
	s.CountBy(Fallback, f.Fallbacks)
	s.CountBy(Dropped, f.Dropped)
	return s
}

// Forwardings is what samples say of routers and of ports of switches.
func Forwardings(samples []Sample) []Forwarding {
	list := []Forwarding{}
	for _, s := range samples {
		if s.State != FastPath && s.State != SlowPath {
			continue
		}
		list = append(list, Forwarding{
			Kind: s.Kind, Of: s.Key, Fast: s.State == FastPath, Why: s.Why,
			Packets: s.Value(Forwarded, Packets), Bytes: s.Value(Forwarded, Bytes), Chained: s.Value(Chained, Packets),
			Floods: s.Value(Flooded, Packets), Answers: s.Value(Answered, Packets), Full: s.Value(NotLearned, Stations),
			Fallbacks: s.By(Fallback), Dropped: s.By(Dropped),
		})
	}
	return list
}
