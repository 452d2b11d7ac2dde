package ofswitch

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
	"sublet/openflow/slice"
)

// Files of a store, in the working directory. They are mapped, so that what is in
// them outlives the process however it ends: nothing is to be written at the end.
const (
	logFile  = "state"  // messages that make what there is
	rowsFile = "counts" // what they have counted

	movedFile = "moved" // by what the times in them differ from this host's clock

	storeVersion = 1
	logHead      = 16      // version, and bytes in use
	recordHead   = 16      // size of the message, kind, number
	leastLog     = 1 << 20 // bytes; it is written anew when it is twice as long as it was then
)

// store is the memory of a switch (pipeline.Memory).
type store struct {
	log     []byte
	name    string // of its file
	record  []byte // that is being written
	written uint64 // length of the log after it was written anew
	rows    *rows
	counts  []pipeline.Counts
	free    []*pipeline.Counts
	all     []byte
	slices  *slice.Files // what they know; nil: there are none
}

// rows are what has a place of its own.
type rows struct {
	version uint64
	ports   [mostFollowed + 1]of13.PortStats // LOCAL is 0
	tables  [of13.TableAll]pipeline.TableCounts
}

// openStore maps the counters, those of before if they fit. The log comes with
// begin.
func openStore(entries int) (*store, error) {
	most := 2*entries + 64 // those of a bundle are freed at its end
	size := int(unsafe.Sizeof(rows{})) + most*int(unsafe.Sizeof(pipeline.Counts{}))
	if err := packCounts(size); err != nil {
		return nil, err
	}
	b, err := mapFile(rowsFile, size)
	if err != nil {
		return nil, err
	}
	s := &store{all: b, rows: (*rows)(unsafe.Pointer(&b[0]))}
	s.counts = unsafe.Slice((*pipeline.Counts)(unsafe.Pointer(&b[unsafe.Sizeof(rows{})])), most)
	if s.rows.version != storeVersion {
		clear(b)
		s.rows.version = storeVersion
	}
	return s, nil
}

// packCounts puts counters that entries have first in a file that is larger than it is to
// be, so that none is cut off of those that have room.
func packCounts(size int) error {
	info, err := os.Stat(rowsFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	const head, each = int(unsafe.Sizeof(rows{})), int(unsafe.Sizeof(pipeline.Counts{}))
	if err != nil || int(info.Size()) <= size || (int(info.Size())-head)%each != 0 {
		return err
	}
	b, err := mapFile(rowsFile, int(info.Size()))
	if err != nil {
		return err
	}
	defer unix.Munmap(b)
	all := unsafe.Slice((*pipeline.Counts)(unsafe.Pointer(&b[head])), (len(b)-head)/each)
	at := 0
	for i := range all {
		if all[i].Owner != 0 {
			all[i], all[at] = all[at], all[i]
			at++
		}
	}
	return nil
}

// shift takes a store that comes from another host: its times are of that one's clock.
func (s *store) shift() error {
	text, err := os.ReadFile(movedFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	by, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("read %s: %w", movedFile, err)
	}
	for i := range s.counts {
		if s.counts[i].Owner != 0 {
			s.counts[i].Shift(by)
		}
	}
	return os.Remove(movedFile)
}

// mapFile maps a file of a size, which is made if it is not there.
func mapFile(name string, size int) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	return b, nil
}

func (s *store) close() {
	unix.Munmap(s.log)
	unix.Munmap(s.all)
	if s.slices != nil {
		s.slices.Close()
	}
}

// Entry gives counters that nobody has; without a place for them they are lost.
func (s *store) Entry() *pipeline.Counts {
	if len(s.free) == 0 {
		return new(pipeline.Counts)
	}
	last := len(s.free) - 1
	c := s.free[last]
	s.free = s.free[:last]
	return c
}

// Forget takes them back.
func (s *store) Forget(c *pipeline.Counts) {
	c.Owner = 0
	s.free = append(s.free, c)
}

// Port gives the counters of a port.
func (s *store) Port(number uint32) *of13.PortStats {
	if number == of13.PortLocal {
		number = 0
	}
	if int(number) >= len(s.rows.ports) {
		return new(of13.PortStats)
	}
	return &s.rows.ports[number]
}

// Table gives the counters of a table.
func (s *store) Table(number int) *pipeline.TableCounts { return &s.rows.tables[number] }

// Keep writes a record behind the others; it counts when it is whole.
func (s *store) Keep(k pipeline.Kept, m of13.Message) {
	if s.log == nil {
		return // what was before is being read
	}
	head := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(s.record[:0], uint64(k.Kind)), k.Number)
	if m != nil {
		text, err := of13.Append(head, 0, m)
		if err != nil {
			return // it came as a message, so it has room in one
		}
		head = appendLoose(text, m)
	}
	binary.NativeEndian.PutUint32(head[4:], uint32(len(head)-recordHead))
	head = append(head, make([]byte, -len(head)&7)...)
	s.record = head
	used := s.used()
	at := atomic.LoadUint64(used)
	if at+uint64(len(head)) > uint64(len(s.log)) {
		if err := s.grow(int(at) + len(head)); err != nil {
			return // and so it is lost if the process is killed
		}
		used = s.used()
	}
	copy(s.log[at:], head)
	atomic.StoreUint64(used, at+uint64(len(head)))
}

func (s *store) used() *uint64 { return (*uint64)(unsafe.Pointer(&s.log[8])) }

// grow makes the log twice as large as is needed.
func (s *store) grow(need int) error {
	b, err := mapFile(s.name, 2*need)
	if err == nil {
		unix.Munmap(s.log)
		s.log = b
	}
	return err
}

// begin writes the log anew, by what tells of everything.
func (s *store) begin(keepAll func()) error {
	const fresh = logFile + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if s.log != nil {
		unix.Munmap(s.log)
		s.log = nil
	}
	b, err := mapFile(fresh, leastLog)
	if err != nil {
		return err
	}
	s.log, s.name = b, fresh
	binary.NativeEndian.PutUint64(b, storeVersion)
	binary.NativeEndian.PutUint64(b[8:], logHead)
	keepAll()
	s.written, s.name = *s.used(), logFile
	return os.Rename(fresh, logFile)
}

// tidy writes the log anew when most of it is old.
func (s *store) tidy(keepAll func()) error {
	if at := *s.used(); at < leastLog || at < 2*s.written {
		return nil
	}
	return s.begin(keepAll)
}

// record is what the log has of something.
type record struct {
	pipeline.Kept
	text []byte
}

// readLog reads what the log has at its end, in the order of kinds and numbers.
func readLog() ([]record, error) {
	b, err := os.ReadFile(logFile)
	if err != nil || len(b) < logHead || binary.NativeEndian.Uint64(b) != storeVersion {
		return nil, err
	}
	found := make(map[pipeline.Kept][]byte)
	for b = b[logHead:min(len(b), int(binary.NativeEndian.Uint64(b[8:])))]; len(b) >= recordHead; {
		size := int(binary.NativeEndian.Uint32(b[4:]))
		k := pipeline.Kept{Kind: pipeline.KeptKind(b[0]), Number: binary.NativeEndian.Uint64(b[8:])}
		whole := recordHead + (size+7)&^7
		if whole > len(b) {
			break
		}
		if found[k] = b[recordHead : recordHead+size]; size == 0 {
			delete(found, k)
		}
		b = b[whole:]
	}
	list := make([]record, 0, len(found))
	for k, text := range found {
		list = append(list, record{k, text})
	}
	slices.SortFunc(list, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Number, b.Number))
	})
	return list, nil
}
