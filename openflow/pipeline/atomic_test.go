package pipeline

import (
	"errors"
	"fmt"
	"testing"

	"sublet/openflow/of13"
)

// everything is what a controller can learn of a switch.
func everything(t *testing.T, s *Switch) string {
	t.Helper()
	text := ""
	for _, m := range []*of13.MultipartRequest{
		{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}},
		{Kind: of13.MultipartTable}, {Kind: of13.MultipartGroupDesc}, {Kind: of13.MultipartGroup, Number: of13.GroupAll},
		{Kind: of13.MultipartMeterConfig, Number: of13.MeterAll}, {Kind: of13.MultipartPortDesc},
	} {
		reply, err := s.Do(second, m)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%+v\n", reply)
	}
	return text
}

// oneOfEach is one change of each kind.
func oneOfEach() []of13.Message {
	remove := flow(0, 2, nil, of13.Exact(of13.InPort, 2))
	remove.Command = of13.FlowDeleteStrict
	modify := flow(0, 1, apply(of13.Output(4)), of13.Exact(of13.InPort, 1))
	modify.Command, modify.Flags = of13.FlowModify, of13.FlowResetCounts
	return []of13.Message{
		flow(3, 9, apply(of13.Output(1))), modify, remove, flow(0, 1, apply(of13.Output(3)), of13.Exact(of13.InPort, 1)),
		&of13.GroupMod{Group: 7, Buckets: []of13.Bucket{bucketTo(3)}}, &of13.GroupMod{Group: 1, Command: of13.CommandModify, Buckets: []of13.Bucket{bucketTo(4)}},
		&of13.GroupMod{Group: of13.GroupAll, Command: of13.CommandDelete},
		meterMod(of13.MeterMod{Meter: 1, Command: of13.CommandModify, Flags: of13.MeterPKTPS}), meterMod(of13.MeterMod{Meter: 2}), meterMod(of13.MeterMod{Command: of13.CommandDelete, Meter: of13.MeterAll}),
		&of13.PortMod{Port: 2, HWAddr: [6]byte{2, 0, 0, 0, 1, 1}, Config: of13.PortConfigDown, Mask: of13.PortConfigDown}, &of13.TableMod{Table: of13.TableAll, Config: 3},
	}
}

func prepared(t *testing.T) (*Switch, *record) {
	s, r := newSwitch(t)
	grouped := flow(1, 5, apply(of13.Action{Type: of13.ActionGroup, Number: 1}))
	second := flow(0, 2, apply(of13.Output(1)), of13.Exact(of13.InPort, 2))
	second.Flags, second.Idle = of13.FlowSendRemoved, 10
	must(t, s, 0, &of13.GroupMod{Group: 1, Buckets: []of13.Bucket{bucketTo(2)}}, meterMod(of13.MeterMod{Meter: 1}), grouped, second, flow(0, 1, apply(of13.Output(2)), of13.Exact(of13.InPort, 1)))
	s.Receive(0, 1, udp(t, 20))
	return s, r
}

// Changes that belong together are all taken back when one of them fails, and
// nobody is told of them.
func TestFailedChangesLeaveNothing(t *testing.T) {
	s, r := prepared(t)
	before, timed := everything(t, s), len(s.timed)
	failure := errors.New("no")
	if err := s.Atomic(func() error { must(t, s, 0, oneOfEach()...); return failure }); err != failure {
		t.Fatal(err)
	}
	if after := everything(t, s); after != before || len(s.timed) != timed || s.entries != 3 {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if len(r.removed)+len(r.status) != 0 {
		t.Errorf("told of %+v, %+v", r.removed, r.status)
	}
}

func TestChangesTogetherAreThoseInTurn(t *testing.T) {
	one, _ := prepared(t)
	must(t, one, 0, oneOfEach()...)
	all, r := prepared(t)
	if err := all.Atomic(func() error { must(t, all, 0, oneOfEach()...); return nil }); err != nil {
		t.Fatal(err)
	}
	if a, b := everything(t, one), everything(t, all); a != b {
		t.Errorf("in turn:\n%s\ntogether:\n%s", a, b)
	}
	if len(r.removed) != 1 || len(r.status) != 1 {
		t.Errorf("told of %+v, %+v", r.removed, r.status)
	}
}
