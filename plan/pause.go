package plan

import "sublet/vnet"

// Pause says that a node stands still: none of its programs, commands or machine
// runs. Built by datapath/vnode, after what runs there.
type Pause struct {
	Lease vnet.LeaseID `json:"lease"`
	Node  string       `json:"node"`

	partly bool // something of it runs; no plan has that
}

// Partly is that of a node of which something runs all the same.
func (p Pause) Partly() Pause {
	p.partly = true
	return p
}

// Kind of the section.
func (Pause) Kind() Kind { return KindPause }

// Key is the node's namespace.
func (p Pause) Key() string { return Namespace(p.Lease, p.Node) }

// LeaseID is the lease that the node is of.
func (p Pause) LeaseID() vnet.LeaseID { return p.Lease }

// Meet is the item itself: there is no amount in it.
func (p Pause) Meet(Item) Item { return p }

func (p Pause) String() string {
	if p.partly {
		return p.Key() + " partly"
	}
	return p.Key()
}
