package ofswitch

import (
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// kept is a message that is told from others by its number.
func kept(n uint64) of13.Message { return &of13.TableMod{Config: uint32(n)} }

// logged lists the numbers of what a log has, and fails if a message is not its own.
func logged(t *testing.T) (numbers []uint64) {
	t.Helper()
	list, err := readLog()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		_, m, err := new(of13.Decoder).Decode(r.text)
		if mod, ok := m.(*of13.TableMod); err != nil || !ok || uint64(mod.Config) != r.Number {
			t.Fatalf("%d: %+v, %v", r.Number, m, err)
		}
		numbers = append(numbers, r.Number)
	}
	return numbers
}

// The log has what is there at the end, stays short whatever is changed, and what is
// written of a record that is not whole counts for nothing.
func TestStore(t *testing.T) {
	t.Chdir(t.TempDir())
	s, err := openStore(10)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.begin(func() {}); err != nil {
		t.Fatal(err)
	}
	at := func(n uint64) pipeline.Kept { return pipeline.Kept{Kind: pipeline.KeptTable, Number: n} }
	for n := range uint64(100_000) {
		s.Keep(at(n), kept(n))
		if n >= 3 {
			s.Keep(at(n-3), nil)
		}
	}
	if got := logged(t); len(got) != 3 || got[0] != 99_997 || got[2] != 99_999 {
		t.Errorf("it has %v", got)
	}
	before := *s.used()
	if err := s.tidy(func() { s.Keep(at(7), kept(7)) }); err != nil {
		t.Fatal(err)
	}
	if got := logged(t); len(got) != 1 || got[0] != 7 || *s.used() > 100 || before < leastLog {
		t.Errorf("of %d bytes %d are left, with %v", before, *s.used(), got)
	}
	s.Keep(at(8), kept(8))
	b, err := os.ReadFile(logFile)
	if err != nil {
		t.Fatal(err)
	}
	binary.NativeEndian.PutUint64(b[8:], *s.used()-8)
	if err := os.WriteFile(logFile, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := logged(t); len(got) != 1 || got[0] != 7 {
		t.Errorf("with half a record it has %v", got)
	}
}

// The times of a store that comes from another host are shifted once, those of entries
// alone.
func TestStoreFromAnotherHost(t *testing.T) {
	t.Chdir(t.TempDir())
	s, err := openStore(10)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	s.counts[0].Owner = 7
	times := func(i int) [2]int64 { return [2]int64((*[5]int64)(unsafe.Pointer(&s.counts[i]))[3:]) } // created, used
	for range 2 {
		if err := s.shift(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(movedFile, []byte("-42"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.shift(); err != nil {
			t.Fatal(err)
		}
	}
	if owned, free := times(0), times(1); owned != [2]int64{-84, -84} || free != [2]int64{} {
		t.Errorf("after two moves: %v, and of nobody's %v", owned, free)
	}
	if err := os.WriteFile(movedFile, []byte("soon"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.shift(); err == nil {
		t.Error("a time that is none is taken")
	}
}

// Counters that entries have outlive a switch that is started with fewer entries, and come
// with one that is started with more.
func TestStoreOfAnotherSize(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, entries := range []int{1000, 10, 500} {
		s, err := openStore(entries)
		if err != nil {
			t.Fatal(err)
		}
		if entries == 1000 {
			for i, owner := range []uint64{7, 8, 9} {
				c := &s.counts[len(s.counts)-1-i]
				c.Owner, c.Packets = owner, 10*owner
			}
			s.rows.ports[1].TxPackets = 5
		}
		found := make(map[uint64]uint64)
		for _, c := range s.counts {
			if c.Owner != 0 {
				found[c.Owner] = c.Packets
			}
		}
		if len(s.counts) != 2*entries+64 || len(found) != 3 || found[7] != 70 || found[8] != 80 || found[9] != 90 || s.rows.ports[1].TxPackets != 5 {
			t.Errorf("with %d entries: %d places, %v, ports %+v", entries, len(s.counts), found, s.rows.ports[1])
		}
		s.close()
	}
}
