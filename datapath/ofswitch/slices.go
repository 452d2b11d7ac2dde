package ofswitch

import (
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/slice"
)

// MostLeading bounds the entries of table 0 that lead packets to slices. They count
// beside those that slices may have.
const MostLeading = 4096

// mostSlices bounds the slices of a switch.
const mostSlices = 16

// beginSlices makes the slices, as they were before and then as they are to be.
func (s *Switch) beginSlices() (err error) {
	c := slice.LocalConfig{
		Below: below{s}, Tables: s.config.Pipeline.Tables, Miss: s.config.MissEntry, Near: s.band != nil, Watch: s.watchConnection, Notify: s.notify,
	}
	if s.store != nil {
		if c.Memory, err = openSlices(s.store, s.config.Pipeline.Groups, s.config.Pipeline.Meters); err != nil {
			return err
		}
	}
	if s.slices, err = slice.NewLocal(c); err != nil {
		return err
	}
	return s.reslice()
}

// below is the tables of the switch, for its slices.
type below struct{ *Switch }

// Do does what a slice asks of the whole switch.
func (b below) Do(m of13.Message) (of13.Message, error) {
	if b.runs && m.Type() == of13.TypeMultipartRequest {
		b.catchUp()
	}
	return b.tables.Do(b.now(), m)
}

// reslice reads which slices there are to be, and makes them.
func (s *Switch) reslice() error {
	if s.slices == nil {
		return errors.New("the switch has no slices")
	}
	list, err := s.config.Slices()
	if err != nil {
		return err
	}
	if err := CheckSlices(list, s.config.Pipeline.Tables); err != nil {
		return err
	}
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	s.packets.share(names)
	return s.slices.Set(list)
}

// CheckSlices says what is wrong with slices of a switch of so many tables.
func CheckSlices(list []slice.Slice, tables int) error {
	leading := 0
	for i := range list {
		leading += max(1, len(list[i].Ports))
	}
	switch {
	case len(list) > mostSlices:
		return errors.New("slices: a switch has 16 at most")
	case leading > MostLeading:
		return errors.New("slices: they have more than 4096 ports together")
	}
	return slice.Check(list, tables)
}

// empty has the switch have no entries, groups and meters, and forget that it had slices.
func (s *Switch) empty() error {
	for _, m := range []of13.Message{
		&of13.FlowMod{Command: of13.FlowDelete, Table: of13.TableAll, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny},
		&of13.GroupMod{Command: of13.CommandDelete, Group: of13.GroupAll},
		&of13.MeterMod{Command: of13.CommandDelete, Meter: of13.MeterAll},
	} {
		if _, err := s.tables.Do(s.now(), m); err != nil {
			return err
		}
	}
	return os.Remove(slicesFile)
}

func (s *Switch) hurry() {
	s.hub.Hurry()
	if s.slices != nil {
		s.slices.Hurry()
	}
}

func (s *Switch) ready(fd int, events uint32) {
	s.hub.Ready(fd, events)
	if s.slices != nil {
		s.slices.Ready(fd, events)
	}
}

func (s *Switch) tickHubs(now time.Time) {
	s.hub.Tick(now)
	if s.slices != nil {
		s.slices.Tick(now)
	}
}

func (s *Switch) flushHubs() {
	s.hub.Flush()
	if s.slices != nil {
		s.slices.Flush()
	}
}

func (s *Switch) turnOfSlices() (more bool) { return s.slices != nil && s.slices.Turn() }

// happened tells slices, if there are any.
func (s *Switch) happened(m of13.Message) bool {
	if s.slices != nil {
		s.slices.Happened(m)
	}
	return s.slices != nil
}

// sliceOf names the slice that has a table.
func (s *Switch) sliceOf(table uint8) string {
	if s.slices == nil {
		return ""
	}
	return s.slices.Of(table)
}

// Files of a store with what slices know: where they are, and whose groups and meters are.
const slicesFile, numbersFile = "slices", "numbers"

// sliced says whether the process before this one had slices.
func (s *store) sliced() bool {
	_, err := os.Stat(slicesFile)
	return err == nil
}

// sliceMemory is slice.Memory. A word of groups and meters has the first table of its
// slice above the controller's number; 0: nobody's.
type sliceMemory struct{ groups, meters []uint64 }

func openSlices(s *store, groups, meters int) (*sliceMemory, error) {
	b, err := mapFile(numbersFile, 8*(groups+meters+2))
	if err != nil {
		return nil, err
	}
	s.numbers = b
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), groups+meters+2)
	m := &sliceMemory{words[:groups+1], words[groups+1:]}
	if !s.sliced() {
		clear(words)
	}
	return m, nil
}

// Place remembers where slices are.
func (m *sliceMemory) Place(placed []byte) error {
	sized := binary.NativeEndian.AppendUint32(nil, uint32(len(m.groups)))
	if err := os.WriteFile(slicesFile+".new", append(sized, placed...), 0o600); err != nil {
		return err
	}
	return os.Rename(slicesFile+".new", slicesFile)
}

// Placed is what was remembered. A switch of other sizes remembers other numbers: its
// slices begin anew.
func (m *sliceMemory) Placed() ([]byte, error) {
	b, err := os.ReadFile(slicesFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case len(b) < 4 || int(binary.NativeEndian.Uint32(b)) != len(m.groups):
		clear(m.groups)
		clear(m.meters)
		return nil, nil
	}
	return b[4:], nil
}

// Group remembers whose a group is.
func (m *sliceMemory) Group(there uint32, first uint8, own uint32) {
	remember(m.groups, there, first, own)
}

// Meter remembers whose a meter is.
func (m *sliceMemory) Meter(there uint32, first uint8, own uint32) {
	remember(m.meters, there, first, own)
}

func remember(words []uint64, there uint32, first uint8, own uint32) {
	if int(there) < len(words) {
		atomic.StoreUint64(&words[there], uint64(first)<<32|uint64(own))
	}
}

// Numbers are those that are somebody's.
func (m *sliceMemory) Numbers(group, meter func(there uint32, first uint8, own uint32)) {
	for there, word := range m.groups {
		if word != 0 {
			group(uint32(there), uint8(word>>32), uint32(word))
		}
	}
	for there, word := range m.meters {
		if word != 0 {
			meter(uint32(there), uint8(word>>32), uint32(word))
		}
	}
}

// slicesOf lists slices for who looks at the switch.
func (s *Switch) slicesOf() []slice.Member {
	if s.slices == nil {
		return nil
	}
	list, err := s.slices.Members()
	if err != nil {
		s.config.Log(err)
	}
	return list
}

var _ channel.Datapath = below{}
