package access

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

//go:generate ../bpf/generate access access.bpf.c -type outlet -type inlet_key

// pinsPart names the part's directory of pins.
const pinsPart = "access"

// tables are the programs and maps of a host.
type tables struct {
	pins    *bpf.Pins
	in, out *ebpf.Program
	inlets  *ebpf.Map
	outlets *ebpf.Map
	all     *ebpf.Collection
}

// tables opens what is pinned, or loads it.
func (p *Part) tables() (*tables, error) {
	if p.loaded != nil {
		return p.loaded, p.loaded.pins.Repin()
	}
	pins, err := bpf.OpenPins(p.host, pinsPart)
	if err != nil {
		return nil, err
	}
	spec, err := loadAccess()
	if err != nil {
		return nil, err
	}
	c, _, err := pins.Load(spec)
	if err != nil {
		return nil, errors.Join(err, pins.Close())
	}
	p.loaded = &tables{
		pins: pins, in: c.Programs[accessProgAccessIn], out: c.Programs[accessProgAccessOut],
		inlets: c.Maps[accessMapInlets], outlets: c.Maps[accessMapOutlets], all: c,
	}
	return p.loaded, nil
}

// unload takes away all that is pinned.
func (p *Part) unload() error {
	p.Close()
	pins, err := bpf.OpenPins(p.host, pinsPart)
	if err != nil {
		return err
	}
	return errors.Join(pins.Unpin(), pins.Close())
}

// Names of the pins that hold programs on devices.
func inPin(index int) string  { return "in_" + strconv.Itoa(index) }
func outPin(index int) string { return "out_" + strconv.Itoa(index) }

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

// sweep takes away what is of devices that are gone; busy are the interfaces that
// some port still leads to.
func (t *tables) sweep(home *kernel.Conn) (busy map[int]bool, err error) {
	links, err := home.Links()
	if err != nil {
		return nil, err
	}
	there := make(map[uint32]bool, len(links))
	for _, l := range links {
		there[uint32(l.Index)] = true
	}
	outlets, err := read[uint32, accessOutlet](t.outlets)
	if err != nil {
		return nil, err
	}
	inlets, err := read[accessInletKey, uint32](t.inlets)
	if err != nil {
		return nil, err
	}
	busy = make(map[int]bool)
	for key, device := range inlets {
		if to, ok := outlets[device]; ok && there[device] && there[key.Index] && (accessInletKey{Index: to.Index, Vlan: uint32(to.Vlan)}) == key {
			busy[int(key.Index)] = true
		} else if err := missing(t.inlets.Delete(key)); err != nil {
			return nil, err
		}
	}
	for device := range outlets {
		if !there[device] {
			if err := missing(t.outlets.Delete(device)); err != nil {
				return nil, err
			}
		}
	}
	return busy, t.detach(func(in bool, index int) bool {
		return in && busy[index] || !in && there[uint32(index)]
	})
}

// detach takes programs off devices, but those to keep.
func (t *tables) detach(keep func(in bool, index int) bool) error {
	names, err := t.pins.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		direction, number, _ := strings.Cut(name, "_")
		index, err := strconv.Atoi(number)
		if err == nil && (direction == "in" || direction == "out") && !keep(direction == "in", index) {
			if err := t.pins.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// missing forgives that a row is gone already.
func missing(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}
