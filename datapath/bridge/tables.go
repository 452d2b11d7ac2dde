package bridge

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/hop"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

//go:generate ../bpf/generate vswitch vswitch.bpf.c -type port -type state -type entry -type station -type station6 -type count -type setting -type drop

// maxPorts is how many ports a switch may have: as many as a row of its matrix
// has bits.
const maxPorts = 64 * len(vswitchPort{}.To)

// tables are the maps and the program of one switch. Keys and values go
// through the kernel in the types that the generator read from the program.
type tables struct {
	pins    *bpf.Pins
	program *ebpf.Program
	joined  *hop.Ports
	vswitchMaps
	all *ebpf.Collection
}

// openTables opens the pinned ones, or makes them.
func openTables(h *kernel.Host, pins *bpf.Pins) (*tables, error) {
	spec, err := loadVswitch()
	if err != nil {
		return nil, err
	}
	c, _, err := pins.Load(spec, renamed()...)
	if err != nil {
		return nil, err
	}
	t := &tables{pins: pins, program: c.Programs[vswitchProgVswitch], joined: hop.PortsOf(h, c, vswitchProgVswitch), all: c}
	t.vswitchMaps = vswitchMaps{
		Counters: c.Maps[vswitchMapCounters], Guesses: c.Maps[vswitchMapGuesses], Fdb: c.Maps[vswitchMapFdb], Numbers: c.Maps[vswitchMapNumbers], FdbCache: c.Maps[vswitchMapFdbCache],
		Ports: c.Maps[vswitchMapPorts], Settings: c.Maps[vswitchMapSettings], States: c.Maps[vswitchMapStates],
		Stations: c.Maps[vswitchMapStations], Stations6: c.Maps[vswitchMapStations6],
	}
	return t, nil
}

// renamed are the pins that versions before 0.1 called otherwise.
func renamed() []bpf.Renamed {
	return append(hop.RenamedPorts(vswitchProgVswitch), bpf.Renamed{From: "recents", To: vswitchMapFdbCache})
}

func (t *tables) close() { t.all.Close() }

func (t *tables) setting() (s vswitchSetting, err error) {
	err = t.Settings.Lookup(uint32(0), &s)
	return s, err
}

// moved makes the program look addresses up again.
func (t *tables) moved() error {
	return t.change(func(s *vswitchSetting) { s.Changed = now() })
}

// now is the program's clock, ns.
func now() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // never fails with this clock
	return uint64(ts.Nano())
}

// change writes the settings if they differ.
func (t *tables) change(f func(*vswitchSetting)) error {
	have, err := t.setting()
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	want := have
	f(&want)
	if want == have {
		return nil
	}
	want.Changed = now() // later than what the program may have written meanwhile
	return t.Settings.Put(uint32(0), want)
}

func (t *tables) setAgeing(d time.Duration) error {
	return t.change(func(s *vswitchSetting) { s.Ageing = uint64(d) })
}

// hardware is an address as the program keys it: its bytes as they lie in
// memory, the first lowest.
func hardware(h plan.Hardware) uint64 {
	return binary.LittleEndian.Uint64(append(h[:], 0, 0))
}

func hardwareOf(key uint64) (h plan.Hardware) {
	copy(h[:], binary.LittleEndian.AppendUint64(nil, key))
	return h
}

// planned are the stations' entries, by Ethernet address, and what is answered
// for them, by IP address. The first of a node's interfaces answers. Of
// IPv6, what follows from an Ethernet address is answered; solicitations for
// other addresses are flooded.
func planned(stations []plan.Station) (map[uint64]vswitchEntry, map[[4]byte]vswitchStation, error) {
	entries, answers := make(map[uint64]vswitchEntry), make(map[[4]byte]vswitchStation)
	for _, s := range stations {
		port, err := number(s.Interface)
		if err != nil {
			return nil, nil, err
		}
		ip := s.Address.As4()
		entries[hardware(s.Hardware)] = vswitchEntry{Port: uint32(port), Planned: 1, Address: ip}
		if _, taken := answers[ip]; !taken {
			answers[ip] = vswitchStation{Planned: s.Hardware, Now: s.Hardware, Port: uint16(port)}
		}
	}
	return entries, answers, nil
}

