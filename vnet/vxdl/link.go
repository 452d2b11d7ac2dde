package vxdl

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"sublet/vnet"
)

// link reads a vLink and appends it once, or once for each member of the array
// it stands in or names.
func (r *reader) link(e *element, a array) error {
	f, err := r.fields(e, "vLink")
	if err != nil {
		return err
	}
	id, err := r.id(e, f)
	if err != nil {
		return err
	}
	if first, ok := r.links[id]; ok {
		return r.fail(e, "the id stands twice, first on line %d: choose another", first.line)
	}
	r.links[id] = e
	ends, err := r.ends(e, f, a)
	if err != nil {
		return err
	}
	made, stages, err := r.properties(e, f)
	if err != nil {
		return err
	}
	if len(r.request.Links)+len(ends) > vnet.MaxLinks {
		return r.fail(e, "the document has more than %d links: split it", vnet.MaxLinks)
	}
	for i, pair := range ends {
		name := id
		if a.id != "" || len(ends) > 1 || r.namesArray(f) {
			name = id + "-" + strconv.Itoa(i)
		}
		made.Name, made.Ends, made.Labels = r.claim(e, name), pair, maps.Clone(made.Labels)
		r.places[fmt.Sprintf("links[%d]", len(r.request.Links))] = e
		r.request.Links = append(r.request.Links, made)
		r.stage(e, made.Name, stages)
	}
	return nil
}

// stage adds a link's later rates to the stages.
func (r *reader) stage(e *element, name string, rates map[int][2]vnet.Bandwidth) {
	for i, both := range rates {
		s := &r.request.Stages[i]
		if s.Links == nil {
			s.Links = make(map[string][2]vnet.Bandwidth)
		}
		s.Links[name] = both
		r.places[fmt.Sprintf("stages[%d].links.%s", i, name)] = e
	}
}

// namesArray says that an end of the link is an array of any size.
func (r *reader) namesArray(f fields) bool {
	for _, end := range []string{"source", "destination"} {
		if g := r.groups[r.reference(f.one(end))]; g.array != "" {
			return true
		}
	}
	return false
}

// reference is what an end names. In Aurora it is an element of its own.
func (r *reader) reference(end *element) string {
	if end == nil {
		return ""
	}
	for _, c := range end.children {
		if r.aurora && (c.name == "vNode" || c.name == "vRouter") {
			return c.value()
		}
	}
	return end.value()
}

// ends gives the two ends of every link that a vLink stands for.
func (r *reader) ends(e *element, f fields, a array) ([][2]string, error) {
	source, err := r.end(e, f, "source")
	if err != nil {
		return nil, err
	}
	destination, err := r.end(e, f, "destination")
	if err != nil {
		return nil, err
	}
	size := max(len(source.names), len(destination.names))
	if a.id != "" {
		size = a.size
	}
	var ends [][2]string
	for i := range size {
		from, ok := source.pick(i, a, destination)
		to, also := destination.pick(i, a, source)
		if !ok || !also {
			return nil, r.fail(e, "joins two arrays, of which it is not said how: write links between single members")
		}
		ends = append(ends, [2]string{from, to})
	}
	return ends, nil
}

// pick returns the node that link i of a group of links ends at.
func (g group) pick(i int, a array, other group) (string, bool) {
	switch {
	case g.array == "":
		return g.names[0], true
	case a.id != "":
		return g.names[min(i, len(g.names)-1)], g.array == a.id
	}
	return g.names[min(i, len(g.names)-1)], other.array == ""
}

func (r *reader) end(e *element, f fields, name string) (group, error) {
	end := f.one(name)
	if end == nil {
		return group{}, r.fail(e, "has no %s: add one", name)
	}
	if r.aurora {
		if _, err := r.fields(end, name); err != nil {
			return group{}, err
		}
	}
	id := r.reference(end)
	g, ok := r.groups[id]
	switch {
	case ok && len(g.names) > 0:
		return g, nil
	case ok:
		return g, r.fail(end, "%q is an array of several resources: name one of them", short(id))
	case r.members[id]:
		return group{element: end, names: []string{id}}, nil
	}
	if near := vnet.Nearest(id, slices.Sorted(maps.Keys(r.groups))); near != "" {
		return g, r.fail(end, "no resource %q: did you mean %q?", short(id), short(near))
	}
	return g, r.fail(end, "no resource %q: add one, or name another", short(id))
}

// properties reads everything of a link but its name and ends.
func (r *reader) properties(e *element, f fields) (vnet.VirtualLink, map[int][2]vnet.Bandwidth, error) {
	var l vnet.VirtualLink
	labels, exclusive, err := r.common(e, f)
	if err != nil {
		return l, nil, err
	}
	if exclusive {
		r.lose(f.one("exclusivity"), "of a link is not kept: state its bandwidth")
	}
	if location := f.one("location"); location != nil {
		r.lose(location, "of a link is not kept: state that of its ends")
	}
	l.Labels = someLabels(labels)
	if l.Latency, err = r.latency(f.one("latency")); err != nil {
		return l, nil, err
	}
	stages, err := r.bandwidth(&l, f.one("bandwidth"))
	return l, stages, err
}

// latency reads a bound on the path.
func (r *reader) latency(e *element) (time.Duration, error) {
	if e == nil {
		return 0, nil
	}
	c, err := r.capacity(e, latencyUnits)
	if err != nil {
		return 0, err
	}
	a := c.start
	if len(c.stages) > 0 {
		r.lose(e, "does not change with events: only rates do")
		for i := 0; a == nil; i++ {
			a = c.stages[i]
		}
	}
	switch {
	case a.high <= 0:
		r.note(e, "states no maximum above zero: no bound is kept")
		return 0, nil
	case a.choice:
		r.note(e, "the largest of the alternatives is the bound")
	case !a.simple && a.low > 0 && a.low < a.high:
		r.lose(e, "the minimum is not kept: only a maximum bounds a path")
	}
	return time.Duration(a.high), nil
}
