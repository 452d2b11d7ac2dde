package vnet

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// File is one that a node finds when it begins, in place of what was there.
// Directories on the way to it are made.
type File struct {
	Path string `json:"path"`
	Text string `json:"text"`
	Mode string `json:"mode,omitempty"` // permissions in octal digits; "": 0644
	// Owner is a user of the node, and a group, as ValidUser has it; "": root.
	Owner string `json:"owner,omitempty"`
}

// Bounds of files.
const (
	MaxFiles = 64 // of a node
	// MaxFile and MaxAllFiles bound the text of a file and of all files of a
	// request, in bytes: they are part of the lease, and of plans.
	MaxFile     = 64 << 10
	MaxAllFiles = 512 << 10
)

var fileMode = lazy(`^0?[0-7]{3}$`)

// Permissions are the lowest nine bits of a file's mode.
func (f File) Permissions() uint32 {
	bits, err := strconv.ParseUint(f.Mode, 8, 32)
	if f.Mode == "" || err != nil {
		return 0o644
	}
	return uint32(bits)
}

// made are directories and files of a node that Sublet makes itself.
var made = []string{"/proc", "/sys", "/dev", "/etc/hosts"}

func checkFiles(field string, files []File) error {
	if len(files) > MaxFiles {
		return fieldf(field, "%d files are more than %d: bring them with an image, or with sublet cp", len(files), MaxFiles)
	}
	paths := make(map[string]int, len(files))
	for i, f := range files {
		if err := f.check(at(field, i)); err != nil {
			return err
		}
		if other, ok := paths[f.Path]; ok {
			return fieldf(at(field, i)+".path", "%q is the path of %s too: keep one", f.Path, at(field, other))
		}
		paths[f.Path] = i
	}
	for i, f := range files {
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			if other, ok := paths[dir]; ok {
				return fieldf(at(field, i)+".path", "%s makes a file of its directory %q: choose another path", at(field, other), dir)
			}
		}
	}
	return nil
}

func (f File) check(field string) error {
	switch {
	case !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" || strings.ContainsFunc(f.Path, isControl):
		return fieldf(field+".path", "%q is not a path from the root without . and ..: write one such as /etc/frr/frr.conf", f.Path)
	case len(f.Text) > MaxFile:
		return fieldf(field+".text", "has %d bytes, more than %d: bring it with an image, or with sublet cp", len(f.Text), MaxFile)
	case !utf8.ValidString(f.Text) || strings.ContainsRune(f.Text, 0):
		return fieldf(field+".text", "is not text in UTF-8: bring it with an image, or with sublet cp")
	case f.Mode != "" && !fileMode().MatchString(f.Mode):
		return fieldf(field+".mode", "%q is not three octal digits: write them such as 0644", f.Mode)
	}
	if err := checkUser(field+".owner", f.Owner); err != nil {
		return err
	}
	for _, taken := range made {
		if f.Path == taken || strings.HasPrefix(f.Path, taken+"/") {
			return fieldf(field+".path", "%q: Sublet makes %s itself: choose another path", f.Path, taken)
		}
	}
	return checkText(field+".path", f.Path)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// filesSize is that of the files and configurations of all nodes, and of switches' keys and
// certificates, in bytes.
func (r Request) filesSize() (n int) {
	for _, top := range r.topologies() {
		for _, node := range top.All() {
			n += len(node.FRR)
			for _, f := range node.Files {
				n += len(f.Path) + len(f.Text)
			}
		}
		for _, s := range top.Switches {
			if t := s.TLS; t != nil {
				n += len(t.Key) + len(t.Certificate) + len(t.CA)
			}
		}
	}
	return n
}
