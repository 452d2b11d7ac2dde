package vxlink

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// place is an end of a link's path, or a lease's trunk.
type place struct {
	lease vnet.LeaseID
	index int // of the link and path, see indexOf; trunkIndex
	end   int
}

// pathBits is where the number of a path is in an index, and turnBits where that of
// plan.End.Place is.
const pathBits, turnBits = 16, 24

// placeOf is the place of a link's end; that of a Join is its port's.
func placeOf(l plan.VxLink, i int) place {
	at := place{l.Lease, l.Index | l.Ends[i].Place<<turnBits, i}
	if l.Ends[i].Join == nil {
		at.index |= l.Path << pathBits
	}
	return at
}

// pathOf is the path of a link, whichever place its end is in: what ends that
// belong together have in common.
func (at place) pathOf() int { return at.index & (1<<turnBits - 1) }

// turned is the place with another number of plan.End.Place.
func (at place) turned(to int) place {
	at.index = at.pathOf() | to<<turnBits
	return at
}

// opposite finds the other end of an end's path: beside a move, of what stands by
// that which stands by, unless it joins a port.
func opposite(slots map[place]uint32, records map[uint32]vxlinkRecord, at place) (other place) {
	standby := records[slots[at]].Standby
	for turn := range plan.Places {
		far := place{at.lease, at.index, 1 - at.end}.turned(turn)
		slot, ok := slots[far]
		if ok && (slots[other] == 0 || records[slot].Standby == standby) {
			other = far
		}
	}
	return other
}

const trunkIndex = -1

func trunkOf(lease vnet.LeaseID) place { return place{lease: lease, index: trunkIndex} }

// handleOf is the handle of an HTB class of an uplink.
func handleOf(minor uint16) uint32 { return kernel.Handle(bpf.ClassMajor, minor) }

// number is that of a slot's device in its fabric.
func number(slot uint32) int { return bpf.FirstDevice + int(slot) }

// slot is the one of a place. A free one is taken by writing there whose it
// is, before anything is made, so that no crash loses it.
func (p *Part) slot(r *programs, at place) (uint32, error) {
	slot, ok, err := p.find(r, at)
	if ok || err != nil {
		return slot, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for slot := uint32(1); slot < bpf.Slots; slot++ {
		if _, taken := p.taken[slot]; taken {
			continue
		}
		if err := r.setRecord(slot, identify(at)); err != nil {
			return 0, fmt.Errorf("take slot %d: %w", slot, err)
		}
		p.places[at], p.taken[slot] = slot, true
		return slot, nil
	}
	return 0, fmt.Errorf("the host has %d link ends already", bpf.Slots-1)
}

// find is the slot of a place, if it has one.
func (p *Part) find(r *programs, at place) (uint32, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.places == nil {
		if err := p.readSlots(r); err != nil {
			return 0, false, err
		}
	}
	slot, ok := p.places[at]
	return slot, ok, nil
}

// began tells whether a slot was taken by this process.
func (p *Part) began(slot uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[slot]
}

// readSlots learns which are taken.
func (p *Part) readSlots(r *programs) error {
	all, err := r.all()
	if err != nil {
		return err
	}
	p.setSlots(all)
	return nil
}

func (p *Part) setSlots(all map[uint32]vxlinkRecord) {
	p.places, p.taken = make(map[place]uint32, len(all)), make(map[uint32]bool, len(all))
	for slot, record := range all {
		p.places[record.place()], p.taken[slot] = slot, false
	}
}

// forget gives a slot back, and all that is kept for it.
func (p *Part) forget(r *programs, slot uint32, was vxlinkRecord) error {
	err := errors.Join(r.clearTunnel(was.Vni, slot), r.unspread(slot), r.setControl(slot, nil), r.clearEntry(slot), r.pins.Remove(trunkPin(slot)), r.setEnd(slot, vxlinkEnd{}), r.zero(slot))
	if err == nil {
		err = r.dropRecord(slot)
	}
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("free slot %d: %w", slot, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.places, was.place())
	delete(p.taken, slot)
	return nil
}

// setRecord writes down whose a slot is.
func (r *programs) setRecord(slot uint32, record vxlinkRecord) error {
	defer r.changes.Add(1)
	return r.record.Put(slot, record)
}

func (r *programs) dropRecord(slot uint32) error {
	defer r.changes.Add(1)
	return r.record.Delete(slot)
}

// all reads every record.
func (r *programs) all() (map[uint32]vxlinkRecord, error) {
	all := make(map[uint32]vxlinkRecord)
	var slot uint32
	var record vxlinkRecord
	entries := r.record.Iterate()
	for entries.Next(&slot, &record) {
		all[slot] = record
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read the ends of links: %w", err)
	}
	return all, nil
}

// read is a slot's record; an empty one if it has none.
func (r *programs) read(slot uint32) (record vxlinkRecord, err error) {
	err = r.record.Lookup(slot, &record)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil
	}
	return record, err
}

