package file

import (
	"strconv"

	"sublet/vnet"
)

// flowSlices converts the slices of a switch of kind openflow.
func (f vswitch) flowSlices(path string, o *vnet.OpenFlowOptions) error {
	for i, x := range f.FlowSlices {
		to := vnet.FlowSlice{Name: string(x.Name), Controllers: x.Controller, Default: x.Default, Links: words(x.Links)}
		if x.Match != nil {
			to.Match = rowsOf([]switchRow{*x.Match})[0]
		}
		for _, n := range []struct {
			field string
			from  *int
			to    *int
		}{{".tables", x.Tables, &to.Tables}, {".entries", x.Entries, &to.Entries}, {".groups", x.Groups, &to.Groups}, {".meters", x.Meters, &to.Meters}} {
			if n.from == nil {
				continue
			}
			if *n.to = *n.from; *n.to == 0 {
				return &vnet.FieldError{Path: path + ".flow_slices[" + strconv.Itoa(i) + "]" + n.field, Problem: "0 is none: state at least 1, or leave it out for the default"}
			}
		}
		o.FlowSlices = append(o.FlowSlices, to)
	}
	return nil
}

func flowSlicesForm(all []vnet.FlowSlice) (list []flowSlice) {
	for _, x := range all {
		f := flowSlice{
			Name: name(x.Name), Controller: x.Controllers, Default: x.Default, Links: names(x.Links),
			Tables: stated(x.Tables), Entries: stated(x.Entries), Groups: stated(x.Groups), Meters: stated(x.Meters),
		}
		if x.Match.States() {
			f.Match = &tableForm([]vnet.SwitchRow{x.Match})[0]
		}
		list = append(list, f)
	}
	return list
}
