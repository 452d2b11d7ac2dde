package kernel

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// hidden begins the names of files that Conceal made.
const hidden = "."

// Conceal makes path a link to a file name beside it that tells nothing, and
// returns that. Every user of the machine sees where something is mounted;
// the names of tenants, networks and nodes are private.
// What was at path must be gone: see Unbind. Nothing is at the new name yet.
func Conceal(path string) (target string, err error) {
	if err := MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	name := hidden + strings.ToLower(rand.Text())
	return filepath.Join(filepath.Dir(path), name), os.Symlink(name, path)
}

// concealed is the file that path, made by Conceal, leads to; path itself if it
// was not.
func concealed(path string) string {
	name, err := os.Readlink(path)
	if err != nil || !strings.HasPrefix(name, hidden) || strings.Contains(name, "/") {
		return path
	}
	return filepath.Join(filepath.Dir(path), name)
}

// SweepConcealed unmounts and removes what Conceal made and to which no link
// leads any more, because somebody removed that. Links are read last: Conceal
// makes them first, and Unbind removes them last.
func (h *Host) SweepConcealed(kind string) error {
	before, err := os.ReadDir(h.Dir(kind))
	if err != nil || len(before) == 0 {
		return nil // nothing that could be swept
	}
	names, err := h.Names(kind)
	if err != nil {
		return err
	}
	led := make(map[string]bool)
	for _, name := range names {
		led[concealed(filepath.Join(h.Dir(kind), name))] = true
	}
	var failed error
	for _, e := range before {
		if path := filepath.Join(h.Dir(kind), e.Name()); strings.HasPrefix(e.Name(), hidden) && !led[path] {
			failed = errors.Join(failed, Unbind(path))
		}
	}
	return failed
}
