package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sublet/vnet"
	"sublet/vxswitch/sched"
	"sublet/vxswitch/sim"
)

// Bounds of what one machine simulates.
const (
	maxDuration = 24 * time.Hour
	maxPorts    = 256
	maxSwitches = 1024
	maxSize     = 65535 // bytes of one frame
	maxBuffers  = 4 << 20
)

// scenario turns a form into the words of sim and checks it.
func (f *form) scenario(open Open) (sim.Scenario, error) {
	s := sim.Scenario{
		Name: f.Scenario, Duration: time.Duration(f.Duration), Warmup: time.Duration(f.Warmup),
		Drain: f.Drain == nil || *f.Drain, Seed: 1, Runs: 1,
	}
	if f.Seed != nil {
		s.Seed = uint64(*f.Seed)
	}
	if f.Runs != nil {
		s.Runs = *f.Runs
	}
	for _, read := range []func(*sim.Scenario) error{
		f.times, f.hosting, f.tenants,
		func(s *sim.Scenario) error { return f.streams(s, open) },
		f.splitting, f.largest,
	} {
		if err := read(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (f *form) times(s *sim.Scenario) error {
	switch {
	case s.Name == "":
		return fail("scenario", "is empty: name it")
	case s.Duration <= 0 || s.Duration > maxDuration:
		return fail("duration", "is %v: choose more than 0 and at most %v", s.Duration, maxDuration)
	case s.Warmup >= s.Duration:
		return fail("warmup", "is %v and the duration only %v: leave something to measure", s.Warmup, s.Duration)
	case s.Runs < 1 || s.Runs > 10_000:
		return fail("runs", "is %d: choose 1 to 10000", s.Runs)
	}
	return nil
}

func (f *form) hosting(s *sim.Scenario) error {
	h := &f.Switch
	s.Switch = sim.Hosting{
		Ports: h.Ports, Rate: vnet.Rate(h.Rate), Crosspoint: vnet.Bytes(h.Crosspoint),
		Capped: h.Capped, Sharing: cmp.Or(h.Sharing, "strict"), MaxFrame: vnet.Bytes(h.MaxFrame),
	}
	switch {
	case h.Ports < 1 || h.Ports > maxPorts:
		return fail("switch.ports", "is %d: choose 1 to %d", h.Ports, maxPorts)
	case s.Switch.Rate < vnet.MinRate || s.Switch.Rate > vnet.MaxRate:
		return fail("switch.rate", "is %v: choose %v to %v", s.Switch.Rate, vnet.MinRate, vnet.MaxRate)
	case h.Crosspoint < 1:
		return fail("switch.crosspoint", "is %v: choose a size above 0", s.Switch.Crosspoint)
	case h.MaxFrame > maxSize:
		return fail("switch.max_frame", "is %v: choose at most %v", s.Switch.MaxFrame, vnet.Bytes(maxSize))
	}
	var err error
	s.Switch.Scheduler, err = sched.Parse(cmp.Or(h.Scheduler, "drr"))
	return cmp.Or(within(err, "switch.scheduler"), oneOf("switch.sharing", s.Switch.Sharing, []string{"strict", "flexible"}))
}

func oneOf(path, value string, of []string) error {
	if slices.Contains(of, value) {
		return nil
	}
	return fail(path, "%q is not known: choose one of %v", value, of)
}

// tenants makes the virtual switches, groups one by one.
func (f *form) tenants(s *sim.Scenario) error {
	total := 0
	for i := range f.VirtualSwitches {
		v := &f.VirtualSwitches[i]
		if v.Count < 0 || v.Count > maxSwitches {
			return fail(fmt.Sprintf("virtual_switches[%d].count", i), "is %d: choose 1 to %d", v.Count, maxSwitches)
		}
		total += max(v.Count, 1)
	}
	if total == 0 || total > maxSwitches {
		return fail("virtual_switches", "are %d: choose 1 to %d", total, maxSwitches)
	}
	for i := range f.VirtualSwitches {
		v := &f.VirtualSwitches[i]
		made, err := v.read(s, total)
		if err != nil {
			return within(err, "virtual_switches[%d]", i)
		}
		for _, name := range v.names() {
			if slices.ContainsFunc(s.VirtualSwitches, func(o sim.VirtualSwitch) bool { return o.Name == name }) {
				return fail(fmt.Sprintf("virtual_switches[%d].name", i), "%q is taken: names are unique", name)
			}
			made.Name = name
			s.VirtualSwitches = append(s.VirtualSwitches, made)
		}
	}
	return buffers(s)
}

// buffers bounds the virtual crosspoint buffers, about 200 bytes of memory
// each.
func buffers(s *sim.Scenario) error {
	n := 0
	for i := range s.VirtualSwitches {
		n += len(s.VirtualSwitches[i].Ports) * len(s.VirtualSwitches[i].Ports)
	}
	if n > maxBuffers {
		return fail("virtual_switches", "have %d crosspoints together: at most %d are possible, use fewer ports or virtual switches", n, maxBuffers)
	}
	return nil
}

// names of a group's virtual switches.
func (v *virtualSwitch) names() []string {
	if v.Count == 0 {
		return []string{v.Name}
	}
	var names []string
	for i := range v.Count {
		names = append(names, fmt.Sprintf("%s-%d", v.Name, i+1))
	}
	return names
}

func (v *virtualSwitch) read(s *sim.Scenario, total int) (sim.VirtualSwitch, error) {
	made := sim.VirtualSwitch{
		Ports: v.Ports, Rate: cmp.Or(vnet.Rate(v.Rate), s.Switch.Rate/vnet.Rate(total)), Police: v.Police,
		Buffer: cmp.Or(vnet.Bytes(v.Buffer), s.Switch.Crosspoint/vnet.Bytes(total)), Lend: float64(v.Lend),
		Quantum: vnet.Bytes(v.Quantum), Priority: v.Priority,
		InputQuantum: cmp.Or(vnet.Bytes(v.InputQuantum), 1500), InputPriorities: v.InputPriorities,
		Blocked: v.Blocked,
	}
	var noScheduler, noManager error
	made.Scheduler, noScheduler = sched.Parse(cmp.Or(v.Scheduler, "drr"))
	made.Manager, noManager = sched.ParseManager(cmp.Or(v.Manager, "tail-drop"))
	if len(made.Ports) == 0 {
		made.Ports = everyPort(s)
	}
	switch {
	case v.Name == "" || len(v.Name) > 40:
		return made, fail("name", "%q is no name: write 1 to 40 bytes", v.Name)
	case v.Lend > 1:
		return made, fail("lend", "is %v: choose 0 to 1", float64(v.Lend))
	case v.Priority < 0 || v.Priority > 63:
		return made, fail("priority", "is %d: choose 0 to 63", v.Priority)
	case len(v.InputPriorities) > 0 && len(v.InputPriorities) != len(made.Ports):
		return made, fail("input_priorities", "are %d for %d ports: give one for each", len(v.InputPriorities), len(made.Ports))
	case slices.ContainsFunc(v.InputPriorities, func(p int) bool { return p < 0 || p > 63 }):
		return made, fail("input_priorities", "must be 0 to 63 each")
	}
	for _, pair := range v.Blocked {
		if !slices.Contains(made.Ports, pair[0]) || !slices.Contains(made.Ports, pair[1]) {
			return made, fail("blocked", "names %v, which are not both its ports", pair)
		}
	}
	return made, cmp.Or(
		ports("ports", made.Ports, s), within(noScheduler, "scheduler"), within(noManager, "manager"))
}

func everyPort(s *sim.Scenario) []int {
	var list []int
	for i := range s.Switch.Ports {
		list = append(list, i+1)
	}
	return list
}

// ports checks a list of ports.
func ports(path string, list []int, s *sim.Scenario) error {
	for i, p := range list {
		if p < 1 || p > s.Switch.Ports {
			return fail(path, "names port %d: the switch has 1 to %d", p, s.Switch.Ports)
		}
		if slices.Contains(list[:i], p) {
			return fail(path, "names port %d twice", p)
		}
	}
	return nil
}

// largest frame of the traffic, unless it is stated.
func (f *form) largest(s *sim.Scenario) error {
	if f.Switch.MaxFrame > 0 {
		return nil
	}
	s.Switch.MaxFrame = 1514
	for i := range s.Traffic {
		s.Switch.MaxFrame = max(s.Switch.MaxFrame, s.Traffic[i].Largest())
	}
	return nil
}
