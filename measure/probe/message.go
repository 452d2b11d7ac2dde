package probe

import (
	"net/netip"
	"time"

	"sublet/measure"
	"sublet/vnet"
)

// operation is what a coordinator asks of a probe. Every command is answered
// by one reply, in order, both as one line of JSON.
type operation string

const (
	opOpen   operation = "open"   // In: make receivers; answers their ports
	opDial   operation = "dial"   // Out: make senders
	opPing   operation = "ping"   // Out: round trips, for Window; In: how late their answers are
	opStream operation = "stream" // Out: connect TCP
	opTCP    operation = "tcp"    // In, Out: saturate for WarmUp+Window+Tail, with pings meanwhile
	opExpect operation = "expect" // In: count datagrams of Epoch from now on
	opLoad   operation = "blast"  // Out: send datagrams of Epoch at Rate for WarmUp+Window+Tail; In: how late their receivers are
	opTally  operation = "tally"  // In: wait for what is still on its way, answer the counts
)

// command is a line from the coordinator. A flow is one direction of a link.
type command struct {
	Op     operation     `json:"op"`
	Run    uint64        `json:"run,omitempty"` // authenticates packets; set by opOpen and opDial
	Epoch  uint32        `json:"epoch,omitempty"`
	WarmUp time.Duration `json:"warm_up_ns,omitempty"`
	Window time.Duration `json:"window_ns,omitempty"`
	Tail   time.Duration `json:"tail_ns,omitempty"`
	In     []flow        `json:"in,omitempty"`  // flows that end here
	Out    []flow        `json:"out,omitempty"` // flows that begin here
}

// length is how long a loading sender sends.
func (c command) length() time.Duration { return c.WarmUp + c.Window + c.Tail }

// flow is one direction of a link as one of its ends needs to know it.
type flow struct {
	ID        int           `json:"id"`
	Pair      int           `json:"pair"` // the opposite direction; -1: none
	Interface string        `json:"if,omitempty"`
	Local     netip.Addr    `json:"local,omitzero"`
	Peer      netip.Addr    `json:"peer,omitzero"`
	MTU       int           `json:"mtu,omitempty"`
	Ports     ports         `json:"ports,omitzero"` // of the receiver; for one to be made 0: any
	Streams   int           `json:"streams,omitempty"`
	Rate      vnet.Rate     `json:"rate_bps,omitempty"`
	Pace      float64       `json:"pace,omitempty"`        // part of Rate that TCP is paced to; 0: none
	Lag       time.Duration `json:"lag_ns,omitempty"`      // that a late UDP sender may make up for
	Interval  time.Duration `json:"interval_ns,omitempty"` // between pings
	Sent      uint64        `json:"sent,omitempty"`        // datagrams the other end says it sent
	Frames    uint8         `json:"frames,omitempty"`      // IP protocol of frames that are sent in place of datagrams; 0: none
	DSCP      uint8         `json:"dscp,omitempty"`        // of what is sent
	VLAN      uint16        `json:"vlan,omitempty"`        // tag of frames that are sent; 0: none
}

// ports a receiver chose.
type ports struct {
	UDP  uint16 `json:"udp,omitempty"`
	Ping uint16 `json:"ping,omitempty"`
	TCP  uint16 `json:"tcp,omitempty"`
}

// reply is a probe's answer to one command.
type reply struct {
	Err string   `json:"err,omitempty"`
	In  []figure `json:"in,omitempty"`
	Out []figure `json:"out,omitempty"`
}

// figure is what one flow gave.
type figure struct {
	ID      int                `json:"id"`
	Err     string             `json:"err,omitempty"`
	Taken   bool               `json:"taken,omitempty"` // the port that was stated is another program's
	Ports   ports              `json:"ports,omitzero"`
	RTT     *roundTrip         `json:"rtt,omitempty"`
	TCP     *measure.TCPWindow `json:"tcp,omitempty"`
	Acks    vnet.Rate          `json:"acks_bps,omitempty"` // frames of acknowledgements that a TCP sender got
	Sent    uint64             `json:"sent,omitempty"`
	Late    time.Duration      `json:"late_ns,omitempty"`   // that the probe waited for a processor, or the hypervisor had its
	Queued  time.Duration      `json:"queued_ns,omitempty"` // that the probe's threads were ready and did not run, for each ping
	Arrived *arrived           `json:"arrived,omitempty"`
}

// roundTrip sums up pings, in microseconds.
type roundTrip struct {
	Sent     int     `json:"sent"`
	Received int     `json:"received"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
}

// arrived sums up the datagrams of one epoch.
type arrived struct {
	Distinct   uint64        `json:"distinct"`   // sequence numbers seen
	Duplicates uint64        `json:"duplicates"` // seen again
	Overflow   uint64        `json:"overflow"`   // dropped at our own socket: we were too slow
	Datagrams  uint64        `json:"datagrams"`  // in the window
	Payload    uint64        `json:"payload"`    // bytes of them
	Span       time.Duration `json:"span_ns"`    // of the window, from arrival to arrival
}
