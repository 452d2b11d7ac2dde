// Package hop lets a link, the switch or router behind its port, and the next
// link decide on a frame one after another where the frame is, by tail calls and
// without a step from namespace to namespace: chain.h has the rules that their
// programs keep, and here is how agents join them.
//
//	vxlink_port =chain[slot]=> vswitch_chained or vxrouter_chained =next[0]=> vxlink_next
//
// A switch or router describes each port to its program (port_refs, made by a
// program run in the port's namespace, since only the kernel knows its own
// addresses) and puts that program into the links' array chain, by the slot of
// the port's other end.
package hop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// What the part of links has pinned for others.
const (
	LinksPart    = "vxlink"      // the part
	ChainMap     = "chain"       // its array of programs, by slot
	LinksProgram = "vxlink_next" // its program for frames that leave a switch or router
)

// Suffixes of the two programs of a switch's or router's part.
const (
	chained = "_chained"
	portRef = "_port_ref"
)

// RenamedLinks are the pins of links that versions before 0.1 called otherwise.
var RenamedLinks = []bpf.Renamed{
	{From: "entrances", To: ChainMap}, {From: bpf.ProgramPin("vxlink_onward"), To: bpf.ProgramPin(LinksProgram)},
}

// RenamedPorts are those of a switch or router.
func RenamedPorts(prefix string) []bpf.Renamed {
	return []bpf.Renamed{
		{From: "doors", To: hopMapPortRefs}, {From: "onward", To: hopMapNext},
		{From: bpf.ProgramPin(prefix + "_entrance"), To: bpf.ProgramPin(prefix + chained)},
		{From: bpf.ProgramPin(prefix + "_door"), To: bpf.ProgramPin(prefix + portRef)},
	}
}

// SlotOf is the slot of a port whose other end is a device of the fabric: by
// the ids of both namespaces in the port's own, since anybody may give a device
// such a number. 0: it has none.
func SlotOf(peer, peerNS, fabric int) uint32 {
	if fabric < 0 || peerNS != fabric || peer <= bpf.FirstDevice || peer >= bpf.FirstDevice+bpf.Slots {
		return 0
	}
	return uint32(peer - bpf.FirstDevice)
}

// Ports are the ports of one switch or router by which frames need not come in.
type Ports struct {
	host              *kernel.Host
	chained, describe *ebpf.Program
	refs, next        *ebpf.Map
}

// PortsOf finds them in a loaded collection whose programs are called
// PREFIX_chained and PREFIX_port_ref.
func PortsOf(h *kernel.Host, c *ebpf.Collection, prefix string) *Ports {
	return &Ports{host: h, chained: c.Programs[prefix+chained], describe: c.Programs[prefix+portRef], refs: c.Maps[hopMapPortRefs], next: c.Maps[hopMapNext]}
}

// row is what a slot's row has: of this slot, of another one, or of none.
func (p *Ports) row(slot uint32) (have hopPortRef, err error) {
	if err = p.refs.Lookup(slot%p.refs.MaxEntries(), &have); err != nil {
		err = fmt.Errorf("read the reference of a port: %w", err)
	}
	return have, err
}

// Join lets frames for a port be decided on where the fabric would hand them
// over, by the port's slot there. Of two ports with the same row the first one
// has it. Without links on the host, or without a slot, nothing is done, nor
// where it is so already.
func (p *Ports) Join(ns *os.File, index int, slot, port uint32) error {
	l, err := p.links()
	if l == nil || err != nil || slot == 0 {
		return err
	}
	defer l.close()
	if joined, err := p.joined(l, index, slot, port); joined || err != nil {
		return err
	}
	if err := p.next.Put(uint32(0), l.next); err != nil {
		return fmt.Errorf("lead frames on to links: %w", err)
	}
	if err := kernel.In(ns, func() error { return p.Describe(index, slot, port) }); err != nil {
		return err
	}
	if err := l.chain.Put(slot, p.chained); err != nil {
		return fmt.Errorf("chain the program of port %d: %w", port, err)
	}
	return nil
}

// context is the beginning of struct __sk_buff (linux/bpf.h).
type context struct {
	_     [10]uint32
	Index uint32
	_     uint32
	CB    [5]uint32
}

