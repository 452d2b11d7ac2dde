package pipeline

import (
	"errors"
	"testing"

	"sublet/openflow/of13"
)

// Entries and groups with very many actions fill a switch before they fill its memory,
// and of tables that share no room only their own.
func TestLargeEntriesFillTables(t *testing.T) {
	s := New(Config{Tables: 4, Entries: 2000, Groups: 100}, &record{})
	s.Share = func(table uint8) (first, tables, entries int) { return int(table) / 2 * 2, 2, 100 }
	large := func(table uint8, priority uint16, actions int) *of13.FlowMod {
		m := &of13.FlowMod{Table: table, Priority: priority, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny}
		m.Instructions = []of13.Instruction{{Type: of13.InstructionApply, Actions: make([]of13.Action, actions)}}
		for i := range actions {
			m.Instructions[0].Actions[i] = of13.Output(of13.PortInPort)
		}
		return m
	}
	do := func(m of13.Message) error { _, err := s.Do(1, m); return err }
	for _, c := range []struct {
		m    *of13.FlowMod
		want error
	}{
		{large(0, 1, 4000), nil}, {large(1, 1, 4000), of13.FlowModFailedTableFull}, {large(1, 1, usual), nil}, {large(0, 1, 4100), nil},
		{large(2, 1, 4000), nil}, {large(0, 2, 2000), of13.FlowModFailedTableFull},
	} {
		if err := do(c.m); !errors.Is(err, c.want) {
			t.Errorf("%d actions in table %d: %v, want %v", len(c.m.Instructions[0].Actions), c.m.Table, err, c.want)
		}
	}
	modify := large(1, 1, 2000)
	modify.Command = of13.FlowModifyStrict
	if err := do(modify); !errors.Is(err, of13.FlowModFailedTableFull) {
		t.Errorf("an entry that becomes large: %v", err)
	}
	remove := large(0, 1, 0)
	remove.Command = of13.FlowDelete
	if err := errors.Join(do(remove), do(modify)); err != nil {
		t.Errorf("where a large one was: %v", err)
	}
	group := func(n uint32) error {
		b := of13.Bucket{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny, Actions: large(0, 0, 4000).Instructions[0].Actions}
		return do(&of13.GroupMod{Kind: of13.GroupTypeIndirect, Group: n, Buckets: []of13.Bucket{b}})
	}
	if err := group(1); err != nil {
		t.Error(err)
	}
	if err := group(2); !errors.Is(err, of13.GroupModFailedOutOfBuckets) {
		t.Errorf("a second large group: %v", err)
	}
	s.ShareGroups = func(number uint32) (func(uint32) bool, int) {
		return func(n uint32) bool { return n%2 == number%2 }, 10
	}
	if err := group(2); err != nil {
		t.Errorf("a large group that shares no room with the first: %v", err)
	}
	if err := group(3); !errors.Is(err, of13.GroupModFailedOutOfBuckets) {
		t.Errorf("a large group that shares room with the first: %v", err)
	}
	for i := range s.tables { // the sums that are kept are those that would be made
		sum := 0
		for e := range s.tables[i].all() {
			sum += e.beyond()
		}
		if sum != s.tables[i].beyond {
			t.Errorf("table %d: entries have %d actions more than usual, and %d are kept in mind", i, sum, s.tables[i].beyond)
		}
	}
}

// What is taken back takes back its room, too.
func TestFailedChangesTakeNoRoom(t *testing.T) {
	s := New(Config{Tables: 1, Entries: 10}, &record{})
	large := &of13.FlowMod{Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny}
	large.Instructions = []of13.Instruction{{Type: of13.InstructionApply, Actions: make([]of13.Action, 1000)}}
	for i := range large.Instructions[0].Actions {
		large.Instructions[0].Actions[i] = of13.Output(of13.PortInPort)
	}
	small, change := *large, *large
	small.Instructions, change.Command = nil, of13.FlowModify
	if _, err := s.Do(1, &small); err != nil {
		t.Fatal(err)
	}
	for _, m := range []of13.Message{large, &change} {
		failed := errors.New("failed")
		err := s.Atomic(func() error {
			if _, err := s.Do(1, m); err != nil {
				return err
			}
			if s.tables[0].beyond != 1000-usual {
				t.Errorf("%T: %d", m, s.tables[0].beyond)
			}
			return failed
		})
		if !errors.Is(err, failed) || s.tables[0].beyond != 0 {
			t.Errorf("%v, and room for %d is taken", err, s.tables[0].beyond)
		}
	}
}
