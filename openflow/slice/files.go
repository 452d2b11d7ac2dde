package slice

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Files of a directory with what slices know: where they are, and whose groups and
// meters are.
const (
	PlacesFile  = "slices"
	numbersFile = "numbers"
)

// Files is a Memory in a directory. What is written there outlives the process however
// it ends, since the kernel has it.
type Files struct {
	dir     string
	numbers *os.File
	failed  func(error)
}

// wordLen is of a word, which has the first table of a slice above its controller's
// number; 0: nobody's. Those of groups and of meters take turns.
const wordLen = 8

// OpenFiles opens them; failed is told of what could not be written.
func OpenFiles(dir string, failed func(error)) (*Files, error) {
	f, err := os.OpenFile(filepath.Join(dir, numbersFile), os.O_RDWR|os.O_CREATE, 0o600)
	return &Files{dir, f, failed}, err
}

// Close lets go of them.
func (f *Files) Close() error { return f.numbers.Close() }

// Place replaces what is known of places at once.
func (f *Files) Place(placed []byte) error {
	name := filepath.Join(f.dir, PlacesFile)
	if err := os.WriteFile(name+".new", placed, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// Placed is what was remembered.
func (f *Files) Placed() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(f.dir, PlacesFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// Group remembers whose a group is.
func (f *Files) Group(there uint32, first uint8, own uint32) { f.put(2*int64(there), first, own) }

// Meter remembers whose a meter is.
func (f *Files) Meter(there uint32, first uint8, own uint32) { f.put(2*int64(there)+1, first, own) }

func (f *Files) put(at int64, first uint8, own uint32) {
	word := binary.NativeEndian.AppendUint64(nil, uint64(first)<<32|uint64(own))
	if _, err := f.numbers.WriteAt(word, at*wordLen); err != nil {
		f.failed(fmt.Errorf("remember a number of slices: %w", err))
	}
}

// Numbers are those that are somebody's.
func (f *Files) Numbers(group, meter func(there uint32, first uint8, own uint32)) error {
	b, err := io.ReadAll(io.NewSectionReader(f.numbers, 0, 1<<62))
	if err != nil {
		return err
	}
	for at := 0; at+wordLen <= len(b); at += wordLen {
		word, there, tell := binary.NativeEndian.Uint64(b[at:]), uint32(at/wordLen/2), group
		if at/wordLen%2 == 1 {
			tell = meter
		}
		if word != 0 {
			tell(there, uint8(word>>32), uint32(word))
		}
	}
	return nil
}

// Clear forgets all numbers.
func (f *Files) Clear() error { return f.numbers.Truncate(0) }
