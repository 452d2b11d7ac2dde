package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"sublet/vnet"
)

// Form numbers the JSON of plans. A member that items get raises it once in each
// release, with a row in since: agents read no member that they do not know, so
// one of a former version is told that it does not know the plan. For one release
// after form 2 form 1 is read, and given to agents that do not ask for a form
// (SealIn). In form 1 switches of type vxswitch, and their ports, had sections of
// their own, and what is now in "engine" stood beside their other members; its
// agents pass over what they do not know, and those of form 2 do so inside items.
const Form = 3

// since says which sections, and which members of items (by their path in JSON),
// are younger than form 1: the form that brought them.
var since = map[string]uint64{
	"gateways":                  2,
	"setups":                    2,
	"links.ends.impair":         2,
	"links.ends.port.more":      2,
	"links.ends.join.more":      2,
	"pauses":                    3,
	"setups.files":              3,
	"setups.run.entrypoint":     3,
	"links.ends.down":           3,
	"accesses":                  3,
	"joins":                     3,
	"devices":                   3,
	"switches.openflow":         3,
	"switches.openflow.tls":     3,
	"switches.openflow.in_band": 3,
	"setups.kind":               3,
	"setups.disk_bytes":         3,
	"setups.restart":            3,
	"setups.state":              3,
	"setups.serial":             3,
	"setups.carried":            3,
	"routers.frr":               3,
	"reaches.pairs.to6":         3,
	"routers.frr.config":        3,
	"setups.user":               3,
	"setups.run.user":           3,
	"setups.files.owner":        3,

	"switches.engine.lend_percent": 3,
	"switches.engine.lookup":       3,
	"switches.engine.table":        3,
	"switches.engine.slices":       3,

	"chains":     3,
	"flows":      3,
	"nodes.auto": 3,

	"overlay.source": 3,

	"links.ends.port.queues": 3,
	"links.ends.join.queues": 3,

	"routers.neighbours": 3,
	"routers.classes":    3,
	"routers.keep":       3,
	"links.standby":      3,
	"links.ends.place":   3,
	"links.control":      3,
}

// formOf is the first form whose agents know an item with what it has.
func (s section) formOf(item Item) uint64 { return formOf(s.name, reflect.ValueOf(item)) }

// spare is an item without what agents of a form do not know and can do without: they ask
// for their neighbours.
func spare(item Item, form uint64) Item {
	if r, ok := item.(VxRouter); ok && form < since["routers.neighbours"] {
		r.Neighbours = nil
		return r
	}
	return item
}

// formOf is that of what stands at a path; what is zero is not there.
func formOf(path string, v reflect.Value) uint64 {
	if v.IsZero() {
		return 1
	}
	form := max(1, since[path])
	switch v.Kind() {
	case reflect.Pointer:
		form = max(form, formOf(path, v.Elem()))
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			form = max(form, formOf(path, v.Index(i)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if member, ok := memberPath(path, v.Type().Field(i)); ok {
				form = max(form, formOf(member, v.Field(i)))
			}
		}
	}
	return form
}

// memberPath is the path in JSON of a member of what stands at a path: that
// itself if the member is embedded. Not ok: JSON does not have it.
func memberPath(path string, f reflect.StructField) (string, bool) {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if f.Anonymous && name == "" {
		return path, true
	}
	return path + "." + cmp.Or(name, f.Name), f.IsExported() && name != "-"
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
	if err := unmarshal(text, &read); err != nil {
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
	if err := unmarshal(text, &read); err != nil {
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

// unmarshal is json.Unmarshal; a member that v has not is ErrUnknown.
func unmarshal(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	// The package has no type for this error.
	if err != nil && strings.HasPrefix(err.Error(), "json: unknown field") {
		return fmt.Errorf("%w: %w", err, ErrUnknown)
	}
	return err
}
