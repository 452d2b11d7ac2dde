package vxswitch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sublet/datapath/kernel"
	"sublet/datapath/vxswitch/live"
	"sublet/plan"
	"sublet/vnet"
)

// state is what the process is to be, in words of the plan.
type state struct {
	Switches []plan.Switch     `json:"switches"` // with an engine
	Ports    []plan.SwitchPort `json:"ports"`    // likewise
}

func (s *state) clone() *state {
	return &state{slices.Clone(s.Switches), slices.Clone(s.Ports)}
}

func (s *state) empty() bool { return len(s.Switches)+len(s.Ports) == 0 }

func (s *state) setSwitch(item plan.Switch, gone bool) {
	s.Switches = set(s.Switches, item, gone)
	if gone {
		s.Ports = slices.DeleteFunc(s.Ports, func(p plan.SwitchPort) bool { return isOf(p, item) })
	}
}

func (s *state) setPort(item plan.SwitchPort, gone bool) { s.Ports = set(s.Ports, item, gone) }

func isOf(port plan.SwitchPort, sw plan.Switch) bool {
	return port.Lease == sw.Lease && port.Switch == sw.Switch
}

// set puts an item in place of the one of its key, or takes that out.
func set[T plan.Item](list []T, item T, gone bool) []T {
	i := slices.IndexFunc(list, func(o T) bool { return o.Key() == item.Key() })
	switch {
	case gone && i >= 0:
		return slices.Delete(list, i, i+1)
	case gone:
		return list
	case i >= 0:
		list[i] = item
		return list
	}
	return append(list, item)
}

// dir has the state, the process's description and its socket.
func (p *Part) dir() string { return p.host.Dir("vxswitch") }

func (p *Part) file(name string) string { return filepath.Join(p.dir(), name) }

// load reads the state; none is an empty one, unless a process runs whose socket
// is not there either: then both are somewhere else. One that is damaged is told
// as it is: Observe lists nothing then, and everything is set anew.
func (p *Part) load() (*state, error) {
	s := &state{}
	if err := errors.Join(p.host.LookGroups(), p.host.Look("vxswitch")); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(p.file("state.json"))
	if errors.Is(err, os.ErrNotExist) {
		return s, p.lost()
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", p.file("state.json"), kernel.ErrUnseen, err)
	}
	if json.Unmarshal(text, s) != nil || !s.complete() {
		return &state{}, nil
	}
	return s, nil
}

// complete says that every item is one of this part's.
func (s *state) complete() bool {
	return !slices.ContainsFunc(s.Switches, func(sw plan.Switch) bool { return sw.Engine == nil }) &&
		!slices.ContainsFunc(s.Ports, func(p plan.SwitchPort) bool { return p.Engine == nil })
}

// lost says that a process runs and nothing of it is where it should be.
func (p *Part) lost() error {
	pids, err := p.group().Processes()
	if err != nil || len(pids) == 0 {
		return err
	}
	if _, err := os.Lstat(p.file("socket")); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%s %w: it is missing, and the hosting switch runs (process %d)", p.file("state.json"), kernel.ErrUnseen, pids[0])
}

func (p *Part) save(s *state) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return p.write("state.json", text)
}

// write replaces a file at once: one who dies half-way leaves the old one.
func (p *Part) write(name string, text []byte) error {
	if err := kernel.MkdirAll(p.dir(), 0o700); err != nil {
		return err
	}
	fresh := p.file(name + ".new")
	if err := os.WriteFile(fresh, text, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, p.file(name))
}

