package nsh

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
)

// pinsPart names the part's directory of pins, and of its files.
const pinsPart = "nsh"

// tables are the programs and maps of a host.
type tables struct {
	pins *bpf.Pins
	all  *ebpf.Collection
}

// causes are the names of drops, by their index.
var causes = bpf.EnumNames(loadNsh, "drop", "DROP_")

// programOf a step is nsh_ and the step's name.
var stepNames = bpf.EnumNames(loadNsh, "step", "STEP_")

// tables opens what is pinned, or loads it.
func (p *Part) tables() (*tables, error) {
	if p.loaded != nil {
		return p.loaded, p.loaded.pins.Repin()
	}
	pins, err := bpf.OpenPins(p.host, pinsPart)
	if err != nil {
		return nil, err
	}
	spec, err := loadNsh()
	if err != nil {
		return nil, err
	}
	c, _, err := pins.Load(spec)
	if err != nil {
		return nil, errors.Join(err, pins.Close())
	}
	t := &tables{pins: pins, all: c}
	if err := t.join(); err != nil {
		c.Close()
		return nil, err
	}
	p.loaded = t
	return t, nil
}

// join tells each step its program.
func (t *tables) join() error {
	for step, name := range stepNames() {
		program := t.all.Programs["nsh_"+name]
		if program == nil {
			continue
		}
		if err := t.all.Maps["steps"].Put(uint32(step), program); err != nil {
			return fmt.Errorf("join the program of step %s: %w", name, err)
		}
	}
	return nil
}

func (t *tables) table(name string) *ebpf.Map { return t.all.Maps[name] }

// unload takes away all that is pinned.
func (p *Part) unload() error {
	p.Close()
	pins, err := bpf.OpenPins(p.host, pinsPart)
	if err != nil {
		return err
	}
	return errors.Join(pins.Unpin(), pins.Close())
}

// read lists a map.
func read[K comparable, V any](m *ebpf.Map) (map[K]V, error) {
	list := make(map[K]V)
	var key K
	var value V
	all := m.Iterate()
	for all.Next(&key, &value) {
		list[key] = value
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", m, err)
	}
	return list, nil
}

// drop deletes a row that may be gone.
func drop(m *ebpf.Map, key any) error {
	if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("delete a row of %s: %w", m, err)
	}
	return nil
}

// place is where a program is attached: its pin is named by both.
type place struct {
	program string // nsh_ and this
	index   int
}

// shaped is the place of the program behind a plane's queue. The device has a number in
// its fabric only: the plane's is taken.
func (r record) shaped() place { return place{"shaped", int(r.ID)} }

func (p place) pin() string { return p.program + "_" + strconv.Itoa(p.index) }

// placeOf reads a pin's name back; false: it is no program's place.
func placeOf(pin string) (place, bool) {
	program, number, ok := strings.Cut(pin, "_")
	index, err := strconv.Atoi(number)
	if !ok || err != nil {
		return place{}, false
	}
	switch program {
	case "classify", "return", "enter", "rx", "uplink", "shaped":
		return place{program, index}, true
	}
	return place{}, false
}
