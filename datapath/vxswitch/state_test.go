package vxswitch

import (
	"os"
	"reflect"
	"testing"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

var lease = vnet.LeaseID{Tenant: "t", Network: "n"}

func newPart(t *testing.T) *Part {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("opens namespaces: needs root")
	}
	host, err := kernel.NewHost(kernel.Config{Host: "h1", Run: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	return New(host)
}

// What was written down comes back; what is no state counts as none.
func TestStateComesBack(t *testing.T) {
	p := newPart(t)
	s := &state{}
	s.setSwitch(plan.VxSwitch{Lease: lease, Switch: "s", Buffer: 5}, false)
	s.setPort(plan.VxSwitchPort{Lease: lease, Switch: "s", Interface: "eth0", To: []string{"eth1"}}, false)
	if err := p.save(s); err != nil {
		t.Fatal(err)
	}
	if again, err := p.load(); err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("%v, %v came back of %v", err, again, s)
	}
	if err := p.write("state.json", []byte(`{"switches": [5`)); err != nil {
		t.Fatal(err)
	}
	if again, err := p.load(); err != nil || !again.empty() {
		t.Errorf("%v, %v of what is no state", err, again)
	}
}

// An item takes the place of the one of its key; a switch takes its ports along.
func TestItemsAreSet(t *testing.T) {
	s := &state{}
	for _, name := range []string{"s", "s2"} {
		s.setSwitch(plan.VxSwitch{Lease: lease, Switch: name}, false)
		s.setPort(plan.VxSwitchPort{Lease: lease, Switch: name, Interface: "eth0"}, false)
	}
	before := s.clone()
	s.setPort(plan.VxSwitchPort{Lease: lease, Switch: "s", Interface: "eth0", In: 7}, false)
	if len(s.Ports) != 2 || s.Ports[0].In != 7 || before.Ports[0].In != 0 {
		t.Errorf("ports %v, before %v", s.Ports, before.Ports)
	}
	s.setSwitch(plan.VxSwitch{Lease: lease, Switch: "s"}, true)
	if len(s.Switches) != 1 || len(s.Ports) != 1 || s.Ports[0].Switch != "s2" {
		t.Errorf("left are %v, %v", s.Switches, s.Ports)
	}
}

// Processor time is limited only if everybody has booked some.
func TestProcessorTime(t *testing.T) {
	s := &state{Switches: []plan.VxSwitch{{CPU: 300}, {CPU: 200}}}
	if got := s.cpu(); got != 500 {
		t.Errorf("limited to %s", got)
	}
	s.Switches = append(s.Switches, plan.VxSwitch{})
	if got := s.cpu(); got != 0 {
		t.Errorf("limited to %s with one that has booked none", got)
	}
}

// Ports without devices are left out of the process's description, and with
// them switches that have none.
func TestWithoutDevices(t *testing.T) {
	p := newPart(t)
	s := &state{Switches: []plan.VxSwitch{{Lease: lease, Switch: "s"}}, Ports: []plan.VxSwitchPort{{Lease: lease, Switch: "s", Interface: "eth0"}}}
	if c, err := p.config(s); err != nil || len(c.Ports) != 0 || len(c.Switches) != 0 {
		t.Errorf("described: %+v", c)
	}
}

// Pairs that may not talk, and crosspoints that differ.
func TestCrosspoints(t *testing.T) {
	port := func(i string, to ...string) plan.VxSwitchPort {
		return plan.VxSwitchPort{Lease: lease, Switch: "s", Interface: i, To: to}
	}
	ports := []plan.VxSwitchPort{port("eth0", "eth1"), port("eth1"), port("eth2")}
	ports[2].Priority = 3
	sw := plan.VxSwitch{Lease: lease, Switch: "s", Crosspoints: []plan.VxCrosspoint{{From: "eth1", To: "eth0", Buffer: 9, Manager: "codel"}}}
	list, blocked := crosses(sw, ports)
	if len(blocked) != 1 || blocked[0] != [2]string{"t.n.s.vxswitch/eth0", "t.n.s.vxswitch/eth2"} {
		t.Errorf("blocked: %v", blocked)
	}
	if len(list) != 3 || list[0].Manager != "codel" || list[0].Buffer != 9 || list[1].Priority != 3 || list[2].Priority != 3 {
		t.Errorf("crosspoints: %+v", list)
	}
}
