package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"sublet/vnet"
	"sublet/vnet/clab"
)

// containerlab reads a topology and, beside it, the files that it names.
func containerlab(opt clab.Options) importer {
	return func(name string, text []byte) (vnet.Request, []vnet.Note, error) {
		opt.Files = func(source string) ([]vnet.File, error) { return bound(name, source) }
		return clab.Parse(name, text, opt)
	}
}

// exitsOf reads what --access states.
func exitsOf(stated map[string]string) (map[string]clab.Exit, error) {
	exits := make(map[string]clab.Exit)
	for key, text := range stated {
		name, rate, _ := strings.Cut(text, ":")
		r, err := vnet.ParseRate(rate)
		if err != nil || vnet.CheckName(name) != nil {
			return nil, badInput{fmt.Errorf("--access %s=%s: write an exit and a rate, such as %s=campus:50Mbit", key, text, key)}
		}
		exits[key] = clab.Exit{Name: name, Rate: r}
	}
	return exits, nil
}

// bound reads a file that a topology binds, or those of a directory; of more than
// a request may have, as much as shows it.
func bound(topology, source string) (files []vnet.File, err error) {
	root, err := directoryOf(topology, source)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	source = filepath.Clean(source)
	err = fs.WalkDir(root.FS(), source, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || len(files) > vnet.MaxFiles {
			return cmp.Or(err, fs.SkipAll)
		}
		if entry.IsDir() {
			return nil
		}
		text, mode, err := readBounded(root, at)
		if err != nil {
			return err
		}
		inside, _ := filepath.Rel(source, at) // of source: it is below
		files = append(files, vnet.File{Path: strings.TrimPrefix(inside, "."), Text: text, Mode: octal(mode)})
		return nil
	})
	if files != nil && files[0].Path == "" {
		return files[:1], err
	}
	return files, err
}

// octal is how a request writes permissions; "": 0644.
func octal(mode fs.FileMode) string {
	if mode.Perm() == 0o644 {
		return ""
	}
	return fmt.Sprintf("%04o", mode.Perm())
}
