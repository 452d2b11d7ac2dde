package vxlink

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/hop"
	"sublet/datapath/kernel"
)

//go:generate ../bpf/generate vxlink vxlink.bpf.c -type end -type action -type spread -type drop -type counts -type record -type controllers

// programs are the part's programs and maps on one host.
type programs struct {
	pins                            *bpf.Pins
	port, trunk, closed             *ebpf.Program
	portID, trunkID, closedID       ebpf.ProgramID
	ends, counters, tunnels, record *ebpf.Map
	spreads, divisions, chain       *ebpf.Map
	controls                        *ebpf.Map
	next                            *ebpf.Program // which switches and routers call
	processors                      int           // that count
	changes                         atomic.Uint64 // of records
}

// programs opens what is pinned, or loads it.
func (p *Part) programs() (*programs, error) {
	p.loading.Lock()
	defer p.loading.Unlock()
	if p.loaded != nil {
		return p.loaded, nil
	}
	pins, err := bpf.OpenPins(p.host, hop.LinksPart)
	if err != nil {
		return nil, err
	}
	spec, err := loadVxlink()
	if err != nil {
		return nil, err
	}
	c, _, err := pins.Load(spec, hop.RenamedLinks...)
	if err != nil {
		return nil, err
	}
	r := &programs{
		pins: pins, port: c.Programs[vxlinkProgVxlinkPort], trunk: c.Programs[vxlinkProgVxlinkTrunk], closed: c.Programs[vxlinkProgVxlinkClosed],
		ends: c.Maps[vxlinkMapEnds], counters: c.Maps[vxlinkMapCounters], tunnels: c.Maps[vxlinkMapTunnels], record: c.Maps[vxlinkMapRecords],
		spreads: c.Maps[vxlinkMapSpreads], divisions: c.Maps[vxlinkMapDivisions], controls: c.Maps[vxlinkMapControls], chain: c.Maps[hop.ChainMap], next: c.Programs[hop.LinksProgram],
	}
	if err = r.number(); err == nil {
		r.processors, err = ebpf.PossibleCPU()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	p.loaded = r
	return r, nil
}

// number learns the kernel's numbers of the programs.
func (r *programs) number() (err error) {
	for program, id := range map[*ebpf.Program]*ebpf.ProgramID{r.port: &r.portID, r.trunk: &r.trunkID, r.closed: &r.closedID} {
		if *id, err = bpf.ID(program); err != nil {
			return err
		}
	}
	return nil
}

// unload removes everything pinned if nothing is left that uses it.
func (p *Part) unload() error {
	p.loading.Lock()
	defer p.loading.Unlock()
	p.mu.Lock()
	used := len(p.places) > 0
	p.mu.Unlock()
	if used {
		return nil
	}
	pins, err := bpf.OpenPins(p.host, hop.LinksPart)
	if err != nil {
		return err
	}
	if err := pins.Unpin(); err != nil {
		return err
	}
	if r := p.loaded; r != nil {
		for _, f := range []interface{ Close() error }{r.port, r.trunk, r.closed, r.ends, r.counters, r.tunnels, r.record, r.spreads, r.divisions, r.controls, r.chain, r.next} {
			_ = f.Close()
		}
		p.loaded = nil
	}
	p.mu.Lock()
	p.places, p.taken = nil, nil
	p.mu.Unlock()
	return pins.Close()
}

// TCX (Linux 6.6) attaches and detaches with the machine's network lock held
// for a grace period, 12 ms each time here: fine for a trunk, too long for a
// thousand ports. Those have a filter (clsact), which is replaced without a
// gap as well.

// attach puts the trunk's program on its end in the fabric, alone.
func (r *programs) attach(name string, ns *os.File, index int) error {
	h := bpf.Hook{Namespace: ns, Index: index, Attach: ebpf.AttachTCXIngress}
	if err := r.pins.Attach(name, h, r.trunk); err != nil {
		return err
	}
	if err := bpf.Alone(h, r.trunk); err != nil {
		return fmt.Errorf("remove others' programs: %w", err)
	}
	return nil
}

// admit puts a program on a device's ingress, as the only filter, unless it is
// there. Another one of ours is replaced without a gap.
func admit(c *kernel.Conn, index int, program *ebpf.Program) error {
	this, any, err := admitted(c, index, program)
	if err != nil || this {
		return err
	}
	if err := replace(c, index, program); err != nil || !any {
		return err
	}
	this, _, err = admitted(c, index, program)
	if err != nil || this {
		return err
	}
	// A stranger's filter is there as well: the hook is made anew.
	if err := c.DeleteQdisc(index, kernel.TCClsact); err != nil {
		return fmt.Errorf("clear filters: %w", err)
	}
	return replace(c, index, program)
}

func admitted(c *kernel.Conn, index int, program *ebpf.Program) (this, any bool, err error) {
	id, err := bpf.ID(program)
	if err != nil {
		return false, false, err
	}
	have, count, err := c.FilterProgram(index)
	return count == 1 && have == uint32(id), count > 0, err
}

func replace(c *kernel.Conn, index int, program *ebpf.Program) error {
	if err := c.SetClsact(index); err != nil {
		return fmt.Errorf("make the filter hook: %w", err)
	}
	if err := c.Do(kernel.SetFilter(index, program.FD(), "sublet")); err != nil {
		return fmt.Errorf("attach the program: %w", err)
	}
	return nil
}

// trunkPin names the link that holds a trunk's program.
func trunkPin(slot uint32) string { return fmt.Sprintf("trunk_%d", slot) }

// running lists the programs on the ingress of devices of a namespace.
func running(ns *os.File, devices []kernel.Link) (map[int][]ebpf.ProgramID, error) {
	found := make(map[int][]ebpf.ProgramID, len(devices))
	err := kernel.In(ns, func() error {
		for _, d := range devices {
			ids, err := bpf.Running(d.Index, ebpf.AttachTCXIngress)
			if kernel.NotFound(err) {
				continue // the device went meanwhile
			}
			if err != nil {
				return err
			}
			found[d.Index] = ids
		}
		return nil
	})
	return found, err
}
