package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is a root file system that is being unpacked. Names in layers are hostile.
// The directory of each is looked up by the kernel with the tree as root
// (openat2(2), RESOLVE_IN_ROOT), as it would be in a node; all else is done to a
// last element in there, and follows no link. os.Root would not do: images have
// absolute links to directories (/var/run), which it refuses.
type tree struct {
	path  string // as the kernel has it
	root  int    // descriptor
	owner Owner
	seed  maphash.Seed
	own   map[uint64]bool // what the layer at hand has made, by hash of its path: long paths are hostile
	holes bool            // files stay sparse
}

func newTree(root string, owner Owner) (*tree, error) {
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(root, 0o755); err != nil {
		return nil, err
	}
	if err := os.Lchown(root, int(owner.UID), int(owner.GID)); err != nil {
		return nil, err
	}
	return treeAt(root, owner)
}

// treeAt opens a root that is there.
func treeAt(root string, owner Owner) (*tree, error) {
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	t := &tree{root: fd, owner: owner, seed: maphash.MakeSeed()}
	t.path, err = pathOf(fd)
	return t, err
}

func (t *tree) close() { unix.Close(t.root) }

// pathOf is where a descriptor is; an error if that is longer than the kernel
// takes at once.
func pathOf(fd int) (string, error) { return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) }

// place is where an entry goes.
type place struct {
	dir  int    // descriptor of the directory, O_PATH
	base string // in there
	path string // on the host
}

func (p place) close() { unix.Close(p.dir) }

// find opens the directory of a name; with make, it is made if it is missing.
func (t *tree) find(name string, make bool) (place, error) {
	name = path.Clean("/" + name)
	dir, base := path.Split(name)
	if base == "" {
		return place{}, errRoot
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV}
	fd, err := unix.Openat2(t.root, "."+dir, &how)
	if errors.Is(err, unix.ENOENT) && make {
		if err := t.makeParent(dir); err != nil {
			return place{}, err
		}
		fd, err = unix.Openat2(t.root, "."+dir, &how)
	}
	if err != nil {
		return place{}, fmt.Errorf("its directory: %w", err)
	}
	at, err := pathOf(fd)
	if err != nil {
		unix.Close(fd)
		return place{}, fmt.Errorf("its directory: %w", err)
	}
	return place{dir: fd, base: base, path: path.Join(at, base)}, nil
}

var errRoot = errors.New("it is the root directory itself")

// makeParent makes a directory that no entry told of.
func (t *tree) makeParent(dir string) error {
	p, err := t.find(dir, true)
	if err != nil {
		return err
	}
	defer p.close()
	return t.directory(p, 0o755, &tar.Header{})
}

// note remembers that the layer at hand has something here, and in all
// directories above.
func (t *tree) note(at string) {
	for ; len(at) > len(t.path) && !t.made(at); at = path.Dir(at) {
		t.own[maphash.String(t.seed, at)] = true
	}
}

// made says whether the layer at hand has something here.
func (t *tree) made(at string) bool { return t.own[maphash.String(t.seed, at)] }

// Names of files in a layer that take away what is below (layer.md, whiteouts).
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// entry does what one entry says. Devices, sockets and pipes are left out.
func (t *tree) entry(h *tar.Header, content io.Reader) error {
	p, err := t.find(h.Name, true)
	if errors.Is(err, errRoot) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	if name, ok := strings.CutPrefix(p.base, whiteout); ok {
		return t.whiteout(p, name)
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeDir, tar.TypeSymlink, tar.TypeLink:
	default:
		return nil
	}
	if err := t.replace(p, h); err != nil {
		return err
	}
	t.note(p.path)
	return t.write(p, h, content)
}

// whiteout takes away what lower layers have by a name, or in all of a
// directory. Other names of that kind are left from former engines.
func (t *tree) whiteout(p place, name string) error {
	switch {
	case p.base == opaque:
		p.base = "."
		return t.clearDir(p)
	case strings.HasPrefix(name, whiteout):
		return nil
	case name == "", name == ".", name == "..":
		return errors.New("it takes nothing away")
	}
	at := place{dir: p.dir, base: name, path: path.Join(path.Dir(p.path), name)}
	if !t.made(at.path) {
		return remove(at)
	}
	return t.clearDir(at)
}
