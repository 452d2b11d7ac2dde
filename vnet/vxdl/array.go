package vxdl

import (
	"strconv"

	"sublet/vnet"
)

// array is a vArray being expanded; the zero value is none.
type array struct {
	id      string
	size    int
	site    string
	several bool // resources in each member
}

// names gives the ids of an element's members before they are made valid.
func (a array) names(id string) []string {
	if a.id == "" {
		return []string{id}
	}
	var names []string
	for i := range a.size {
		name := a.id + "-" + strconv.Itoa(i)
		if a.several {
			name += "-" + id
		}
		names = append(names, name)
	}
	return names
}

// array reads a vArray, and puts its links behind those that wait.
func (r *reader) array(e *element, links *[]func() error) error {
	f, err := r.fields(e, "vArray")
	if err != nil {
		return err
	}
	a, err := r.arrayOf(e, f)
	if err != nil {
		return err
	}
	all := group{element: e, array: a.id}
	for _, c := range e.children {
		if c.space != r.space() {
			continue
		}
		switch c.name {
		case "vNode", "vRouter", "vAccessPoint", "vStorage":
			all.names, err = r.resource(c, a)
		case "vLink":
			*links = append(*links, func() error { return r.link(c, a) })
		}
		if err != nil {
			return err
		}
	}
	r.note(e, "expanded to %d members", a.size)
	if a.several {
		all.names = nil
	}
	return r.declare(a.id, all)
}

func (r *reader) arrayOf(e *element, f fields) (array, error) {
	id, err := r.id(e, f)
	if err != nil {
		return array{}, err
	}
	size, err := strconv.Atoi(f.value("cardinality"))
	if err != nil || size < 1 || size > vnet.MaxNodes {
		return array{}, r.fail(e, "cardinality %q is not a number from 1 to %d", short(f.value("cardinality")), vnet.MaxNodes)
	}
	a := array{id: id, size: size, several: len(f["vNode"])+len(f["vRouter"])+len(f["vAccessPoint"]) > 1}
	if location := f.one("location"); location != nil {
		a.site = r.valid(location, "location", location.value())
	}
	return a, nil
}
