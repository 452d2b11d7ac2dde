package report

import "sublet/plan"

// Forwarding is what the program of a router, or of a switch's port, tells of itself.
type Forwarding struct {
	Kind plan.Kind `json:"kind"`
	Of   string    `json:"of"` // key of the item
	// Short says that frames, a router's of IPv4, do not meet the stack; Why
	// says what keeps a router, or one of IPv4 and IPv6, from that.
	Short   bool              `json:"short"`
	Why     string            `json:"why,omitempty"`
	Packets uint64            `json:"packets"` // sent on by the program
	Bytes   uint64            `json:"bytes"`
	Entered uint64            `json:"entered"`             // of Packets, without a step into the namespace
	Floods  uint64            `json:"floods,omitempty"`    // of Packets, to several ports
	Answers uint64            `json:"answers,omitempty"`   // address resolution answered
	Full    uint64            `json:"unlearned,omitempty"` // senders not learned for want of room
	Passed  map[string]uint64 `json:"passed,omitempty"`    // left to the stack, by reason
	Dropped map[string]uint64 `json:"dropped,omitempty"`   // by reason
}
