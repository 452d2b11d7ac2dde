package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// replace takes away what is in the place of an entry. A directory stays that
// is one again.
func (t *tree) replace(p place, h *tar.Header) error {
	var st unix.Stat_t
	err := unix.Fstatat(p.dir, p.base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && h.Typeflag == tar.TypeDir {
		return nil
	}
	if err != nil {
		return err
	}
	return remove(p)
}

func (t *tree) write(p place, h *tar.Header, content io.Reader) error {
	mode := uint32(h.Mode) & 0o1777 // neither set-uid nor set-gid
	switch h.Typeflag {
	case tar.TypeDir:
		return t.directory(p, mode, h)
	case tar.TypeSymlink:
		return t.symlink(p, h)
	case tar.TypeLink:
		return t.link(p, h.Linkname)
	}
	return t.file(p, h, mode, content)
}

// owned is who owns an entry outside.
func (t *tree) owned(h *tar.Header) (uid, gid int) { return t.owner.Outside(h.Uid, h.Gid) }

func (t *tree) directory(p place, mode uint32, h *tar.Header) error {
	if err := unix.Mkdirat(p.dir, p.base, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	dir, err := openDir(p.dir, p.base) // what is there may be a link to nowhere
	if err != nil {
		return err
	}
	defer dir.Close()
	uid, gid := t.owned(h)
	return errors.Join(dir.Chown(uid, gid), unix.Fchmod(int(dir.Fd()), mode))
}

func (t *tree) symlink(p place, h *tar.Header) error {
	if err := unix.Symlinkat(h.Linkname, p.dir, p.base); err != nil {
		return err
	}
	uid, gid := t.owned(h)
	if err := unix.Fchownat(p.dir, p.base, uid, gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return stamp(p, h.ModTime)
}

// link makes a hard link to what the tree has by a name.
func (t *tree) link(p place, name string) error {
	to, err := t.find(name, false)
	if err != nil {
		return fmt.Errorf("what it links to: %w", err)
	}
	defer to.close()
	if err := unix.Linkat(to.dir, to.base, p.dir, p.base, 0); err != nil {
		return fmt.Errorf("link it to %.200q: %w", name, err)
	}
	return nil
}

func (t *tree) file(p place, h *tar.Header, mode uint32, content io.Reader) error {
	fd, err := unix.Openat(p.dir, p.base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), p.base)
	defer f.Close()
	if err := t.fill(f, content); err != nil {
		return err
	}
	uid, gid := t.owned(h)
	if err := errors.Join(f.Chown(uid, gid), unix.Fchmod(fd, mode)); err != nil {
		return err
	}
	return stamp(p, h.ModTime)
}

func (t *tree) fill(f *os.File, content io.Reader) error {
	if !t.holes {
		_, err := io.Copy(f, content)
		return err
	}
	sparse := &Holes{File: f}
	if _, err := io.Copy(sparse, content); err != nil {
		return err
	}
	return sparse.End()
}

// stamp sets when something was changed last; years that the kernel does not
// know are cut to those it knows.
func stamp(p place, at time.Time) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: max(at.Unix(), 0), Nsec: int64(at.Nanosecond())}}
	return unix.UtimesNanoAt(p.dir, p.base, times, unix.AT_SYMLINK_NOFOLLOW)
}

// remove takes away a file, or a directory with all in it.
func remove(p place) error {
	dir, err := openDir(p.dir, ".")
	if err != nil {
		return err
	}
	defer dir.Close()
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(p.base)
}

func openDir(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// clearDir takes away what lower layers have in a directory, not what the layer
// at hand has made there already.
func (t *tree) clearDir(p place) error {
	dir, err := openDir(p.dir, p.base)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // the layer has made something else of it
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	at, err := pathOf(int(dir.Fd()))
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		below := place{dir: int(dir.Fd()), base: name, path: path.Join(at, name)}
		if !t.made(below.path) {
			err = remove(below)
		} else {
			err = t.clearDir(below)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
