package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Jail is a root directory for a program that takes orders of a tenant: the
// host's programs and libraries, its /proc and harmless devices, copies of some
// files, and two directories that can be written, each of a bounded size. The
// program finds no other file of the host by any name.
type Jail struct {
	Copies map[string]string `json:"copies"` // file outside, by its path inside
	Own    string            `json:"own"`    // directory outside that may be written
	OwnAt  string            `json:"own_at"` // its path inside
}

// Bounds of the memory file system of the jail's root, which has the copies, and
// of its /var/tmp.
const (
	jailRoot    = "size=16m,nr_inodes=256,mode=0755"
	jailScratch = "size=1m,nr_inodes=64,mode=1777"
)

// jailShown is what a jail has of the host's files, if the host has it. What is
// a link stays one.
var jailShown = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc",
	"/etc/ld.so.cache", "/etc/localtime", "/etc/pam.d",
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
}

// jailNet is written by who may: it is the program's own network's.
const jailNet = "/proc/sys/net"

const jailSafe = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC

// jailed is a mount that is nowhere yet.
type jailed struct {
	at string
	fd int
}

// enter makes the jail the root of the calling process, whose mounts are
// private. All is opened before the host's files are out of sight.
func (j Jail) enter() error {
	shown, err := openShown()
	if err != nil {
		return err
	}
	own, err := openJailed(j.Own, j.OwnAt)
	if err != nil {
		return err
	}
	net, err := openJailed(jailNet, jailNet)
	if err != nil {
		return err
	}
	files, err := j.read()
	if err != nil {
		return err
	}
	// Any directory will do, as nobody else sees this.
	const root = "/usr"
	if err := unix.Mount("sublet", root, "tmpfs", 0, jailRoot); err != nil {
		return fmt.Errorf("mount a root directory: %w", err)
	}
	if err := j.furnish(root, shown, files); err != nil {
		return err
	}
	for _, m := range []jailed{own, net} {
		if err := m.attach(root, jailSafe); err != nil {
			return err
		}
	}
	return pivot(root)
}

// openShown opens what of jailShown is no link.
func openShown() (shown []jailed, err error) {
	for _, path := range jailShown {
		info, err := os.Lstat(path)
		if errors.Is(err, os.ErrNotExist) || err == nil && info.Mode()&os.ModeSymlink != 0 {
			continue
		}
		m, err := openJailed(path, path)
		if err != nil {
			return nil, err
		}
		shown = append(shown, m)
	}
	return shown, nil
}

func openJailed(path, at string) (jailed, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return jailed{}, fmt.Errorf("open %s: %w", filepath.Base(path), err)
	}
	return jailed{at, fd}, nil
}

// read reads what is copied; it is all that root reads of it.
func (j Jail) read() (map[string][]byte, error) {
	files := make(map[string][]byte)
	for at, path := range j.Copies {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Base(path), errors.Unwrap(err))
		}
		files[at] = text
	}
	return files, nil
}

// furnish puts in place what cannot be written, and makes all of it so.
func (j Jail) furnish(root string, shown []jailed, files map[string][]byte) error {
	for at, text := range files {
		path := filepath.Join(root, at)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644)); err != nil {
			return err
		}
	}
	if err := jailLinks(root); err != nil {
		return err
	}
	tmp := filepath.Join(root, "var/tmp")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, j.OwnAt), 0o755), os.MkdirAll(tmp, 0o755)); err != nil {
		return err
	}
	for _, m := range shown {
		if err := m.attach(root, unix.MOUNT_ATTR_NOSUID); err != nil {
			return err
		}
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, root, unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("make the host's files read only: %w", err)
	}
	if err := unix.Mount("sublet", tmp, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, jailScratch); err != nil {
		return fmt.Errorf("mount /var/tmp: %w", err)
	}
	return nil
}

// jailLinks copies the links of jailShown, such as /lib to usr/lib.
func jailLinks(root string) error {
	for _, path := range jailShown {
		to, err := os.Readlink(path)
		if err != nil {
			continue // no link, or not there
		}
		at := filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(to, at)); err != nil {
			return err
		}
	}
	return nil
}

// attach mounts a tree at its place below root, which is made if it can be.
func (m jailed) attach(root string, set uint64) error {
	at := filepath.Join(root, m.at)
	if err := m.makePlace(at); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: set}
	if err := unix.MountSetattr(m.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("bound %s: %w", m.at, err)
	}
	if err := unix.MoveMount(m.fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", m.at, err)
	}
	return unix.Close(m.fd)
}

// makePlace makes the file or directory to mount on, like what is mounted.
func (m jailed) makePlace(at string) error {
	var st unix.Stat_t
	if err := unix.Fstat(m.fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(at, 0o755)
	}
	return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, nil, 0o644))
}

// pivot makes a mounted directory the root, and lets go of the one before
// (pivot_root(2), "." for both).
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root directory: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's files: %w", err)
	}
	return os.Chdir("/")
}
