package vnet

import (
	"cmp"
	"reflect"
	"slices"
)

// vswitch checks a switch that appears at path.
func (c *checker) vswitch(path string, s VirtualSwitch, present map[string]string) error {
	if err := c.claim(path+".name", s.Name, "switch", present); err != nil {
		return err
	}
	if first, ok := c.switches[s.Name]; ok {
		if !reflect.DeepEqual(first, s) {
			return fieldf(path, "switch %q returns changed: write it as it was, or choose another name", s.Name)
		}
		return nil
	}
	c.switches[s.Name], c.switchPath[s.Name] = s, path
	return s.check(path)
}

// check checks a switch by itself; its ports' links are checked when all are
// known.
func (s VirtualSwitch) check(path string) error {
	switch s.Kind {
	case SwitchKernel, SwitchEngine, SwitchOpenFlow:
	default:
		return fieldf(path+".kind", "%q is not a kind of switch: use kernel, vxswitch or openflow, or leave it out for kernel", string(s.Kind))
	}
	if s.Ageing != 0 && (s.Ageing < MinAgeing || s.Ageing > MaxAgeing) {
		return fieldf(path+".ageing", "%s is not between %s and %s: leave it out for %s", s.Ageing, FormatDuration(MinAgeing), FormatDuration(MaxAgeing), FormatDuration(DefaultAgeing))
	}
	if err := s.openFlow(path); err != nil {
		return err
	}
	for _, link := range sortedKeys(s.Ports) {
		where := key(path+".ports", link)
		if err := cmp.Or(s.Ports[link].engine(where, s.Kind), s.Ports[link].check(where)); err != nil {
			return err
		}
	}
	return cmp.Or(s.engine(path), s.checkAccess(path), s.node(nil).check(path, "switch"))
}

func (p SwitchPort) check(path string) error {
	for _, n := range []struct {
		field     string
		value     int
		most, def int
	}{
		{".macs", p.MACs, MaxMACs, DefaultMACs},
		{".broadcast_pps", p.Broadcast, MaxFlood, DefaultFlood},
		{".unknown_pps", p.Unknown, MaxFlood, DefaultFlood},
	} {
		if n.value < 0 || n.value > n.most {
			return fieldf(path+n.field, "%d is not between 1 and %d: leave it out for %d", n.value, n.most, n.def)
		}
	}
	for i, link := range p.To {
		if slices.Contains(p.To[:i], link) {
			return fieldf(at(path+".to", i), "%q is there already: name each port once", link)
		}
	}
	return nil
}

// ports checks that the ports of every switch are links that end there, in
// one stage or another, and that there are not too many.
func (c *checker) ports() error {
	count := make(map[string]int)
	for _, l := range c.links {
		count[l.Ends[0]]++
		count[l.Ends[1]]++
	}
	for _, name := range sortedKeys(c.switches) {
		s, path := c.switches[name], c.switchPath[name]
		if most := s.mostPorts(); count[name] > most {
			return fieldf(path, "%d links end at switch %q, more than %d: use several switches", count[name], name, most)
		}
		if err := cmp.Or(c.crosspoints(path, s), c.rows(path, s)); err != nil {
			return err
		}
		for _, link := range sortedKeys(s.Ports) {
			where := key(path+".ports", link)
			if err := c.port(where, link, name); err != nil {
				return err
			}
			for i, to := range s.Ports[link].To {
				if to == link {
					return fieldf(at(where+".to", i), "%q is the port itself: a frame never leaves by the port it came by", to)
				}
				if err := c.port(at(where+".to", i), to, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s VirtualSwitch) mostPorts() int {
	if s.Kind == SwitchEngine {
		return MaxEnginePorts
	}
	if s.Access != "" {
		return MaxPorts - 1
	}
	return MaxPorts
}

// crosspoints checks that crosspoints are between ports of the switch.
func (c *checker) crosspoints(path string, s VirtualSwitch) error {
	for i, x := range s.Crosspoints {
		where := at(path+".crosspoints", i)
		if err := cmp.Or(c.port(where+".from", x.From, s.Name), c.port(where+".to", x.To, s.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) port(path, link, vswitch string) error {
	if l, ok := c.links[link]; ok && slices.Contains(l.Ends[:], vswitch) {
		return nil
	}
	var here []string
	for name, l := range c.links {
		if slices.Contains(l.Ends[:], vswitch) {
			here = append(here, name)
		}
	}
	slices.Sort(here)
	if near := Nearest(link, here); near != "" {
		return fieldf(path, "no link %q ends at switch %q: did you mean %q?", link, vswitch, near)
	}
	return fieldf(path, "no link %q ends at switch %q: name a link that does", link, vswitch)
}
