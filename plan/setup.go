package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sublet/vnet"
)

// Setup is what a node is given to live on, once its network is there. Built by
// datapath/vnode.
type Setup struct {
	Lease vnet.LeaseID `json:"lease"`
	Node  string       `json:"node"`
	vnet.Setup
}

// Kind of the section.
func (Setup) Kind() Kind { return KindSetup }

// Key is the node's namespace.
func (s Setup) Key() string { return Namespace(s.Lease, s.Node) }

// LeaseID is the lease that the node is of.
func (s Setup) LeaseID() vnet.LeaseID { return s.Lease }

// Meet is the item itself: there is no amount in it.
func (s Setup) Meet(Item) Item { return s }

// String names variables and settings without their values, which may be secret.
func (s Setup) String() string {
	text := s.Key()
	if s.Image != "" {
		text += " image " + s.Image
	}
	for _, p := range s.Run {
		text += fmt.Sprintf(" run %q", p.Cmd)
		if p.Restart != "" {
			text += " restart " + string(p.Restart)
		}
	}
	for _, part := range []struct {
		name string
		of   map[string]string
	}{{"env", s.Env}, {"sysctls", s.Sysctls}} {
		if len(part.of) > 0 {
			text += " " + part.name + " " + strings.Join(slices.Sorted(maps.Keys(part.of)), ",")
		}
	}
	if s.Workdir != "" {
		text += " workdir " + s.Workdir
	}
	return text
}
