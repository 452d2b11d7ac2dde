package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
)

// Load loads a part's collection. Maps declared with LIBBPF_PIN_BY_NAME are
// the pinned ones, with what is in them; one whose layout this version changed
// is made anew, empty: fill it before the programs that use it are attached.
// Programs are the pinned ones where those are the same code on the same
// maps. renewed names the maps that were made by this call. An error leaves
// the pins that were there before, and no others: where there were none the
// part's directory is gone. Pins that a former version called otherwise get the
// names of this one first.
func (p *Pins) Load(spec *ebpf.CollectionSpec, renames ...Renamed) (c *ebpf.Collection, renewed []string, err error) {
	if _, err := os.Stat(processors); err != nil {
		return nil, nil, fmt.Errorf("the machine's processors: %s %w: %w", processors, kernel.ErrUnseen, err)
	}
	if err := p.putBack(); err != nil { // of a load that was killed
		return nil, nil, err
	}
	before, err := p.Names()
	if err != nil {
		return nil, nil, fmt.Errorf("list pinned programs: %w", err)
	}
	renamed, err := p.rename(renames)
	if err == nil {
		c, renewed, err = p.load(spec)
	}
	if err != nil {
		return nil, nil, errors.Join(err, p.putBack(), p.renameBack(renamed), p.restore(before))
	}
	for _, name := range renewed {
		if err := p.Remove(name + aside); err != nil {
			c.Close()
			return nil, nil, err
		}
	}
	return c, renewed, nil
}

// Renamed is a pin of a map or program that a former version called From.
type Renamed struct{ From, To string }

// rename gives pins their present names, and lists those that it renamed. Where
// both are pinned, the former name's goes.
func (p *Pins) rename(all []Renamed) (done []Renamed, err error) {
	names, err := p.Names()
	if err != nil {
		return nil, fmt.Errorf("list pinned programs: %w", err)
	}
	for _, r := range all {
		switch {
		case !slices.Contains(names, r.From):
			continue
		case slices.Contains(names, r.To):
			err = p.Remove(r.From)
		default:
			if err = os.Rename(p.Path(r.From), p.Path(r.To)); err == nil {
				done = append(done, r)
			}
		}
		if err != nil {
			return done, fmt.Errorf("rename the pin %s: %w", r.From, err)
		}
	}
	return done, nil
}

func (p *Pins) renameBack(done []Renamed) (err error) {
	for _, r := range done {
		err = errors.Join(err, os.Rename(p.Path(r.To), p.Path(r.From)))
	}
	return err
}

// processors is what the library reads once, for good, be it an error.
const processors = "/sys/devices/system/cpu/possible"

// aside ends the pin of a map of an older layout while its successor is made.
const aside = "_old"

// putBack undoes what outdated put aside.
func (p *Pins) putBack() error {
	names, err := p.Names()
	if err != nil {
		return fmt.Errorf("list pinned programs: %w", err)
	}
	for _, old := range names {
		name, is := strings.CutSuffix(old, aside)
		if !is {
			continue
		}
		if err := os.Rename(p.Path(old), p.Path(name)); err != nil {
			return fmt.Errorf("put back what was pinned: %w", err)
		}
	}
	return nil
}

// restore leaves the pins that were there before a load, and takes away a
// directory without pins.
func (p *Pins) restore(before []string) error {
	errs := []error{p.putBack()}
	now, err := p.Names()
	errs = append(errs, err)
	for _, name := range now {
		if !slices.Contains(before, name) {
			errs = append(errs, p.Remove(name))
		}
	}
	return errors.Join(append(errs, p.Close())...)
}

func (p *Pins) load(spec *ebpf.CollectionSpec) (*ebpf.Collection, []string, error) {
	renewed, err := p.outdated(spec)
	if err != nil {
		return nil, nil, err
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: p.dir}})
	if err != nil {
		return nil, nil, fmt.Errorf("load programs: %w", err)
	}
	for name, program := range c.Programs {
		if c.Programs[name], err = p.keep(name, program); err != nil {
			c.Close()
			return nil, nil, err
		}
	}
	p.remember(spec, c)
	return c, renewed, nil
}

// remember notes what is pinned, for Repin.
func (p *Pins) remember(spec *ebpf.CollectionSpec, c *ebpf.Collection) {
	for name, m := range c.Maps {
		if s := spec.Maps[name]; s != nil && s.Pinning == ebpf.PinByName {
			p.loaded[name] = object[*ebpf.Map]{m.Clone}
		}
	}
	for name, program := range c.Programs {
		p.loaded[ProgramPin(name)] = object[*ebpf.Program]{program.Clone}
	}
}

// object is pinned again by a copy: the library believes that the original is
// pinned still.
type object[T interface {
	Pin(string) error
	Close() error
}] struct{ clone func() (T, error) }

func (o object[T]) repin(path string) error {
	c, err := o.clone()
	if err != nil {
		return err
	}
	return errors.Join(c.Pin(path), c.Close())
}

// outdated lists the maps that have to be made, sorted, and puts those of
// another layout aside.
func (p *Pins) outdated(spec *ebpf.CollectionSpec) (names []string, err error) {
	for name, m := range spec.Maps {
		if m.Pinning != ebpf.PinByName {
			continue
		}
		usable, err := p.usable(name, m)
		if err != nil {
			return nil, err
		}
		if usable {
			continue
		}
		names = append(names, name)
		if err := os.Rename(p.Path(name), p.Path(name+aside)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("put %s aside: %w", name, err)
		}
	}
	slices.Sort(names)
	return names, nil
}

// usable says whether a map is pinned and has this version's layout. One that
// cannot be opened is an error: what is in it is not thrown away for that.
func (p *Pins) usable(name string, spec *ebpf.MapSpec) (bool, error) {
	old, err := ebpf.LoadPinnedMap(p.Path(name), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("map %s %w: %w", p.Path(name), kernel.ErrUnseen, err)
	}
	defer old.Close()
	return spec.Compatible(old) == nil, nil
}

// ProgramPin names the pin of a program.
func ProgramPin(program string) string { return "prog_" + program }

// keep returns the pinned program if it is the same as this one, else pins
// this one in its place.
func (p *Pins) keep(name string, program *ebpf.Program) (*ebpf.Program, error) {
	path := p.Path(ProgramPin(name))
	old, err := ebpf.LoadPinnedProgram(path, nil)
	if err == nil {
		if same(old, program) {
			program.Close()
			return old, nil
		}
		old.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return program, fmt.Errorf("program %s %w: %w", path, kernel.ErrUnseen, err)
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
