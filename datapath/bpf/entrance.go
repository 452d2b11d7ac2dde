package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
)

// Links is the part whose programs hand frames to switches and routers: the
// directory of its pins.
const Links = "vxlink"

// Pins of that part that switches and routers need (vxlink.bpf.c).
const (
	entrancesMap  = "entrances"
	onwardProgram = "vxlink_onward"
)

// SLOTS, DEVICES and DOORS of include/entrance.h and door.h.
const (
	Slots       = 16384
	FirstDevice = 0x100000
	maxDoors    = 256
)

// SlotOf is the slot of a port whose other end is a device of the fabric: by
// the ids of both namespaces in the port's own, since anybody may give a device
// such a number. 0: it has none.
func SlotOf(peer, peerNS, fabric int) uint32 {
	if fabric < 0 || peerNS != fabric || peer <= FirstDevice || peer >= FirstDevice+Slots {
		return 0
	}
	return uint32(peer - FirstDevice)
}

// Doors are the ports of one switch or router by which frames need not come
// in: its programs NAME_entrance and NAME_door with the maps of
// include/door.h.
type Doors struct {
	host           *kernel.Host
	entrance, make *ebpf.Program
	doors, onward  *ebpf.Map
}

// DoorsOf finds them in a loaded collection.
func DoorsOf(h *kernel.Host, c *ebpf.Collection, name string) *Doors {
	return &Doors{host: h, entrance: c.Programs[name+"_entrance"], make: c.Programs[name+"_door"], doors: c.Maps["doors"], onward: c.Maps["onward"]}
}

// door is struct door.
type door struct {
	Net, Dev               uint64
	Slot, Index, Port, Pad uint32
}

// row is what a slot's row has: of this slot, of another one, or of none.
func (d *Doors) row(slot uint32) (have door, err error) {
	if err = d.doors.Lookup(slot%maxDoors, &have); err != nil {
		err = fmt.Errorf("read a door: %w", err)
	}
	return have, err
}

// Open lets frames for a port be decided on where the fabric would hand them
// over, by the port's slot there. Of two ports with the same row the first one
// has it. Without links on the host, or without a slot, nothing is done, nor
// where it is so already.
func (d *Doors) Open(ns *os.File, index int, slot, port uint32) error {
	l, err := d.links()
	if l == nil || err != nil || slot == 0 {
		return err
	}
	defer l.close()
	if opened, err := d.opened(l, index, slot, port); opened || err != nil {
		return err
	}
	if err := d.onward.Put(uint32(0), l.onward); err != nil {
		return fmt.Errorf("lead frames onward: %w", err)
	}
	if err := kernel.In(ns, func() error { return d.Make(index, slot, port) }); err != nil {
		return err
	}
	if err := l.entrances.Put(slot, d.entrance); err != nil {
		return fmt.Errorf("open the entrance of port %d: %w", port, err)
	}
	return nil
}

// buffer is struct __sk_buff up to what a door is made of.
type buffer struct {
	_     [10]uint32
	Index uint32
	_     uint32
	Slot  uint32 // cb
	Port  uint32
	_     [3]uint32
}

// Make makes the door of a port of the calling thread's namespace: its program
// writes down what the port is to the kernel.
func (d *Doors) Make(index int, slot, port uint32) error {
	failed, err := d.make.Run(&ebpf.RunOptions{Data: make([]byte, 64), Context: buffer{Index: uint32(index), Slot: slot, Port: port}})
	if err == nil && failed != 0 {
		err = errors.New("there is no row for it")
	}
	if err != nil {
		return fmt.Errorf("make a door of device %d: %w", index, err)
	}
	return nil
}

// Enter gives a frame to the program of doors as a link would by a slot's
// port, for tests: its verdict, and the frame then.
func (d *Doors) Enter(slot uint32, frame []byte) (verdict uint32, out []byte, err error) {
	options := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: buffer{Slot: slot}}
	verdict, err = d.entrance.Run(&options)
	return verdict, options.DataOut, err
}

// Opened says whether Open has nothing to do.
func (d *Doors) Opened(index int, slot, port uint32) (bool, error) {
	l, err := d.links()
	if l == nil || err != nil || slot == 0 {
		return l == nil, err
	}
	defer l.close()
	return d.opened(l, index, slot, port)
}

func (d *Doors) opened(l *links, index int, slot, port uint32) (bool, error) {
	have, err := d.row(slot)
	if err != nil {
		return false, err
	}
	if have.Slot != 0 && have.Slot != slot {
		return true, nil // another's row
	}
	leads, err := holds(d.onward, 0, l.onward)
	if err != nil {
		return false, err
	}
	enters, err := holds(l.entrances, slot, d.entrance)
	return have.Slot == slot && have.Index == uint32(index) && have.Port == port && leads && enters, err
}

// holds says whether a program is in a row of an array of programs.
func holds(array *ebpf.Map, row uint32, program *ebpf.Program) (bool, error) {
	id, err := ID(program)
	if err != nil {
		return false, err
	}
	var have uint32
	if err := array.Lookup(row, &have); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, fmt.Errorf("read an array of programs: %w", err)
	}
	return have == uint32(id), nil
}

// Shut makes frames come in by the port of a slot again.
func (d *Doors) Shut(slot uint32) error {
	have, err := d.row(slot)
	if err != nil || slot == 0 || have.Slot != slot {
		return err
	}
	l, err := d.links()
	if err != nil {
		return err
	}
	if l != nil {
		defer l.close()
		ours, err := holds(l.entrances, slot, d.entrance)
		if err != nil {
			return err
		}
		if ours {
			if err := l.entrances.Delete(slot); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return fmt.Errorf("shut an entrance: %w", err)
			}
		}
	}
	return d.doors.Put(slot%maxDoors, door{})
}

// ShutAll shuts all but the doors of some slots.
func (d *Doors) ShutAll(but map[uint32]bool) error {
	keys, all := make([]uint32, maxDoors), make([]door, maxDoors)
	var cursor ebpf.MapBatchCursor
	n, err := d.doors.BatchLookup(&cursor, keys, all, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // that is the end
		return fmt.Errorf("read doors: %w", err)
	}
	for _, have := range all[:n] {
		if have.Slot != 0 && !but[have.Slot] {
			if err := d.Shut(have.Slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// links are the host's links' part of the way.
type links struct {
	entrances *ebpf.Map
	onward    *ebpf.Program
}

// links opens what the links' part has pinned; nil if there is nothing.
func (d *Doors) links() (*links, error) {
	dir := filepath.Join(d.host.Dir("bpf"), Links)
	entrances, err := ebpf.LoadPinnedMap(filepath.Join(dir, entrancesMap), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the entrances of links: %w", err)
	}
	onward, err := ebpf.LoadPinnedProgram(filepath.Join(dir, ProgramPin(onwardProgram)), nil)
	if err != nil {
		entrances.Close()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("open the program of links: %w", err)
	}
	return &links{entrances, onward}, nil
}

func (l *links) close() {
	l.entrances.Close()
	l.onward.Close()
}
