package vxswitch

import (
	"os"
	"reflect"
	"testing"

	"sublet/datapath/kernel"
	"sublet/datapath/vxswitch/live"
	"sublet/plan"
	"sublet/vnet"
)

var lease = vnet.LeaseID{Tenant: "t", Network: "n"}

func sw(name string, e plan.Engine) plan.Switch {
	return plan.Switch{Lease: lease, Switch: name, Type: vnet.SwitchEngine, Engine: &e}
}

func port(of, device string, to ...string) plan.SwitchPort {
	return plan.SwitchPort{Lease: lease, Switch: of, Type: vnet.SwitchEngine, Interface: device, To: to, Engine: &plan.EnginePort{Scheduler: "drr"}}
}

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
	s.setSwitch(sw("s", plan.Engine{Scheduler: "drr", Buffer: 5}), false)
	s.setPort(port("s", "eth0", "eth1"), false)
	if err := p.save(s); err != nil {
		t.Fatal(err)
	}
	if again, err := p.load(); err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("%v, %v came back of %v", err, again, s)
	}
	for _, text := range []string{`{"switches": [5`, `{"switches": [{"switch":"s","kind":"kernel"}]}`} {
		if err := p.write("state.json", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if again, err := p.load(); err != nil || !again.empty() {
			t.Errorf("%v, %v of what is no state", err, again)
		}
	}
}

// What an agent of a former version wrote down is taken over as it is.
func TestStateOfAFormerVersion(t *testing.T) {
	p := newPart(t)
	former := `{"switches": [{"lease":{"tenant":"t","network":"n"},"switch":"s","ageing_ns":7,"scheduler":"drr","buffer_bytes":5,"manager":"tail-drop"}],
		"ports": [{"lease":{"tenant":"t","network":"n"},"switch":"s","interface":"eth0","scheduler":"drr","to":["eth1"]}]}`
	if err := p.write("state.json", []byte(former)); err != nil {
		t.Fatal(err)
	}
	want := &state{}
	s := sw("s", plan.Engine{Scheduler: "drr", Buffer: 5, Manager: "tail-drop"})
	s.Ageing = 7
	want.setSwitch(s, false)
	want.setPort(port("s", "eth0", "eth1"), false)
	if got, err := p.load(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v, want %+v", err, got, want)
	}
}

// An item takes the place of the one of its key; a switch takes its ports along.
func TestItemsAreSet(t *testing.T) {
	s := &state{}
	for _, name := range []string{"s", "s2"} {
		s.setSwitch(sw(name, plan.Engine{}), false)
		s.setPort(port(name, "eth0"), false)
	}
	before := s.clone()
	faster := port("s", "eth0")
	faster.Engine.In = 7
	s.setPort(faster, false)
	if len(s.Ports) != 2 || s.Ports[0].Engine.In != 7 || before.Ports[0].Engine.In != 0 {
		t.Errorf("ports %v, before %v", s.Ports, before.Ports)
	}
	s.setSwitch(sw("s", plan.Engine{}), true)
	if len(s.Switches) != 1 || len(s.Ports) != 1 || s.Ports[0].Switch != "s2" {
		t.Errorf("left are %v, %v", s.Switches, s.Ports)
	}
}

// Processor time is limited only if everybody has booked some.
func TestProcessorTime(t *testing.T) {
	s := &state{Switches: []plan.Switch{sw("a", plan.Engine{CPU: 300}), sw("b", plan.Engine{CPU: 200})}}
	if got := s.cpu(); got != 500 {
		t.Errorf("limited to %s", got)
	}
	s.Switches = append(s.Switches, sw("c", plan.Engine{}))
	if got := s.cpu(); got != 0 {
		t.Errorf("limited to %s with one that has booked none", got)
	}
}

