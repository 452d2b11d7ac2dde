package server

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"sublet/vnet"
)

// mostDiffering bounds how many elements differing names.
const mostDiffering = 10

// differing names elements that one of two substrates has and the other has not, or
// has otherwise.
func differing(a, b vnet.Substrate) []string {
	was, is := elements(a), elements(b)
	names := slices.Collect(maps.Keys(is))
	for name := range was {
		if _, stays := is[name]; !stays {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return reflect.DeepEqual(was[name], is[name]) })
	slices.Sort(names)
	if more := len(names) - mostDiffering; more > 0 {
		names = append(names[:mostDiffering], fmt.Sprintf("and %d more", more))
	}
	return names
}

// elements are those of a substrate, by kind and name; what has none by kind.
func elements(s vnet.Substrate) map[string]any {
	list := map[string]any{"relays": s.Relays, "forwards": s.Forwards}
	for _, name := range s.Switches {
		list["switch "+name] = true
	}
	for _, o := range s.OpenFlow {
		list["switch "+o.Name] = o
	}
	for _, h := range s.Hosts {
		list["host "+string(h.Name)] = h
	}
	for _, l := range s.Links {
		list["link "+l.Name] = l
	}
	for _, n := range s.NAT {
		list["way out "+n.Name] = n
	}
	for _, e := range s.Exits {
		list["exit "+e.Name] = e
	}
	for _, j := range s.Joins {
		list["join "+j.Name] = j
	}
	for _, d := range s.Devices {
		list["device "+d.Name] = d
	}
	return list
}