// setStations brings both tables to what is planned; what was learned stays,
// and so does what stations said of themselves.
func (t *tables) setStations(stations []plan.Station) error {
	entries, answers, err := planned(stations)
	if err != nil {
		return err
	}
	have, err := t.entries()
	if err != nil {
		return err
	}
	changed := false
	for key, e := range have {
		if _, stays := entries[key]; e.Planned != 0 && !stays {
			changed = true
			if err := missing(t.Fdb.Delete(key)); err != nil {
				return err
			}
		}
	}
	for key, want := range entries {
		e, there := have[key]
		want.Seen, want.Counted = e.Seen, e.Counted
		if !there || e != want {
			changed = true
			if err := t.Fdb.Put(key, want); err != nil {
				return fmt.Errorf("put a station: %w", err)
			}
		}
	}
	if changed {
		if err := t.moved(); err != nil {
			return err
		}
	}
	if err := setAnswers(t.Stations, answers, func(s vswitchStation) vswitchStation { return s }); err != nil {
		return err
	}
	return t.setLinkLocals(entries)
}

// setLinkLocals brings the answers to neighbour solicitations to the planned
// stations' entries.
func (t *tables) setLinkLocals(entries map[uint64]vswitchEntry) error {
	want := make(map[[16]byte]vswitchStation6, len(entries))
	for key, e := range entries {
		h := hardwareOf(key)
		want[vnet.LinkLocal(h).As16()] = vswitchStation6{Is: vswitchStation{Planned: h, Now: h, Port: uint16(e.Port)}}
	}
	return setAnswers(t.Stations6, want, func(s vswitchStation6) vswitchStation { return s.Is })
}

// setAnswers brings what is answered for stations, by IP address, to what is
// wanted. Rows of the same station at the same port stay as they are.
func setAnswers[IP comparable, Row any](m *ebpf.Map, want map[IP]Row, station func(Row) vswitchStation) error {
	have, err := read[IP, Row](m)
	if err != nil {
		return err
	}
	for ip := range have {
		if _, stays := want[ip]; !stays {
			if err := missing(m.Delete(ip)); err != nil {
				return err
			}
		}
	}
	for ip, row := range want {
		is := station(row)
		if h, there := have[ip]; there && station(h).Planned == is.Planned && station(h).Port == is.Port {
			continue
		}
		if err := m.Put(ip, row); err != nil {
			return fmt.Errorf("put a station's answer: %w", err)
		}
	}
	return nil
}

// stations reads back what is planned, as a plan.Switch lists it; an address
// that would not be answered, or by another's, is left out.
func (t *tables) stations() ([]plan.Station, error) {
	entries, err := t.entries()
	if err != nil {
		return nil, err
	}
	answers, err := t.answers()
	if err != nil {
		return nil, err
	}
	locals, err := read[[16]byte, vswitchStation6](t.Stations6)
	if err != nil {
		return nil, err
	}
	var list []plan.Station
	for key, e := range entries {
		local, there := locals[vnet.LinkLocal(hardwareOf(key)).As16()]
		a, ok := answers[e.Address]
		if e.Planned != 0 && ok && entries[hardware(a.Planned)].Planned != 0 && there && uint32(local.Is.Port) == e.Port {
			list = append(list, plan.Station{Address: netip.AddrFrom4(e.Address), Hardware: hardwareOf(key), Interface: device(int(e.Port))})
		}
	}
	slices.SortFunc(list, func(a, b plan.Station) int {
		return cmp.Or(a.Address.Compare(b.Address), bytes.Compare(a.Hardware[:], b.Hardware[:]))
	})
	return list, nil
}

func (t *tables) entries() (map[uint64]vswitchEntry, error) {
	return read[uint64, vswitchEntry](t.Fdb)
}

func (t *tables) answers() (map[[4]byte]vswitchStation, error) {
	return read[[4]byte, vswitchStation](t.Stations)
}

// read lists a table. One that changes all the time (a tenant's stations come
// and go) is read as far as it goes.
func read[K comparable, V any](m *ebpf.Map) (map[K]V, error) {
	list := make(map[K]V)
	var key K
	var value V
	all := m.Iterate()
	for all.Next(&key, &value) {
		list[key] = value
	}
	if err := all.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return nil, fmt.Errorf("read %s: %w", m, err)
	}
	return list, nil
}

// missing forgives that an entry is gone already.
func missing(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// forget drops what was learned at a port; -1: at all.
func (t *tables) forget(port int) error {
	have, err := t.entries()
	if err != nil {
		return err
	}
	for key, e := range have {
		if e.Planned == 0 && (port < 0 || int(e.Port) == port) {
			if err := missing(t.Fdb.Delete(key)); err != nil {
				return err
			}
		}
	}
	if err := t.moved(); err != nil {
		return err
	}
	for i := range maxPorts {
		if port >= 0 && i != port {
			continue
		}
		var s vswitchState
		if err := t.States.Lookup(uint32(i), &s); err != nil {
			return err
		}
		s.Learned = 0
		if err := t.States.Put(uint32(i), s); err != nil {
			return err
		}
	}
	return nil
}
