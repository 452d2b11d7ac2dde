// Package vnode builds virtual nodes: a network namespace owned by a user
// namespace in which root is the tenant, a control group with the node's
// limits, and the hosts file of its network. Command runs programs inside.
//
//	$RUN/netns/HOST/TENANT.NETWORK.NODE   the node's network namespace
//	$RUN/userns/HOST/UID                  the user namespace that owns it
//	$RUN/hosts/HOST/TENANT.NETWORK        the hosts file
//	$RUN/setup/HOST/TENANT.NETWORK.NODE   what it was given; .state: of its programs
//	$RUN/still/HOST/TENANT.NETWORK.NODE   it stands still
//	$RUN/tmp/HOST/TENANT.NETWORK.NODE     what it writes
//	$RUN/kept/HOST/TENANT.NETWORK.NODE    what it writes and keeps
//	CGROUP/TENANT.NETWORK.NODE            (kernel.Config.Cgroup); inside, groups of
//	                                      the pause process, of sessions, of the rest
package vnode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"sublet/datapath/image"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Part does the sections names, vnode, setup and pause. Do may be called concurrently for
// different items; Observe waits until no Do is running.
type Part struct {
	host     *kernel.Host
	owners   *owners
	busy     sync.RWMutex // Do: read, Observe and tidying up: write
	making   sync.Mutex   // of scratch files
	locks    keyed        // of pause processes
	shells   keyed        // of consoles
	running  sync.Map     // groups of this program's sessions
	awaited  sync.Map     // keys of nodes that wait for an image; true: it is being fetched, and none has come since
	expected sync.Map     // keys of nodes whose last step waited for an image, or was waited for
	fetched  chan struct{}
	moving   sync.Map // keys of nodes whose kept files are being saved or brought
	brought  sync.Map // names of directories of kept files that are being filled
	digests  digests
	program  string // on disk, shown in nodes

	standing sync.Map // keys of nodes that are being saved, with *standing

	// Images are what nodes may run; nil: none. Its Config.Changed is Fetched.
	Images *image.Store

	// Kept is the directory of what nodes keep, root's only; "": none do.
	Kept string

	// Process reads a process by its number outside (datapath/vnode/process).
	Process func(pid int) (report.Process, error)
	// Changed is called when Problems may be others. Set it before Loop.
	Changed func()
}

// New makes the part for one host.
func New(host *kernel.Host) *Part {
	program, _ := kernel.OnDisk() // without one, nodes have none
	p := &Part{host: host, owners: newOwners(host), program: program, fetched: make(chan struct{}, 1), Changed: func() {}}
	p.owners.kept = p.keptRanges
	return p
}

// Close ends the helper processes; what they made stays.
func (p *Part) Close() { p.owners.close() }

// Kinds are names, vnode, setup and pause.
func (p *Part) Kinds() []plan.Kind {
	return []plan.Kind{plan.KindNames, plan.KindVNode, plan.KindSetup, plan.KindPause}
}

// Do makes one change.
func (p *Part) Do(_ context.Context, step plan.Step) error {
	switch item := step.Item.(type) {
	case plan.NameTable:
		if step.Op == plan.Delete {
			return p.deleteNames(item)
		}
		return p.setNames(item)
	case plan.VNode:
		if step.Op == plan.Delete {
			return p.delete(item)
		}
		return p.set(item)
	case plan.Pause:
		if step.Op == plan.Delete {
			return p.thaw(item)
		}
		return p.freeze(item)
	case plan.Setup:
		if step.Op == plan.Delete {
			return p.take(item)
		}
		return p.give(item)
	}
	return fmt.Errorf("vnode does not do %s", step.Item.Kind())
}

// set brings a node to what it shall be. Its namespace is made anew only if it
// is broken or belongs to another user; links and routes follow then.
func (p *Part) set(n plan.VNode) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	if err := p.setNamespace(n); err != nil {
		return fmt.Errorf("node %s: %w", n.Key(), err)
	}
	if err := p.setGroup(n); err != nil {
		return fmt.Errorf("node %s: %w", n.Key(), err)
	}
	return nil
}

func (p *Part) setNamespace(n plan.VNode) error {
	owner, err := p.owner(n.Key())
	if err == nil && owner == n.Owner {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err == nil { // another user's processes must not stay in it
		if err := p.host.Group(n.Key()).Remove(); err != nil {
			return err
		}
	}
	ns, err := p.owners.namespace(n.Owner)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := kernel.In(ns, settle); err != nil {
		return err
	}
	return kernel.BindConcealed(ns, p.host.Path(n.Key()))
}

// allGroups are the groups of all users of a node, as the host counts them: file
// capabilities, by which ping otherwise works for all users, count for nothing there.
const allGroups = "0 2147483647"

// settle prepares the namespace that the calling thread is in. Reverse path
// filters would drop what arrives by the second of two parallel links.
func settle() error {
	for _, s := range [][2]string{
		{"ipv4/ip_forward", "0"}, {"ipv6/conf/all/forwarding", "0"},
		{"ipv4/conf/all/rp_filter", "0"}, {"ipv4/conf/default/rp_filter", "0"},
		{"ipv4/ping_group_range", allGroups},
	} {
		if err := kernel.Sysctl(s[0], s[1]); err != nil {
			return err
		}
	}
	c, err := kernel.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	const loopback = 1
	if err := c.Do(kernel.UpLink(loopback)); err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	return nil
}

func (p *Part) setGroup(n plan.VNode) error {
	g := p.host.Group(n.Key())
	if err := g.Make(); err != nil {
		return err
	}
	if err := g.SetProcesses(cmp.Or(n.Processes, vnet.NodeProcesses)); err != nil {
		return err
	}
	if err := p.setProcessors(g, n); err != nil {
		return err
	}
	return g.SetMemory(int64(n.Memory))
}

// delete kills what runs in a node and removes all of it.
func (p *Part) delete(n plan.VNode) error {
	p.busy.RLock()
	err := p.host.Group(n.Key()).Remove()
	if err == nil {
		err = gone(os.Remove(p.stillPath(n.Key())))
	}
	if err == nil {
		err = errors.Join(gone(os.Remove(p.consolePath(n.Key()))), gone(os.Remove(p.doorPath(n.Key()))), gone(os.Remove(p.livePath(n.Key()))), gone(os.Remove(p.mostPath(n.Key()))))
	}
	if err == nil {
		err = kernel.Unbind(p.host.Path(n.Key()))
	}
	if err == nil {
		err = errors.Join(kernel.Unbind(p.scratchPath(n.Key())), kernel.Unbind(p.keptPath(n.Key())))
	}
	p.busy.RUnlock()
	if err != nil {
		return fmt.Errorf("delete node %s: %w", n.Key(), err)
	}
	return p.tidy()
}

// gone passes over what was not there.
func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// tidy removes what nodes share once there are none.
func (p *Part) tidy() error {
	dir, err := os.Open(p.host.Dir("netns"))
	if err == nil {
		_, err = dir.Readdirnames(1)
		dir.Close()
	}
	if !errors.Is(err, io.EOF) && !os.IsNotExist(err) {
		return err
	}
	p.busy.Lock()
	defer p.busy.Unlock()
	p.host.Group("x").RemoveParents()
	return p.owners.sweep(nil)
}

// broken stands for a node of which only parts are left: no plan has it.
func broken(id vnet.LeaseID, node string) plan.VNode {
	return plan.VNode{Lease: id, Node: node, Owner: kernel.NoOwner}
}
