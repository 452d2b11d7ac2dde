// Package vxdl reads and writes VXDL, the XML request language of HIPerNet
// (Koslovski et al., 2008; Anhalt, thesis, section 6.3.2). The reader takes
// version 2.0 (namespace http://www.vxdlforum.org/vxdl), the dialect of Aurora
// (no namespace, ids as attributes) and, unless strict, the older variant of
// 2.0; the writer gives 2.0.
//
// VXDL and vnet.Request do not say the same things. What a conversion loses
// or changes is returned as Notes, never silently; what would change the
// meaning of a lease (storage, load balancers) is refused.
//
// Meaning given to what the language leaves open:
//
//   - simple is a static reservation, interval/min a guaranteed minimum,
//     interval/max an allowed maximum; an empty interval is best effort, and
//     so is a link without bandwidth. set and scale become the interval that
//     holds all their values.
//   - A missing reverse is the same as forward.
//   - In a capacity, event NAME is followed by the value that holds from then
//     on; a value before any event holds from the start. Delays are seconds.
//   - A vArray of id a and n members, each of one resource, becomes a-0 to
//     a-(n-1); of several, a-0-RESOURCE and so on. A vLink that names it
//     becomes one link for each member.
package vxdl

import (
	"errors"
	"fmt"
	"strings"

	"sublet/vnet"
)

// Namespace of the elements of version 2.0.
const Namespace = "http://www.vxdlforum.org/vxdl"

// Limits of a document: bytes, depth, elements, attributes of one element. The
// largest legal request has about 400,000 elements.
const (
	MaxSize       = 4 << 20
	MaxDepth      = 64
	MaxElements   = 500_000
	MaxAttributes = 32
)

// Note is one thing a conversion lost or changed.
type Note = vnet.Note

// Parse reads a request, fills in defaults and checks it. The name is used in
// errors only, which are *vnet.InputError. Strict refuses elements and
// attributes that neither 2.0 nor Aurora has; otherwise they become Notes.
func Parse(name string, text []byte, strict bool) (vnet.Request, []Note, error) {
	root, err := parseTree(name, text)
	if err != nil {
		return vnet.Request{}, nil, err
	}
	r := &reader{
		file: name, text: text, strict: strict,
		places: make(map[string]*element), taken: make(map[string]int),
		groups: make(map[string]group), members: make(map[string]bool), links: make(map[string]*element),
	}
	if err := r.document(root); err != nil {
		return vnet.Request{}, nil, err
	}
	r.request.Fill()
	if err := r.request.Check(); err != nil {
		return vnet.Request{}, nil, r.explain(root, err)
	}
	return r.request, r.notes, nil
}

// reader turns a tree into a request.
type reader struct {
	file    string
	text    []byte
	strict  bool
	aurora  bool
	request vnet.Request
	notes   []Note

	places  map[string]*element // by path of the request, for errors of Check
	taken   map[string]int      // names given so far, with the number of their last duplicate
	groups  map[string]group    // what a vLink may name, by id in the document
	members map[string]bool     // names of nodes, which a vLink may name too
	links   map[string]*element // vLinks read, by id in the document
	events  map[string]int      // index of a stage, by id in the document
}

// fail returns an error at an element.
func (r *reader) fail(e *element, format string, args ...any) error {
	return e.fail(r.file, format, args...)
}

// note keeps what was read in a way that the text leaves open, or changed.
func (r *reader) note(e *element, format string, args ...any) {
	r.notes = append(r.notes, Note{Line: e.line, Column: e.column, Where: e.label(), Text: fmt.Sprintf(format, args...)})
}

// lose keeps what was lost at an element.
func (r *reader) lose(e *element, format string, args ...any) {
	r.note(e, format, args...)
	r.notes[len(r.notes)-1].Lost = true
}

// explain gives an error of Check its place: that of the nearest element.
func (r *reader) explain(root *element, err error) error {
	var field *vnet.FieldError
	if !errors.As(err, &field) {
		return r.fail(root, "%v", err)
	}
	for path := field.Path; path != ""; path = path[:max(strings.LastIndexAny(path, ".["), 0)] {
		if e, ok := r.places[path]; ok {
			return r.fail(e, "%v", field)
		}
	}
	return r.fail(root, "%v", field)
}
