package channel

import (
	"encoding/binary"
	"encoding/json"

	"sublet/openflow/of13"
)

// KindTrace asks what would become of a frame: its port in 32 bits, and the frame.
const KindTrace uint32 = 2

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
	r, ok := m.(*of13.MultipartRequest)
	if !ok || r.Kind != of13.MultipartExperimenter || r.Experimenter != Experimenter || r.ExpType != KindTrace || len(r.Data) < 4 {
		return 0, nil, false
	}
	return binary.BigEndian.Uint32(r.Data), r.Data[4:], true
}

// Reply has it.
func (t Trace) Reply() (of13.Message, error) {
	text, err := json.Marshal(t)
	return &of13.MultipartReply{Kind: of13.MultipartExperimenter, Experimenter: Experimenter, ExpType: KindTrace, Data: text}, err
}

// Trace asks the switch for one.
func (c *Client) Trace(port uint32, frame []byte) (t Trace, err error) {
	parts, err := c.Ask(&of13.MultipartRequest{
		Kind: of13.MultipartExperimenter, Experimenter: Experimenter, ExpType: KindTrace, Data: append(binary.BigEndian.AppendUint32(nil, port), frame...),
	})
	if err != nil {
		return t, err
	}
	err = json.Unmarshal(parts[0].(*of13.MultipartReply).Data, &t)
	return t, err
}
