package lease

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sublet/vnet"
)

// revised is a lease's request with what may change taken from another: the
// length of the window, labels, what counter-offers may differ in, whether links
// may be moved, and the bandwidths, impairments and failures of links, at the
// start and in stages. A start that is not stated, or was chosen in the time that is stated,
// stays. The error names the first other difference.
func revised(was, asked vnet.Request) (vnet.Request, error) {
	asked = settled(was, asked)
	type place struct{ link, stage string }
	wanted := make(map[place][2]vnet.Bandwidth)
	copied := rewrite(asked)
	eachBandwidth(&copied, func(link, stage string, both *[2]vnet.Bandwidth) { wanted[place{link, stage}] = *both })
	is := rewrite(was)
	is.For, is.Negotiable, is.Movable, is.Labels, is.Verify = asked.For, asked.Negotiable, asked.Movable, asked.Labels, asked.Verify
	eachBandwidth(&is, func(link, stage string, both *[2]vnet.Bandwidth) {
		if other, ok := wanted[place{link, stage}]; ok {
			*both = other
		}
	})
	reviseLinks(&is, asked)
	before, after, err := trees(is, asked)
	if err != nil {
		return is, err
	}
	if path, how := difference(before, after); how != "" {
		return is, &vnet.FieldError{Path: strings.TrimPrefix(path, "."), Problem: how + ": only rates, impairments and failures of links, the window's end, labels, movable and negotiable of a network can be changed; for anything else release it and ask anew"}
	}
	return is, nil
}

// settled is a request with what it leaves open as the lease has it.
func settled(was, asked vnet.Request) vnet.Request {
	asked = rewrite(asked)
	asked.Fill()
	asked.TakeOrders(was)
	asked.TakeWays(was)
	takeBegun(&asked, was)
	if asked.Tenant == "" {
		asked.Tenant = was.Tenant
	}
	if asked.Start.IsZero() {
		asked.Start, asked.Before = was.Start, was.Before
	} else if asked.Before.Equal(was.Before) && !was.Start.After(was.Before) && asked.Start.Before(was.Start) {
		asked.Start = was.Start
	}
	return asked
}

// takeBegun gives stages on command the instants at which they began.
func takeBegun(asked *vnet.Request, was vnet.Request) {
	for i := range asked.Stages[:min(len(asked.Stages), len(was.Stages))] {
		s := &asked.Stages[i]
		if s.OnCommand && s.After == 0 && was.Stages[i].OnCommand && was.Stages[i].Name == s.Name {
			s.After = was.Stages[i].After
		}
	}
}

// reviseLinks takes impairments and failures of another request, link by link.
func reviseLinks(r *vnet.Request, asked vnet.Request) {
	from := topologies(&asked)
	for i, t := range topologies(r)[:min(len(r.Stages), len(asked.Stages))+1] {
		wanted := make(map[string]vnet.VirtualLink)
		for _, l := range from[i].Links {
			wanted[l.Name] = l
		}
		for j, l := range t.Links {
			if other, ok := wanted[l.Name]; ok {
				t.Links[j].Impair, t.Links[j].Down = other.Impair, other.Down
			}
		}
		if i > 0 {
			r.Stages[i-1].Impair, r.Stages[i-1].Down = asked.Stages[i-1].Impair, asked.Stages[i-1].Down
		}
	}
}

// trees are requests as JSON has them, so that what is left out and what is
// empty are the same.
func trees(a, b vnet.Request) (before, after any, err error) {
	for _, side := range []struct {
		of   vnet.Request
		into *any
	}{{a, &before}, {b, &after}} {
		text, err := json.Marshal(side.of)
		if err == nil {
			err = json.Unmarshal(text, side.into)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("compare requests: %w", err)
		}
	}
	return before, after, nil
}

// difference is the path of the first difference between two JSON values and
// what it is; "": there is none. Elements of lists that have names are compared
// by name, in whatever order they are.
func difference(was, is any) (path, how string) {
	a, object := was.(map[string]any)
	b, both := is.(map[string]any)
	if object && both {
		return differenceOfObjects(a, b)
	}
	x, list := was.([]any)
	y, both := is.([]any)
	if list && both {
		return differenceOfLists(x, y)
	}
	if reflect.DeepEqual(was, is) {
		return "", ""
	}
	return "", fmt.Sprintf("is %s, and was %s", inWords(is), inWords(was))
}

func differenceOfObjects(was, is map[string]any) (path, how string) {
	names := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a, b := was[name], is[name]
		if list, ok := b.([]any); ok && a == nil { // so that what is added is named
			a = list[:0]
		} else if list, ok := a.([]any); ok && b == nil {
			b = list[:0]
		}
		field := map[string]string{"addresses": "address", "interfaces": "interface"}[name] // of a link's ends
		if field != "" {
			a, b = ofBothEnds(a), ofBothEnds(b)
		}
		path, how := difference(a, b)
		if end, rest, ok := strings.Cut(path, "]"); ok && how != "" && field != "" {
			return ".ends" + end + "]." + field + rest, how
		}
		if how != "" {
			return "." + fieldName(name) + path, how
		}
	}
	return "", ""
}

// ofBothEnds is a list of two, of what a link states of its ends.
func ofBothEnds(value any) any {
	if list, ok := value.([]any); ok && len(list) == 2 {
		return list
	}
	return []any{nil, nil}
}

func differenceOfLists(was, is []any) (path, how string) {
	there := byName(was)
	for i, b := range is {
		a, found := counterpart(was, there, b, i)
		if !found {
			return fmt.Sprintf("[%d]", i), inWords(b) + " is new"
		}
		if path, how := difference(a, b); how != "" {
			return fmt.Sprintf("[%d]", i) + path, how
		}
	}
	here := byName(is)
	for i, a := range was {
		if _, found := counterpart(is, here, a, i); !found {
			return "", inWords(a) + " is missing"
		}
	}
	return "", ""
}

// byName finds the elements of a list that have names.
func byName(list []any) map[string]any {
	names := make(map[string]any, len(list))
	for _, element := range list {
		if name := nameOf(element); name != "" {
			names[name] = element
		}
	}
	return names
}

// counterpart is the element of a list that has the name of another one, or
// its place if that has no name.
func counterpart(list []any, names map[string]any, of any, place int) (element any, found bool) {
	if name := nameOf(of); name != "" {
		element, found = names[name]
		return element, found
	}
	if found = place < len(list); found {
		element = list[place]
	}
	return element, found
}

func nameOf(element any) string {
	object, _ := element.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// inWords is a JSON value for a message.
func inWords(value any) string {
	if name := nameOf(value); name != "" {
		return name
	}
	switch v := value.(type) {
	case nil:
		return "not stated"
	case string:
		return shortened(strconv.Quote(v))
	case map[string]any, []any:
		return "something else"
	}
	return fmt.Sprint(value)
}

// fieldName is what the native form calls a field of the JSON.
func fieldName(name string) string {
	for _, unit := range []string{"_ns", "_milli", "_bytes", "_bps"} {
		name = strings.TrimSuffix(name, unit)
	}
	switch name {
	case "start", "before":
		return "window." + name
	}
	return name
}

func lengthWord(r vnet.Request) string {
	if r.For == 0 {
		return "until released"
	}
	return vnet.FormatDuration(r.For)
}

func axesWord(r vnet.Request) string {
	words := make([]string, len(r.Negotiable))
	for i, axis := range r.Negotiable {
		words[i] = string(axis)
	}
	if len(words) == 0 {
		return "all"
	}
	return strings.Join(words, ", ")
}
