package vnet

import (
	"slices"
	"strings"
)

// NodeKind is what a node's processes run on.
type NodeKind string

// Kinds of nodes.
const (
	KindNamespace NodeKind = ""   // the kernel of their host
	KindVM        NodeKind = "vm" // a virtual machine with a kernel of its own
)

// Formats of the disks of machines, which are the endings of their images' names.
const (
	DiskQCOW2 = "qcow2"
	DiskRaw   = "raw"
)

// Bounds of a machine.
const (
	// MachineReserve is the part of a machine's memory that its emulation takes;
	// the rest is what its kernel sees.
	MachineReserve   = 128 * MiB
	MinMachineMemory = 256 * MiB
	MaxDisk          = 1024 * GiB
)

// NodeState is what becomes of what a node writes.
type NodeState string

// StateKeep says that it lasts as long as the lease: on a disk of its own, which
// outlives restarts of the node and of its host. "": it goes with the node.
const StateKeep NodeState = "keep"

// Sizes of what nodes other than machines keep.
const (
	KeptDisk    = GiB
	MinKeptDisk = 64 * MiB
)

// Keeps says that what the node writes lasts as long as the lease.
func (s Setup) Keeps() bool { return s.State == StateKeep }

// Machine says that the node is a virtual machine.
func (s Setup) Machine() bool { return s.Kind == KindVM }

// RootImage is the image whose files the node's processes see; "": the host's,
// or those of a machine's disk.
func (s Setup) RootImage() string {
	if s.Machine() {
		return ""
	}
	return s.Image
}

// DiskFormat is the format of a machine's image, as its name states it; "": it
// states none.
func (s Setup) DiskFormat() string {
	for _, format := range []string{DiskQCOW2, DiskRaw} {
		if strings.HasSuffix(s.Image, "."+format) {
			return format
		}
	}
	return ""
}

// checkKind checks what the node written at path is made of; among is "node" or
// "router".
func (n VirtualNode) checkKind(path, among string) error {
	if err := n.checkMove(path, among); err != nil {
		return err
	}
	switch {
	case n.Kind != KindNamespace && n.Kind != KindVM:
		return fieldf(path+".kind", "%q is not a kind of node: write vm for a virtual machine, or leave it out", string(n.Kind))
	case n.State != "" && n.State != StateKeep:
		return fieldf(path+".state", "%q is not known: write keep for files that last as long as the lease, or leave it out", string(n.State))
	case n.Machine() && among != "node":
		return fieldf(path+".kind", "a router cannot be a machine: write it under nodes")
	case n.Machine():
		return n.checkMachine(path)
	case n.Keeps() && n.Disk != 0 && (n.Disk < MinKeptDisk || n.Disk > MaxDisk):
		return fieldf(path+".disk", "%s is not between %s and %s: leave it out for %s", n.Disk, MinKeptDisk, MaxDisk, Bytes(KeptDisk))
	case n.Disk != 0 && !n.Keeps():
		return fieldf(path+".disk", "only machines and nodes with state: keep have a disk: state kind: vm or state: keep too, or leave it out")
	case n.Restart != "":
		return fieldf(path+".restart", "is for machines: state it with a program in run, or kind: vm too")
	}
	return nil
}

// checkMove checks how the node written at path may go to another host.
func (n VirtualNode) checkMove(path, among string) error {
	switch {
	case n.Movable == "":
		return nil
	case n.Movable != MoveCold && n.Movable != MoveLive:
		return fieldf(path+".movable", "%q is not known: write cold for a node that may be stopped and started anew on another host, live for a machine that runs meanwhile, or leave it out", string(n.Movable))
	case n.Movable == MoveLive && !(n.Machine() && n.Keeps()):
		return fieldf(path+".movable", "live is for machines that take their disk along: state kind: vm and state: keep too, or write cold")
	case among != "node":
		return fieldf(path+".movable", "is for nodes: routers go to other hosts without it")
	case n.Join != "" || n.Device != "":
		return fieldf(path+".movable", "is not for a node that joins or has a device: it is where that is")
	}
	return nil
}

func (n VirtualNode) checkMachine(path string) error {
	switch {
	case n.Image == "":
		return fieldf(path+".image", "is missing: state a disk for the machine, a file of its host that ends in .qcow2 or .raw")
	case n.DiskFormat() == "":
		return fieldf(path+".image", "%q does not end in .qcow2 or .raw: a machine has a disk, whose format the name of its image states", n.Image)
	case n.Memory < MinMachineMemory:
		return fieldf(path+".memory", "%s is less than the %s that a machine needs: raise it", n.Memory, MinMachineMemory)
	case n.Disk < 0, n.Disk > MaxDisk:
		return fieldf(path+".disk", "%s is not between 1 byte and %s: leave it out for the size of the image", n.Disk, MaxDisk)
	case n.Restart != "" && !slices.Contains(Restarts, n.Restart):
		return fieldf(path+".restart", "%q is no policy: choose no, on-failure or always", string(n.Restart))
	}
	if n.User != "" {
		return fieldf(path+".user", "is of nodes that are no machines: what run states begins as root of the machine, so use su or setpriv there")
	}
	for i, p := range n.Run {
		if p.Ready.stated() > 0 || p.Restart != "" || p.Entrypoint || p.User != "" {
			return fieldf(at(path+".run", i), "what runs in a machine is not seen from outside: leave out ready, restart, entrypoint and user")
		}
	}
	return nil
}