// config is the process's description. Ports whose device is not there are
// left out, which would keep the others from working, and switches without any.
func (p *Part) config(s *state) (*live.Config, error) {
	c := &live.Config{Sharing: "flexible", Spin: live.Span(spin), Ports: []live.PortConfig{}}
	for _, sw := range s.Switches {
		v := live.VirtualConfig{
			Name: sw.Key(), Ports: []live.VirtualPortConfig{}, Buffer: live.Size(sw.Engine.Buffer), Scheduler: sw.Engine.Scheduler,
			Manager: sw.Engine.Manager, Ageing: live.Span(sw.Ageing),
		}
		ports, err := p.present(s, sw)
		if err != nil {
			return nil, err
		}
		if len(ports) == 0 {
			continue
		}
		for _, port := range ports {
			c.Ports = append(c.Ports, p.port(sw, port))
			v.Ports = append(v.Ports, live.VirtualPortConfig{Port: port.Key(), In: rateOf(port.Engine.In), Out: rateOf(port.Engine.Out), Own: port.Engine.Scheduler})
		}
		v.Cross, v.Blocked = crosses(sw, ports)
		v.Stations = stations(sw, ports)
		v.Lend, v.Lookup, v.Table = part(sw.Engine.Lend), sw.Engine.Lookup, rows(sw.Engine.Lookup, sw.Engine.Table, ports)
		c.Switches = append(c.Switches, sliced(v, sw, ports)...)
	}
	return c, nil
}

// present are the ports of a switch that have a device.
func (p *Part) present(s *state, sw plan.Switch) (list []plan.SwitchPort, err error) {
	there, err := p.devices(sw.Key())
	if err != nil {
		return nil, err
	}
	for _, port := range s.Ports {
		if isOf(port, sw) && there[port.Interface] != 0 {
			list = append(list, port)
		}
	}
	return list, nil
}

// devices are the indexes of the devices in a namespace; none if there is none.
func (p *Part) devices(key string) (map[string]int, error) {
	there := map[string]int{}
	ns, err := p.host.Open(key)
	if errors.Is(err, os.ErrNotExist) {
		return there, p.host.Unseen(key)
	}
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	c, err := kernel.DialIn(ns)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	links, err := c.Links()
	for _, l := range links {
		there[l.Name] = l.Index
	}
	return there, err
}

// crosses are the crosspoints that differ and the pairs that may not talk.
func crosses(sw plan.Switch, ports []plan.SwitchPort) (list []live.CrossConfig, blocked [][2]string) {
	for _, from := range ports {
		for _, to := range ports {
			if from.Interface == to.Interface {
				continue
			}
			if len(from.To) > 0 && !slices.Contains(from.To, to.Interface) {
				blocked = append(blocked, [2]string{from.Key(), to.Key()})
			}
			x := live.CrossConfig{From: from.Key(), To: to.Key(), Quantum: live.Size(from.Engine.Quantum), Priority: from.Engine.Priority}
			differs := from.Engine.Quantum != 0 || from.Engine.Priority != 0
			for _, c := range sw.Engine.Crosspoints {
				if c.From == from.Interface && c.To == to.Interface {
					x.Buffer, x.Manager, differs = live.Size(c.Buffer), c.Manager, true
				}
			}
			if differs {
				list = append(list, x)
			}
		}
	}
	return list, blocked
}

// stations are the planned ones behind ports that are there.
func stations(sw plan.Switch, ports []plan.SwitchPort) (list []live.StationConfig) {
	for _, st := range sw.Stations {
		i := slices.IndexFunc(ports, func(p plan.SwitchPort) bool { return p.Interface == st.Interface })
		if i >= 0 {
			list = append(list, live.StationConfig{MAC: st.Hardware.String(), Address: st.Address.String(), Port: ports[i].Key()})
		}
	}
	return list
}

// rateOf is a capacity; none is what a port has.
func rateOf(r vnet.Rate) live.Rate {
	if r == 0 {
		r = live.DefaultRate
	}
	return live.Rate(r)
}

// cpu is the limit of the process: what its switches have booked, if all of
// them have.
func (s *state) cpu() (sum vnet.CPU) {
	for _, sw := range s.Switches {
		if sw.Engine.CPU == 0 {
			return 0
		}
		sum += sw.Engine.CPU
	}
	return sum
}

var errNoSwitch = errors.New("the hosting switch does not answer")
