// Package filecopy carries a file or a tree of them as a tar stream (pax,
// POSIX.1-2001) between places that do not trust each other.
package filecopy

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Base is the name that Pack gives to a path.
func Base(from string) string {
	base := path.Base(path.Clean(from))
	if base == "." || base == ".." || base == "/" {
		return "files"
	}
	return base
}

// Pack writes path and what is below it. The names in the stream begin with the
// last element of path. Symbolic links below path are carried as links, path
// itself is followed. What is neither file, directory nor link is left out and
// named in the error, which comes after all the rest is written.
func Pack(w io.Writer, from string) error {
	absolute, err := filepath.Abs(from)
	if err == nil {
		absolute, err = filepath.EvalSymlinks(absolute)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	t := tar.NewWriter(w)
	base, left := Base(from), []error(nil)
	err = filepath.WalkDir(absolute, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			left = append(left, err)
			return nil
		}
		below, err := filepath.Rel(absolute, file)
		if err != nil {
			return err
		}
		err = add(t, file, path.Join(base, filepath.ToSlash(below)), d)
		if errors.Is(err, errLeftOut) {
			left, err = append(left, err), nil
		}
		return err
	})
	return errors.Join(err, t.Close(), errors.Join(left...))
}

var errLeftOut = errors.New("left out")

func add(t *tar.Writer, file, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return fmt.Errorf("%s: %w: %w", file, errLeftOut, err)
	}
	var source *os.File
	link := ""
	switch {
	case info.Mode().IsRegular():
		open, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("%w: %w", errLeftOut, err)
		}
		defer open.Close()
		if info, err = open.Stat(); err != nil {
			return err
		}
		source = open
	case info.IsDir():
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = os.Readlink(file); err != nil {
			return fmt.Errorf("%w: %w", errLeftOut, err)
		}
	default:
		return fmt.Errorf("%s: %w: it is no file, directory or symbolic link", file, errLeftOut)
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name, header.Format = name, tar.FormatPAX
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if source == nil {
		return t.WriteHeader(header)
	}
	content, err := contentOf(header, source)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", file, errLeftOut, err)
	}
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	return exactly(t, content, header.Size)
}

// contentOf is what an entry carries of a file, whose size it then states.
func contentOf(h *tar.Header, f *os.File) (io.Reader, error) {
	if h.Size > 0 {
		return describe(h, f), nil
	}
	text, err := io.ReadAll(io.LimitReader(f, mostMade))
	h.Size = int64(len(text))
	return bytes.NewReader(text), err
}

// mostMade bounds a file whose length is known only once it is read, as those of
// /proc are, in bytes.
const mostMade = 4 << 20

// exactly copies as many bytes as were announced: of a file that grows no more,
// and zeros for what a file lacks that shrinks.
func exactly(w io.Writer, r io.Reader, size int64) error {
	n, err := io.CopyN(w, r, size)
	if !errors.Is(err, io.EOF) {
		return err
	}
	_, err = io.CopyN(w, zeros{}, size-n)
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Unpack writes a stream of Pack's to path: into it, under the name that it had,
// if path is a directory or ends with a slash; in its place otherwise. Nothing is
// written outside, whatever the stream says; rights of set-uid and set-gid files
// are taken off. If a name is given, a stream of another one is refused: its
// sender could choose which file of the directory is written.
func Unpack(r io.Reader, to, name string) error {
	t := tar.NewReader(r)
	first, err := t.Next()
	if err != nil {
		return fmt.Errorf("read files: %w", err)
	}
	base := path.Clean(first.Name)
	switch {
	case name != "" && base != name:
		return fmt.Errorf("read files: asked for %q, got %q", name, base)
	case base != path.Base(base) || base == "..":
		return fmt.Errorf("read files: %q is not the name of a file", base)
	case first.Typeflag == tar.TypeSymlink:
		return fmt.Errorf("read files: %q is a symbolic link", base)
	}
	directory, target := filepath.Split(filepath.Clean(to))
	if info, err := os.Stat(to); err == nil && info.IsDir() || strings.HasSuffix(to, "/") {
		directory, target = to, base
	}
	if directory == "" {
		directory = "."
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := extract(root, target, first, t); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(directory, target), err)
	}
	if first.Typeflag != tar.TypeDir {
		return nil
	}
	tree, err := root.OpenRoot(target)
	if err != nil {
		return err
	}
	defer tree.Close()
	return unpackInto(tree, base, t)
}

// unpackInto writes all but the first entry; root is that.
func unpackInto(root *os.Root, base string, t *tar.Reader) error {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read files: %w", err)
		}
		below, ours := strings.CutPrefix(path.Clean(h.Name), base+"/")
		if !ours {
			return fmt.Errorf("read files: %q is not below %q", h.Name, base)
		}
		if err := extract(root, filepath.FromSlash(below), h, t); err != nil {
			return err
		}
	}
}

func extract(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	mode := fs.FileMode(h.Mode).Perm()
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.Mkdir(name, mode|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case tar.TypeSymlink:
		_ = root.Remove(name)
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		_, err := root.Lstat(name)
		isNew := errors.Is(err, fs.ErrNotExist)
		f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		if err := fits(f, h.Size); err != nil {
			if isNew {
				err = errors.Join(err, root.Remove(name))
			}
			return errors.Join(err, f.Close())
		}
		err = write(f, h, content)
		return errors.Join(err, f.Chmod(mode), f.Close())
	}
	return fmt.Errorf("read files: %q is no file, directory or symbolic link", h.Name)
}
