package plan

import (
	"fmt"

	"sublet/vnet"
)

// Op is what a Step does to its item.
type Op string

// Operations. Set changes an existing item in place, Add makes a missing one.
const (
	Delete Op = "delete"
	Set    Op = "set"
	Add    Op = "add"
)

// Step is one change of one item; doing it twice is doing it once.
type Step struct {
	Op   Op
	Item Item // what shall be; for Delete, what is
	Was  Item // for Set, what is; else nil
}

func (s Step) String() string {
	return fmt.Sprintf("%s %s %s", s.Op, s.Item.Kind(), s.Item)
}

// Report is what an agent says of its host.
type Report struct {
	Host     vnet.HostID       `json:"host"`
	Revision uint64            `json:"revision"`         // the plan last applied completely
	Tried    uint64            `json:"tried,omitempty"`  // the plan last gone through, with Errors if more than Revision
	Agent    string            `json:"agent"`            // where exec and capture are served
	Errors   map[string]string `json:"errors,omitempty"` // by "kind key" of the item, what could not be done
	Drift    uint64            `json:"drift,omitempty"`  // repairs since start
	Features map[string]string `json:"features,omitempty"`
	Dark     []string          `json:"dark,omitempty"` // interfaces of the host without a carrier, sorted
}
