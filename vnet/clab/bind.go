package clab

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// Files reads what a bind of a topology names: a file, whose Path is empty then,
// or those of a directory, with their paths in it. Of a file that is longer than
// vnet.MaxFile and of a directory of more than vnet.MaxFiles as much as shows it.
type Files func(source string) ([]vnet.File, error)

// binds are the files of all places, copied. Where two lead to one path the
// node's own holds.
func (r *reader) binds(node string, places ...*yaml.Node) (files []vnet.File, err error) {
	where := "node " + short(node)
	for _, p := range slices.Backward(places) {
		n := value(p, "binds")
		if n.Kind != 0 && n.Kind != yaml.SequenceNode {
			return nil, r.fail(n, "%s: binds is no list: write source:target for each", where)
		}
		for _, bind := range n.Content {
			found, why := r.bind(node, bind.Value)
			if why != "" {
				r.lost(bind, where, "binds: %.60q is left out: %s", bind.Value, why)
				continue
			}
			if mode := modeOf(bind.Value); slices.Contains(strings.Split(mode, ","), "ro") {
				r.notes = append(r.notes, vnet.Note{Line: bind.Line, Column: bind.Column, Where: where, Text: fmt.Sprintf("binds: %.60q is a copy, which the node may write", bind.Value)})
			}
			for _, f := range found {
				files = r.put(bind, where, files, f)
			}
		}
	}
	return files, nil
}

// modeOf is what a bind says behind its target.
func modeOf(bind string) string {
	parts := strings.SplitN(bind, ":", 3)
	return strings.Join(parts[min(2, len(parts)):], "")
}

// put adds a file of a node in place of an earlier one of its path, if it fits.
func (r *reader) put(at *yaml.Node, where string, files []vnet.File, f vnet.File) []vnet.File {
	files = slices.DeleteFunc(files, func(other vnet.File) bool { return other.Path == f.Path })
	if why := r.room(files, f); why != "" {
		r.lost(at, where, "%.60q is left out of the node: %s", f.Path, why)
		return files
	}
	return append(files, f)
}

// read is what a path in the topology leads to, or why it cannot be had.
func (r *reader) read(node, source string) ([]vnet.File, string) {
	if r.Files == nil {
		return nil, "files beside the topology are not read here"
	}
	files, err := r.Files(strings.ReplaceAll(source, "__clabNodeName__", node))
	if err != nil {
		return nil, err.Error()
	}
	return files, ""
}

// bind is what one names, or why nothing comes of it.
func (r *reader) bind(node, text string) ([]vnet.File, string) {
	source, rest, found := strings.Cut(strings.ReplaceAll(text, "__clabNodeName__", node), ":")
	target, _, _ := strings.Cut(rest, ":")
	if !found {
		return nil, "it is no source:target"
	}
	files, why := r.read(node, source)
	if why != "" {
		return nil, why
	}
	if len(files) > vnet.MaxFiles {
		return nil, fmt.Sprintf("it has more than %d files: bring them with an image, or with sublet cp", vnet.MaxFiles)
	}
	for i := range files {
		files[i].Path = path.Join(target, files[i].Path)
	}
	return files, ""
}

// room says why a file cannot be among those of a node; "": it can.
func (r *reader) room(files []vnet.File, f vnet.File) string {
	switch {
	case !path.IsAbs(f.Path):
		return "its path is not one from the root"
	case len(f.Text) > vnet.MaxFile:
		return fmt.Sprintf("it has more than %d bytes: bring it with an image, or with sublet cp", vnet.MaxFile)
	case !utf8.ValidString(f.Text) || strings.ContainsRune(f.Text, 0):
		return "it is not text in UTF-8: bring it with an image, or with sublet cp"
	case len(files) == vnet.MaxFiles:
		return fmt.Sprintf("there are more than %d: bring them with an image", vnet.MaxFiles)
	case r.bytes+len(f.Text)+len(f.Path) > vnet.MaxAllFiles:
		return fmt.Sprintf("all files have more than %d bytes: bring them with an image", vnet.MaxAllFiles)
	}
	r.bytes += len(f.Text) + len(f.Path)
	return ""
}