// Describe makes the reference of a port of the calling thread's namespace: its
// program writes down what the port is to the kernel.
func (p *Ports) Describe(index int, slot, port uint32) error {
	ctx := context{Index: uint32(index)}
	ctx.CB[bpf.CBSlot], ctx.CB[bpf.CBPort] = slot, port
	failed, err := p.describe.Run(&ebpf.RunOptions{Data: make([]byte, 64), Context: ctx})
	if err == nil && failed != 0 {
		err = errors.New("there is no row for it")
	}
	if err != nil {
		return fmt.Errorf("make the reference of device %d: %w", index, err)
	}
	return nil
}

// Enter gives a frame to the chained program as a link would by a slot's port,
// for tests: its verdict, and the frame then.
func (p *Ports) Enter(slot uint32, frame []byte) (verdict uint32, out []byte, err error) {
	ctx := context{}
	ctx.CB[bpf.CBSlot] = slot
	options := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: ctx}
	verdict, err = p.chained.Run(&options)
	return verdict, options.DataOut, err
}

// Joined says whether Join has nothing to do.
func (p *Ports) Joined(index int, slot, port uint32) (bool, error) {
	l, err := p.links()
	if l == nil || err != nil || slot == 0 {
		return l == nil, err
	}
	defer l.close()
	return p.joined(l, index, slot, port)
}

func (p *Ports) joined(l *links, index int, slot, port uint32) (bool, error) {
	have, err := p.row(slot)
	if err != nil {
		return false, err
	}
	if have.Slot != 0 && have.Slot != slot {
		return true, nil // another's row
	}
	leaves, err := holds(p.next, 0, l.next)
	if err != nil {
		return false, err
	}
	enters, err := holds(l.chain, slot, p.chained)
	return have.Slot == slot && have.Index == uint32(index) && have.Port == port && leaves && enters, err
}

// holds says whether a program is in a row of an array of programs.
func holds(array *ebpf.Map, row uint32, program *ebpf.Program) (bool, error) {
	id, err := bpf.ID(program)
	if err != nil {
		return false, err
	}
	var have uint32
	if err := array.Lookup(row, &have); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, fmt.Errorf("read an array of programs: %w", err)
	}
	return have == uint32(id), nil
}

// Leave makes frames come in by the port of a slot again.
func (p *Ports) Leave(slot uint32) error {
	have, err := p.row(slot)
	if err != nil || slot == 0 || have.Slot != slot {
		return err
	}
	l, err := p.links()
	if err != nil {
		return err
	}
	if l != nil {
		defer l.close()
		ours, err := holds(l.chain, slot, p.chained)
		if err != nil {
			return err
		}
		if ours {
			if err := l.chain.Delete(slot); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return fmt.Errorf("take a program out of the chain: %w", err)
			}
		}
	}
	return p.refs.Put(slot%p.refs.MaxEntries(), hopPortRef{})
}

// LeaveAll does so for all ports but those of some slots.
func (p *Ports) LeaveAll(but map[uint32]bool) error {
	keys, all := make([]uint32, p.refs.MaxEntries()), make([]hopPortRef, p.refs.MaxEntries())
	var cursor ebpf.MapBatchCursor
	n, err := p.refs.BatchLookup(&cursor, keys, all, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // that is the end
		return fmt.Errorf("read the references of ports: %w", err)
	}
	for _, have := range all[:n] {
		if have.Slot != 0 && !but[have.Slot] {
			if err := p.Leave(have.Slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// links are what switches and routers need of the host's links.
type links struct {
	chain *ebpf.Map
	next  *ebpf.Program
}

// links opens what the links' part has pinned; nil if there is nothing.
func (p *Ports) links() (*links, error) {
	dir := filepath.Join(p.host.Dir("bpf"), LinksPart)
	chain, err := ebpf.LoadPinnedMap(filepath.Join(dir, ChainMap), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the chain of links: %w", err)
	}
	next, err := ebpf.LoadPinnedProgram(filepath.Join(dir, bpf.ProgramPin(LinksProgram)), nil)
	if err != nil {
		chain.Close()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("open the program of links: %w", err)
	}
	return &links{chain, next}, nil
}

func (l *links) close() {
	l.chain.Close()
	l.next.Close()
}
