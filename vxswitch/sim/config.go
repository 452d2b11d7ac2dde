package sim

import (
	"slices"

	"sublet/vxswitch"
)

// config is the hosting switch in the words of the engine. The engine counts
// ports from 0, scenarios from 1: its port 0 stays empty, so that both speak
// of the same numbers.
func (s *Scenario) config(seed uint64) vxswitch.Config {
	h := &s.Switch
	port := vxswitch.PhysicalPort{In: h.Rate, Out: h.Rate, Scheduler: h.Scheduler, Capped: h.Capped}
	c := vxswitch.Config{
		Ports: slices.Repeat([]vxswitch.PhysicalPort{port}, h.Ports+1), Crosspoint: h.Crosspoint,
		MaxFrame: h.MaxFrame, MaxSwitches: len(s.VirtualSwitches), Seed: seed,
	}
	if h.Sharing == "flexible" {
		c.Sharing = vxswitch.Flexible
	}
	return c
}

// virtual is a virtual switch in the words of the engine.
func (s *Scenario) virtual(v *VirtualSwitch) vxswitch.Virtual {
	made := vxswitch.Virtual{Name: v.Name, Reach: v.matrix()}
	for _, p := range v.Ports {
		made.Ports = append(made.Ports, vxswitch.Port{
			Physical: p, In: v.Rate, Out: v.Rate, Police: v.Police,
			Quantum: v.Quantum, Priority: v.Priority, Scheduler: v.Scheduler,
		})
	}
	made.Buffer = vxswitch.Crosspoint{Size: v.Buffer, Lend: v.Lend, Manager: v.Manager, Quantum: v.InputQuantum}
	if v.InputPriorities != nil {
		made.Crosspoints = make([][]vxswitch.Crosspoint, len(v.Ports))
		for in := range made.Crosspoints {
			c := made.Buffer
			c.Priority = v.InputPriorities[in]
			made.Crosspoints[in] = slices.Repeat([]vxswitch.Crosspoint{c}, len(v.Ports))
		}
	}
	return made
}

// matrix of what reaches what, nil if everything does.
func (v *VirtualSwitch) matrix() [][]bool {
	if len(v.Blocked) == 0 {
		return nil
	}
	m := make([][]bool, len(v.Ports))
	for i, in := range v.Ports {
		for _, out := range v.Ports {
			m[i] = append(m[i], !slices.Contains(v.Blocked, [2]int{in, out}))
		}
	}
	return m
}

// Check says whether the hosting switch takes all the virtual switches.
func (s *Scenario) Check() error {
	return (&run{s: s}).lease(0)
}
