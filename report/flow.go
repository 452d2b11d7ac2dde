package report

// FlowTrace is what would become of a packet at an OpenFlow switch.
type FlowTrace struct {
	Steps   []FlowStep `json:"steps"`
	Actions []string   `json:"actions"`         // that make of the packet what leaves; none: it is dropped
	Like    string     `json:"like"`            // match of all packets to which the same happens
	Cause   string     `json:"cause,omitempty"` // why programs of the kernel leave them to the process
}

// FlowStep is one thing that becomes of it.
type FlowStep struct {
	Kind    string `json:"kind"`            // table, meter, group, bucket, output, blocked, controller, normal or refused
	Depth   int    `json:"depth,omitempty"` // groups within groups
	Number  uint32 `json:"number"`          // of the table, meter, group, bucket or port
	Queue   uint32 `json:"queue,omitempty"`
	Missed  bool   `json:"missed,omitempty"` // no entry of the table matches
	Match   string `json:"match,omitempty"`  // of the entry that does, with its priority
	Cookie  uint64 `json:"cookie,omitempty"`
	Actions string `json:"actions,omitempty"`
}

// Flow is an entry of an OpenFlow switch.
type Flow struct {
	Table    int    `json:"table"`
	Priority int    `json:"priority"`
	Cookie   uint64 `json:"cookie"`
	Age      int64  `json:"age_ns"`
	Packets  uint64 `json:"packets"`
	Bytes    uint64 `json:"bytes"`
	Idle     int    `json:"idle_timeout_s,omitempty"` // 0: none
	Hard     int    `json:"hard_timeout_s,omitempty"` // 0: none
	Flags    string `json:"flags,omitempty"`          // words with a space behind each
	Match    string `json:"match"`                    // with the priority, as ovs-ofctl writes it
	Actions  string `json:"actions"`                  // likewise
}
