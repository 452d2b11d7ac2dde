package pipeline

import (
	"testing"

	"sublet/openflow/of13"
)

// A full table that may evict loses the entry that would be over first; entries
// without timeouts, and those of other tables, stay.
func TestEviction(t *testing.T) {
	s, r := newSwitch(t)
	for i := range uint16(100) {
		m := flow(uint8(i%2), 1000+i, nil)
		m.Flags = of13.FlowSendRemoved
		if i >= 90 {
			m.Hard = 200 - i
		}
		must(t, s, 0, m)
	}
	if _, err := s.Do(0, flow(0, 1, nil)); err != error(of13.FlowModFailedTableFull) {
		t.Fatal(err)
	}
	must(t, s, 0, &of13.TableMod{Table: 0, Config: configEviction})
	for i := range uint16(5) {
		must(t, s, second, flow(0, i, nil))
		if len(r.removed) != int(i)+1 || r.removed[i].Priority != 1098-2*i || r.removed[i].Reason != of13.RemovedDelete || s.entries != 100 {
			t.Fatalf("%d entries after %+v", s.entries, r.removed)
		}
	}
	if _, err := s.Do(0, flow(0, 9, nil)); err != error(of13.FlowModFailedTableFull) {
		t.Errorf("only entries without timeouts are left: %v", err)
	}
	if _, err := s.Do(0, flow(1, 9, nil)); err != error(of13.FlowModFailedTableFull) {
		t.Errorf("table 1 may not evict: %v", err)
	}
}
