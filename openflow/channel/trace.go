package channel

import (
	"encoding/binary"

	"sublet/openflow/of13"
)

// Trace is what would become of a packet, in order.
type Trace struct {
	Steps   []TraceStep `json:"steps"`
	Actions []string    `json:"actions"` // that make of the packet what leaves, as ovs-ofctl writes them; none: it is dropped
	Like    string      `json:"like"`    // match of all packets to which the same happens
	Cause   string      `json:"cause,omitempty"`
}

// TraceStep is one thing that becomes of it.
type TraceStep struct {
	Kind    string `json:"kind"`            // table, meter, group, bucket, output, blocked, controller, normal or refused
	Depth   int    `json:"depth,omitempty"` // groups within groups
	Number  uint32 `json:"number"`          // of the table, meter, group, bucket or port
	Queue   uint32 `json:"queue,omitempty"`
	Missed  bool   `json:"missed,omitempty"` // no entry of the table matches
	Match   string `json:"match,omitempty"`  // of the entry that does, with its priority
	Cookie  uint64 `json:"cookie,omitempty"`
	Actions string `json:"actions,omitempty"`
}

// AsksTrace is the port and the frame of a request for a Trace.
func AsksTrace(m of13.Message) (port uint32, frame []byte, ok bool) {
	data, ok := asks(m, KindTrace)
	if !ok || len(data) < 4 {
		return 0, nil, false
	}
	return binary.BigEndian.Uint32(data), data[4:], true
}

// Reply has it.
func (t Trace) Reply() (of13.Message, error) { return answer(KindTrace, t) }

// Trace asks the switch for one.
func (c *Client) Trace(port uint32, frame []byte) (t Trace, err error) {
	err = c.own(KindTrace, append(binary.BigEndian.AppendUint32(nil, port), frame...), &t)
	return t, err
}
