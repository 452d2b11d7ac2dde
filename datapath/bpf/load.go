package bpf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
)

// Load loads a part's collection. Maps declared with LIBBPF_PIN_BY_NAME are
// the pinned ones, with what is in them; one whose layout this version changed
// is made anew, empty: fill it before the programs that use it are attached.
// Programs are the pinned ones where those are the same code on the same
// maps. renewed names the maps that were made by this call.
func (p *Pins) Load(spec *ebpf.CollectionSpec) (c *ebpf.Collection, renewed []string, err error) {
	for name, m := range spec.Maps {
		if m.Pinning != ebpf.PinByName {
			continue
		}
		old, err := ebpf.LoadPinnedMap(p.Path(name), nil)
		if err == nil {
			err = m.Compatible(old)
			old.Close()
		}
		if err == nil {
			continue
		}
		renewed = append(renewed, name)
		if err := p.Remove(name); err != nil {
			return nil, nil, err
		}
	}
	slices.Sort(renewed)
	c, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: p.dir}})
	if err != nil {
		return nil, nil, fmt.Errorf("load programs: %w", err)
	}
	for name, program := range c.Programs {
		if c.Programs[name], err = p.keep(name, program); err != nil {
			c.Close()
			return nil, nil, err
		}
	}
	return c, renewed, nil
}

// ProgramPin names the pin of a program.
func ProgramPin(program string) string { return "prog_" + program }

// keep returns the pinned program if it is the same as this one, else pins
// this one in its place.
func (p *Pins) keep(name string, program *ebpf.Program) (*ebpf.Program, error) {
	path := p.Path(ProgramPin(name))
	if old, err := ebpf.LoadPinnedProgram(path, nil); err == nil {
		if same(old, program) {
			program.Close()
			return old, nil
		}
		old.Close()
	}
	if err := p.Remove(ProgramPin(name)); err != nil {
		return program, err
	}
	if err := program.Pin(path); err != nil {
		return program, fmt.Errorf("pin program %s: %w", name, err)
	}
	return program, nil
}

// same compares code (the kernel's tag) and maps. Maps that each load makes
// anew (read-only data) always differ: programs here keep theirs in pinned ones.
func same(a, b *ebpf.Program) bool {
	ia, errA := a.Info()
	ib, errB := b.Info()
	if errA != nil || errB != nil || ia.Tag != ib.Tag {
		return false
	}
	ma, okA := ia.MapIDs()
	mb, okB := ib.MapIDs()
	slices.Sort(ma)
	slices.Sort(mb)
	return okA && okB && slices.Equal(ma, mb)
}

// Unpin removes all pins of the part.
func (p *Pins) Unpin() error {
	names, err := p.Names()
	return errors.Join(err, p.Remove(names...))
}
