package plan

import (
	"cmp"
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
	// Serial is the lease's, where the node keeps what it writes: what a former lease
	// of this name left is of no use. Otherwise 0.
	Serial uint64 `json:"serial,omitempty"`
	// Carried says that what the node keeps is on its way from or to another host:
	// nothing runs in it.
	Carried bool `json:"carried,omitempty"`
	// Live says that it is a machine that runs while it is taken there.
	Live LiveMove `json:"live,omitempty"`
	vnet.Setup

	// Lost is why programs are started again, of one that was read back.
	Lost string `json:"-"`
}

// LiveMove is what becomes of a machine that goes to another host while it runs.
type LiveMove string

// A machine that leaves a host runs there, or has left it (Carried). One that comes to a
// host waits there for what it is (Carried).
const (
	LiveLeaves LiveMove = "leaves"
	LiveComes  LiveMove = "comes"
)

// setup is what a node of a lease is given.
func setup(l vnet.Lease, node vnet.VirtualNode) Setup {
	s := Setup{Lease: l.ID(), Node: node.Name, Setup: node.Setup}
	if s.Keeps() {
		s.Serial = l.Serial
	}
	return s
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
	if s.Machine() {
		text += " machine restart " + string(cmp.Or(s.Restart, vnet.RestartOnFailure))
	}
	if s.Disk != 0 {
		text += " disk " + s.Disk.String()
	}
	if s.Keeps() {
		text += fmt.Sprintf(" keep for serial %d", s.Serial)
	}
	if s.Carried {
		text += " carried"
	}
	if s.Live != "" {
		text += " " + string(s.Live)
	}
	if s.Image != "" {
		text += " image " + s.Image
	}
	for _, f := range s.Files {
		text += " file " + f.Path
		if f.Owner != "" {
			text += " of " + f.Owner
		}
	}
	for _, p := range s.Run {
		text += fmt.Sprintf(" run %q", p.Cmd)
		if p.Entrypoint {
			text += " by the entry point"
		}
		if p.Restart != "" {
			text += " restart " + string(p.Restart)
		}
		if p.User != "" {
			text += " as " + p.User
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
	if s.User != "" {
		text += " user " + s.User
	}
	return text
}
