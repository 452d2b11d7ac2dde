package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sublet/vnet"
	"sublet/vnet/clab"
	"sublet/vnet/file"
	"sublet/vnet/rspec"
	"sublet/vnet/topology"
	"sublet/vnet/vxdl"
)

// maxInput bounds what is read of a file; the parsers have limits of their own.
const maxInput = 32 << 20

// readFile reads a file, or standard input for "-".
func (a *app) readFile(name string) ([]byte, error) {
	if name == "-" {
		return readMost(name, a.in)
	}
	return readBelow(name)
}

// readBelow reads a file that is no larger than maxInput.
func readBelow(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, badInput{err}
	}
	defer f.Close()
	return readMost(name, f)
}

func readMost(name string, in io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, badInput{err} // which names the file
	}
	if len(text) > maxInput {
		return nil, badInput{fmt.Errorf("%s: larger than %d MiB", name, maxInput>>20)}
	}
	return text, nil
}

// readRequest reads a request in either language, or in another program's where
// nothing of it is lost, and tells what a conversion changed.
func (a *app) readRequest(name string, strict bool) (vnet.Request, error) {
	text, err := a.readFile(name)
	if err != nil {
		return vnet.Request{}, err
	}
	if read := importerOf(text, clab.Options{}); read != nil {
		return a.imported(read, name, text)
	}
	req, notes, err := parseText(name, text, strict)
	a.tell(notes)
	if isXML(text) {
		return a.asCaller(req), err
	}
	if a.sources == nil {
		a.sources = make(map[vnet.VNetID]source)
	}
	a.sources[req.Network] = source{name, text}
	return req, err
}

// imported is what a text in another program's language asks for, if a request
// can say all of it.
func (a *app) imported(read importer, name string, text []byte) (vnet.Request, error) {
	req, notes, err := read(name, text)
	a.tell(notes)
	if lost := countLost(notes); err == nil && lost > 0 {
		err = fmt.Errorf("%s: nothing is asked for, since %s would be lost: make a request of the rest with sublet import --lossy -w request.yaml %s", name, number(lost, "thing"), name)
	}
	return req, err
}

// source is a text that a request was read from.
type source struct {
	name string
	text []byte
}

// placed gives what a server says of a field its place in the file.
func (a *app) placed(network vnet.VNetID, err error) error {
	var field *vnet.FieldError
	from, known := a.sources[network]
	if !known || !errors.As(err, &field) {
		return err
	}
	return file.Place(from.name, from.text, field)
}

// parseText reads a request in either language.
func parseText(name string, text []byte, strict bool) (vnet.Request, []vxdl.Note, error) {
	if !isXML(text) {
		req, err := file.ParseRequestWith(name, text, func(from string) (string, error) { return besides(name, from) })
		return req, nil, err
	}
	return vxdl.Parse(name, text, strict)
}

// besides reads a file that a request names, in or below the request's own directory.
// What is longer than a file may be is cut off behind that bound.
func besides(request, from string) (string, error) {
	root, err := directoryOf(request, from)
	if err != nil {
		return "", err
	}
	defer root.Close()
	text, _, err := readBounded(root, from)
	return text, err
}

// directoryOf opens the directory of a document, out of which no path and no link
// leads, to read a file that the document names: who wrote it may be somebody else
// than who reads it.
func directoryOf(document, path string) (*os.Root, error) {
	if !filepath.IsLocal(path) {
		return nil, fmt.Errorf("%q leads out of the directory of the file that names it: copy it there", path)
	}
	return os.OpenRoot(filepath.Dir(document))
}

// readBounded reads a file, of what is longer than a node's may be as much as
// shows it.
func readBounded(root *os.Root, path string) (text string, mode fs.FileMode, err error) {
	whole := filepath.Join(root.Name(), path)
	info, err := root.Stat(path)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%s: %w", whole, failed.Err)
	} else if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", whole)
	}
	if err != nil {
		return "", 0, err
	}
	f, err := root.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	read, err := io.ReadAll(io.LimitReader(f, vnet.MaxFile+1))
	return string(read), info.Mode(), err
}

// asCaller drops a tenant that only the operator may state: VXDL documents
// carry an owner whoever hands them in.
func (a *app) asCaller(req vnet.Request) vnet.Request {
	if os.Geteuid() != 0 && a.server == "" && req.Tenant != "" {
		fmt.Fprintf(a.err, "sublet: note: %s: asked for as the caller, not as %s\n", req.Network, req.Tenant)
		req.Tenant = ""
	}
	return req
}

func isXML(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), " \t\r\n"), []byte("<"))
}

func (a *app) tell(notes []vxdl.Note) {
	for _, n := range notes {
		kind := "note"
		if n.Lost {
			kind = "lost"
		}
		fmt.Fprintf(a.err, "sublet: %s: %s\n", kind, n)
	}
}

// substrateForms says what can stand where a substrate is read.
var substrateForms = "a file (YAML, JSON, GraphML, GENI RSpec or VXDL) or a name: " + strings.Join(topology.Forms, ", ")

// readSubstrate makes the substrate of a name, or reads a file's: YAML (JSON
// is a subset of it), GraphML, GENI RSpec or VXDL.
func (a *app) readSubstrate(name string) (vnet.Substrate, error) {
	sub, named, err := topology.Named(name)
	if named {
		return sub, asBadInput(err)
	}
	text, err := a.readFile(name)
	if err != nil {
		return vnet.Substrate{}, unknownSubstrate(name, err)
	}
	switch {
	case topology.IsGraphML(text):
		sub, notes, err := topology.ParseGraphML(name, text)
		for _, n := range notes {
			fmt.Fprintf(a.err, "sublet: note: %s: %s\n", name, n)
		}
		return sub, err
	case rspec.Is(text):
		sub, notes, err := rspec.ParseSubstrate(name, text)
		a.tell(notes)
		return sub, err
	case isXML(text):
		sub, notes, err := vxdl.ParseSubstrate(name, text)
		a.tell(notes)
		return sub, err
	}
	if sub, ours := decodeSubstrate(text); ours {
		return sub, sub.Check()
	}
	return file.ParseSubstrate(name, text)
}

// decodeSubstrate reads vnet's own JSON, which is how the lab hands over, if
// it is that: the native form has other fields.
func decodeSubstrate(text []byte) (sub vnet.Substrate, ours bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return sub, d.Decode(&sub) == nil
}

// asBadInput marks an error as one of the caller's.
func asBadInput(err error) error {
	if err == nil {
		return nil
	}
	return badInput{err}
}

// unknownSubstrate says what else could have been meant by a word that is
// neither a name nor a file.
func unknownSubstrate(name string, err error) error {
	if strings.ContainsAny(name, "/.") || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return badInput{fmt.Errorf("%w, and no name of a substrate: give %s", err, substrateForms)}
}

// splitName cuts "[TENANT/]NAME" or, with parts 2, "[TENANT/]NAME/PART".
func splitName(s string, parts int, what string) ([]string, error) {
	words := strings.Split(s, "/")
	if len(words) == parts {
		words = append([]string{""}, words...)
	}
	if len(words) != parts+1 {
		return nil, badInput{fmt.Errorf("%q: write %s or TENANT/%[2]s", s, what)}
	}
	for _, w := range words[1:] {
		if err := vnet.CheckName(w); err != nil {
			return nil, badInput{err}
		}
	}
	return words, nil
}

// errNoName is what down says without arguments.
var errNoName = badInput{errors.New("name networks, or release all of your own with --all")}