// Ports without devices are left out of the process's description, and with
// them switches that have none.
func TestWithoutDevices(t *testing.T) {
	p := newPart(t)
	s := &state{Switches: []plan.Switch{sw("s", plan.Engine{})}, Ports: []plan.SwitchPort{port("s", "eth0")}}
	if c, err := p.config(s); err != nil || len(c.Ports) != 0 || len(c.Switches) != 0 {
		t.Errorf("described: %+v", c)
	}
}

// A switch with slices divides its outputs; every part has the same ports, and frames
// that no slice claims are the switch's. The process takes what is described.
func TestSlices(t *testing.T) {
	dscp := uint8(46)
	ports := []plan.SwitchPort{port("s", "eth0"), port("s", "eth1")}
	ports[0].Engine.Out, ports[1].Engine.Out = 100*vnet.Mbit, 10*vnet.Mbit
	e := plan.Engine{Scheduler: "drr", Buffer: 1 << 16, Manager: "tail-drop", Lend: 50, Lookup: vnet.LookupClassifier,
		Table:  []vnet.SwitchRow{{Protocol: "udp", DstPort: 9, To: []string{"eth1", "eth7"}}},
		Slices: []plan.Slice{{Name: "voice", Claim: vnet.SwitchClaim{DSCP: &dscp}, Share: 30, Buffer: 1 << 15, Scheduler: "sp", Manager: "codel", Lookup: vnet.LookupStatic, Table: []vnet.SwitchRow{{MAC: "02:00:00:00:00:01", To: []string{"eth7"}}}}},
	}
	s := sw("s", e)
	p := newPart(t)
	c := &live.Config{Sharing: "flexible"}
	whole := live.VirtualConfig{Name: s.Key(), Buffer: live.Size(e.Buffer), Scheduler: e.Scheduler, Manager: e.Manager, Lend: part(e.Lend), Lookup: e.Lookup, Table: rows(e.Lookup, e.Table, ports)}
	for _, x := range ports {
		c.Ports = append(c.Ports, p.port(s, x))
		whole.Ports = append(whole.Ports, live.VirtualPortConfig{Port: x.Key(), In: rateOf(x.Engine.In), Out: rateOf(x.Engine.Out)})
	}
	c.Switches = sliced(whole, s, ports)
	text, err := c.Text()
	if err != nil {
		t.Fatal(err)
	}
	got, err := live.Parse("process", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	own, voice := got.Switches[0], got.Switches[1]
	if own.Ports[0].Out != 70e6 || voice.Ports[0].Out != 30e6 || voice.Ports[1].Out != 3e6 || own.Ports[0].Claim != nil || *voice.Ports[1].Claim.DSCP != 46 {
		t.Errorf("ports %+v and %+v", own.Ports, voice.Ports)
	}
	if voice.Name != s.Key()+"/voice" || voice.Manager != "codel" || len(voice.Table) != 0 || own.Lend != 0.5 || len(own.Table[0].To) != 1 {
		t.Errorf("described as\n%s", text)
	}
	if !got.Ports[0].Shared || got.Ports[1].Rate != 10e6 {
		t.Errorf("ports %+v", got.Ports)
	}
}

// Pairs that may not talk, and crosspoints that differ.
func TestCrosspoints(t *testing.T) {
	ports := []plan.SwitchPort{port("s", "eth0", "eth1"), port("s", "eth1"), port("s", "eth2")}
	ports[2].Engine.Priority = 3
	crossed := sw("s", plan.Engine{Crosspoints: []plan.Crosspoint{{From: "eth1", To: "eth0", Buffer: 9, Manager: "codel"}}})
	list, blocked := crosses(crossed, ports)
	if len(blocked) != 1 || blocked[0] != [2]string{"t.n.s.vxswitch/eth0", "t.n.s.vxswitch/eth2"} {
		t.Errorf("blocked: %v", blocked)
	}
	if len(list) != 3 || list[0].Manager != "codel" || list[0].Buffer != 9 || list[1].Priority != 3 || list[2].Priority != 3 {
		t.Errorf("crosspoints: %+v", list)
	}
}
