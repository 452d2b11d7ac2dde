package report

import "time"

// Process is a process in a node.
type Process struct {
	PID     int       `json:"pid"`     // in the node
	Command string    `json:"command"` // arguments, or its name in brackets
	State   string    `json:"state"`   // a letter: ps(1), PROCESS STATE CODES
	CPU     int64     `json:"cpu_ms"`  // processor time used
	Memory  int64     `json:"memory_bytes"`
	Core    *int      `json:"core,omitempty"` // the only one that it may run on; nil: there are several
	Started time.Time `json:"started"`
}
