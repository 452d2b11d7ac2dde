package nsh

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sublet/datapath/kernel"
)

// record is what the file of a plane has: what was set, and the numbers by which
// the kernel's rows name it.
type record struct {
	Plane     Plane
	ID        uint32
	Numbers   map[string]uint32 // of functions and remotes
	Interface int               // its number
}

// numberBits are those of a function's number below its plane's.
const numberBits = 8

const files = "nsh" // kind of files

func (p *Part) file(fabric string) string { return filepath.Join(p.host.Dir(files), fabric) }

// records reads all planes' files.
func (p *Part) records() (map[string]record, error) {
	names, err := p.host.Names(files)
	if err != nil {
		return nil, fmt.Errorf("list service planes: %w", err)
	}
	all := make(map[string]record, len(names))
	for _, name := range names {
		if filepath.Ext(name) == unfinished {
			continue
		}
		text, err := os.ReadFile(p.file(name))
		if err != nil {
			return nil, err
		}
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("read %s: %w", p.file(name), err)
		}
		all[name] = r
	}
	return all, nil
}

const unfinished = ".new"

// write puts a plane's file in place in one step.
func (p *Part) write(r record) error {
	if err := kernel.MkdirAll(p.host.Dir(files), 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	name := p.file(r.Plane.Fabric)
	if err := os.WriteFile(name+unfinished, text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+unfinished, name)
}

func (p *Part) forget(fabric string) error {
	for _, name := range []string{p.file(fabric) + unfinished, p.file(fabric)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	p.host.Tidy()
	return nil
}

// recordOf numbers a plane and what is in it: what had a number keeps it.
func recordOf(all map[string]record, plane Plane) (record, error) {
	was, ok := all[plane.Fabric]
	if !ok {
		used := make(map[uint32]bool)
		for _, r := range all {
			used[r.ID] = true
		}
		for was.ID = 1; used[was.ID]; was.ID++ {
		}
	}
	r := record{Plane: plane, ID: was.ID, Numbers: make(map[string]uint32)}
	used := make(map[uint32]bool)
	for _, n := range was.Numbers {
		used[n] = true
	}
	for _, name := range plane.names() {
		n, ok := was.Numbers[name]
		if !ok {
			for n = r.ID<<numberBits | 1; used[n]; n++ {
			}
			used[n] = true
		}
		if n>>numberBits != r.ID {
			return r, errors.New("more than 255 functions and hosts, those about to go included: take some away first")
		}
		r.Numbers[name] = n
	}
	return r, r.apart(all)
}

func (p Plane) names() []string {
	var names []string
	for _, f := range p.Functions {
		names = append(names, functionKey(f.Name))
	}
	for _, r := range p.Remotes {
		names = append(names, remoteKey(r.Name))
	}
	return names
}

// apart refuses a path that another plane has.
func (r record) apart(all map[string]record) error {
	mine := r.Plane.paths()
	for fabric, other := range all {
		if fabric == r.Plane.Fabric {
			continue
		}
		for path := range other.Plane.paths() {
			if mine[path] {
				return fmt.Errorf("path %d is one of %s", path, fabric)
			}
		}
	}
	return nil
}

// paths are all that the plane names.
func (p Plane) paths() map[uint32]bool {
	paths := make(map[uint32]bool)
	for _, h := range p.Hops {
		paths[h.Path] = true
	}
	for _, c := range p.Classifiers {
		for _, r := range c.Rules {
			paths[r.Path] = true
		}
	}
	return paths
}
