package plan

import (
	"fmt"
	"net/netip"

	"sublet/vnet"
)

// NameTable is what the nodes of a lease can resolve: one hosts file per lease
// and host, shared by all of the lease's nodes there (a table per node would
// grow with the square of the network). Built by datapath/vnode.
type NameTable struct {
	Lease vnet.LeaseID `json:"lease"`
	Names []Name       `json:"names"` // by name
}

// Name is a line of the hosts file.
type Name struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
}

// Kind of the section.
func (NameTable) Kind() Kind { return KindNames }

// Key is the lease.
func (t NameTable) Key() string { return Fabric(t.Lease) }

// LeaseID is the lease that it is of.
func (t NameTable) LeaseID() vnet.LeaseID { return t.Lease }

// Meet is the table itself: there is no amount in it.
func (t NameTable) Meet(Item) Item { return t }

func (t NameTable) String() string {
	s := t.Key()
	for _, n := range t.Names {
		s += fmt.Sprintf(" %s=%s", n.Name, n.Address)
	}
	return s
}
