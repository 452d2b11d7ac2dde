// Package file reads and writes the native YAML form of requests and
// substrates, and reads policies. The form structs in form_*.go are the only place that names its
// fields: the decoder, the writer and the published JSON Schemas
// (docs/schema) all come from them.
//
// Every error of a reader is a *vnet.InputError: one line,
// FILE:LINE:COLUMN, what is wrong and what to do instead.
package file

//go:generate go test -run TestSchemas -update .

import (
	"errors"
	"fmt"
	"strings"

	"sublet/vnet"
)

// MaxSize bounds a file, in bytes; it is checked before anything is parsed.
const MaxSize = 4 << 20

// MaxSubstrateSize bounds a substrate's file.
const MaxSubstrateSize = 32 << 20

// ParseRequest reads a request in the native form, fills in defaults and
// checks it. The name is used in errors only.
func ParseRequest(name string, text []byte) (vnet.Request, error) {
	return ParseRequestWith(name, text, func(string) (string, error) {
		return "", errors.New("no files are read here: write text")
	})
}

// ParseRequestWith is ParseRequest where files of nodes may state from: read
// returns the text of the file of that name.
func ParseRequestWith(name string, text []byte, read func(from string) (string, error)) (vnet.Request, error) {
	doc, err := open(name, text, requestLimits)
	if err != nil {
		return vnet.Request{}, err
	}
	if other := otherKind(doc.root, "request"); other != "" {
		return vnet.Request{}, doc.fail(doc.root, "%s", other)
	}
	var form request
	if err := doc.decode(&form); err != nil {
		return vnet.Request{}, err
	}
	err = form.readFiles(read)
	var r vnet.Request
	if err == nil {
		r, err = form.request()
	}
	if err != nil {
		return vnet.Request{}, doc.explain(err)
	}
	doc.functions, doc.chains = form.functionPlaces(), form.chainForms(&r)
	r.Fill()
	for _, problem := range r.Problems(vnet.MostProblems) {
		doc.note(doc.explain(problem))
	}
	if err := doc.problem(); err != nil {
		return vnet.Request{}, err
	}
	return r, nil
}

// ParseSubstrate reads a substrate, fills in defaults and checks it.
func ParseSubstrate(name string, text []byte) (vnet.Substrate, error) {
	doc, err := open(name, text, substrateLimits)
	if err != nil {
		return vnet.Substrate{}, err
	}
	if other := otherKind(doc.root, "substrate"); other != "" {
		return vnet.Substrate{}, doc.fail(doc.root, "%s", other)
	}
	var form substrate
	if err := doc.decode(&form); err != nil {
		return vnet.Substrate{}, err
	}
	s, err := form.substrate()
	if err == nil {
		s.Fill()
		err = s.Check()
	}
	if err != nil {
		return vnet.Substrate{}, doc.explain(err)
	}
	return s, nil
}

// Place turns what somebody else found wrong with a field of a request into a
// *vnet.InputError, which says where in the request's text that is.
func Place(name string, text []byte, problem *vnet.FieldError) error {
	doc, err := open(name, text, requestLimits)
	if err != nil {
		return err
	}
	var form request
	if doc.decode(&form) == nil {
		if r, err := form.request(); err == nil {
			doc.functions, doc.chains = form.functionPlaces(), form.chainForms(&r)
		}
	}
	return doc.explain(problem)
}

// explain gives a *vnet.FieldError its place in the document.
func (d *document) explain(err error) error {
	var field *vnet.FieldError
	if !errors.As(err, &field) {
		return d.fail(d.root, "%v", err)
	}
	field = &vnet.FieldError{Path: d.asWritten(field.Path), Problem: field.Problem}
	return d.fail(d.locate(field.Path), "%v", field)
}

// asWritten is a path in the words of the text: functions are nodes behind those
// that are written as nodes, and a chain is where a stage makes it of another one.
func (d *document) asWritten(path string) string {
	var i int
	if n, err := fmt.Sscanf(path, "chains[%d]", &i); n == 1 && err == nil && i < len(d.chains) {
		return d.chains[i] + strings.TrimPrefix(path, index("chains", i))
	}
	if n, err := fmt.Sscanf(path, "nodes[%d]", &i); n != 1 || err != nil {
		return path
	}
	written := 0
	if list := child(d.root, "nodes"); list != nil {
		written = len(list.Content)
	}
	if i -= written; i < 0 || i >= len(d.functions) {
		return path
	}
	rest := strings.TrimPrefix(path, index("nodes", i+written))
	return d.functions[i] + strings.TrimPrefix(rest, ".function")
}

// Decode fills form, a pointer to a struct with yaml tags, from the only
// document of text, as strictly as requests are read: fields without omitempty
// must be there, unknown ones must not. A *vnet.FieldError of check, which
// looks at what was read, gets its place in the text.
func Decode(name string, text []byte, form any, check func() error) error {
	doc, err := open(name, text, requestLimits)
	if err != nil {
		return err
	}
	if err := doc.decode(form); err != nil {
		return err
	}
	if err := check(); err != nil {
		return doc.explain(err)
	}
	return nil
}
