package plan

import (
	"cmp"
	"encoding/json"

	"sublet/vnet"
)

// Form numbers the JSON of plans. In form 1 switches of type vxswitch, and
// their ports, had sections of their own, and what is now in "engine" stood
// beside their other members. For one release after it form 1 is read, and
// given to agents that do not ask for a form (SealIn), unless it has what they
// would pass over.
const Form = 2

// inForm1Too says whether agents that read form 1 know an item. They pass over
// what they do not know, so a plan with such an item is nothing for them.
func inForm1Too(item Item) bool {
	switch item := item.(type) {
	case Gateway, Setup:
		return false
	case VxLink:
		for _, end := range item.Ends {
			if end.Impair != (vnet.Impairment{}) || end.Port != nil && end.Port.More != nil || end.Join != nil && end.Join.More != nil {
				return false
			}
		}
	}
	return true
}

// formerSwitch and formerPort are items of form 1.
type (
	formerSwitch struct {
		plainSwitch
		*Engine
	}
	formerPort struct {
		plainPort
		*EnginePort
	}
	plainSwitch Switch
	plainPort   SwitchPort
)

// UnmarshalJSON reads a switch of either form. In form 1 only one of type
// vxswitch has members of an Engine beside the others.
func (s *Switch) UnmarshalJSON(text []byte) error {
	var read formerSwitch
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*s = Switch(read.plainSwitch)
	if read.Engine != nil {
		s.Type, s.Engine = vnet.SwitchEngine, read.Engine
	}
	s.Type = cmp.Or(s.Type, vnet.SwitchKernel)
	return nil
}

// UnmarshalJSON reads a port of either form, as that of Switch does.
func (p *SwitchPort) UnmarshalJSON(text []byte) error {
	var read formerPort
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*p = SwitchPort(read.plainPort)
	if read.EnginePort != nil {
		p.Type, p.Engine = vnet.SwitchEngine, read.EnginePort
	}
	p.Type = cmp.Or(p.Type, vnet.SwitchKernel)
	return nil
}

// inForm1 is an item of a section in form 1, and the name of its list.
func (s section) inForm1(item Item) (name string, written any) {
	if item.Kind() == KindVxSwitch || item.Kind() == KindVxSwitchPort {
		s.name = s.former
	}
	switch item := item.(type) {
	case Switch:
		plain := plainSwitch(item)
		plain.Engine = nil
		return s.name, formerSwitch{plain, item.Engine}
	case SwitchPort:
		plain := plainPort(item)
		plain.Engine = nil
		return s.name, formerPort{plain, item.Engine}
	}
	return s.name, item
}