// clearEntry makes frames come in by a slot's port.
func (r *programs) clearEntry(slot uint32) error {
	if err := r.chain.Delete(slot); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// setEnd says what becomes of frames that enter by a slot's end.
func (r *programs) setEnd(slot uint32, e vxlinkEnd) error { return r.ends.Put(slot, e) }

// end reads it back.
func (r *programs) end(slot uint32) (e vxlinkEnd, err error) {
	err = r.ends.Lookup(slot, &e)
	return e, err
}

// clearTunnel takes a VNI's slot away, if it is this one.
func (r *programs) clearTunnel(vni, slot uint32) error {
	if r.tunnelOf(vni) != slot {
		return nil
	}
	if err := r.tunnels.Delete(vni); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// tunnelOf is the slot of a VNI's tunnel; 0: it has none.
func (r *programs) tunnelOf(vni uint32) (slot uint32) {
	if r.tunnels.Lookup(vni, &slot) != nil {
		return 0
	}
	return slot
}

func identify(at place) vxlinkRecord {
	record := vxlinkRecord{Index: uint32(at.index), End: uint32(at.end)}
	copy(record.Tenant[:], at.lease.Tenant)
	copy(record.Network[:], at.lease.Network)
	return record
}

func (r vxlinkRecord) place() place {
	lease := vnet.LeaseID{Tenant: vnet.TenantID(text(r.Tenant[:])), Network: vnet.VNetID(text(r.Network[:]))}
	return place{lease, int(int32(r.Index)), int(r.End)}
}

func (r vxlinkRecord) link() string { return text(r.Link[:]) }

func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

// describe is the record of a link's end.
func describe(l plan.VxLink, i int) vxlinkRecord {
	r := identify(placeOf(l, i))
	copy(r.Link[:], l.Link)
	r.Units = uint16(l.Units)
	if l.Standby {
		r.Standby = 1
	}
	t := l.Ends[i].Tunnel
	if t == nil {
		return r
	}
	r.IsTunnel, r.List, r.Vni, r.Mtu = 1, uint8(t.List), uint32(t.VNI), uint32(t.MTU)
	r.Protocol = uint8(max(slices.Index(vnet.LeaseEncapsulations, t.Protocol), 0))
	r.Address = uint16(copy(r.Local[:], t.Local.AsSlice()))
	copy(r.Remote[:], t.Remote.AsSlice())
	r.Shaped = l.Ends[i].Rate.BytesPerSecond()
	r.Rate, r.Ceil = t.Class.Guaranteed.BytesPerSecond(), t.Class.Ceil.BytesPerSecond()
	if t.Class.BestEffort {
		r.BestEffort = 1
	}
	return r
}

// encapsulation is a tunnel's, as plans have it.
func (r vxlinkRecord) encapsulation() vnet.Encapsulation {
	if r.Protocol == 0 || int(r.Protocol) >= len(vnet.LeaseEncapsulations) {
		return ""
	}
	return vnet.LeaseEncapsulations[r.Protocol]
}

// outer is the bytes of its outer headers over IPv4.
func (r vxlinkRecord) outer() uint64 { return uint64(r.encapsulation().Headers()) }

// gre is what programs are told of it.
func (r vxlinkRecord) gre() uint8 { return uint8(boolean(r.encapsulation() == vnet.NVGRE)) }

// tunnel is what a record says of one.
func (r vxlinkRecord) tunnel(device string) *plan.Tunnel {
	local, _ := netip.AddrFromSlice(r.Local[:r.Address&31])
	remote, _ := netip.AddrFromSlice(r.Remote[:r.Address&31])
	return &plan.Tunnel{
		VNI: vnet.VNI(r.Vni), Protocol: r.encapsulation(), Interface: device, Local: local, Remote: remote, MTU: int(r.Mtu), List: int(r.List),
		Class: plan.Class{Guaranteed: vnet.Rate(r.Rate) * 8, Ceil: vnet.Rate(r.Ceil) * 8, BestEffort: r.BestEffort != 0},
	}
}
