package vnode

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
)

// separate lists the directories that may be file systems of their own, and are
// here. What else is mounted on the host no node sees.
func separate() []string {
	dirs := []string{"/home", "/nix", "/opt", "/srv", "/usr", "/usr/local", "/var"}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		var st unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st)
		return err != nil || st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
	})
}

// view is what a node without an image sees of its host: all that its tenant may
// read there, because the files keep their owners and overlayfs asks their
// permissions. A mapping of owners, as images have, would show root's files to
// whoever is root of a node.
type view struct {
	owner  image.Owner       // root of the node
	uppers map[string]string // where what the node writes is, by the place of the layer
}

// opened are directories of the host's root that root of the node may write, in
// its own layer. All of them would take longer to make than all else of a node.
var opened = []string{
	"/", "/etc", "/home", "/media", "/mnt", "/opt", "/srv", "/usr/local", "/usr/local/bin", "/usr/local/etc", "/usr/local/lib", "/usr/local/sbin",
	"/usr/local/share", "/usr/local/src", "/var", "/var/cache", "/var/lib", "/var/local", "/var/log", "/var/mail", "/var/opt", "/var/spool",
}

// make fills the directories that the node writes.
func (v view) make() error {
	for at, upper := range v.uppers {
		if err := like(at, upper); err != nil {
			return err
		}
	}
	for _, own := range []struct {
		dir  string
		mode fs.FileMode
	}{{"/run", 0o755}, {"/run/lock", 0o777 | fs.ModeSticky}, {"/tmp", 0o777 | fs.ModeSticky}, {"/var/tmp", 0o777 | fs.ModeSticky}} {
		if err := v.empty(own.dir, own.mode); err != nil {
			return err
		}
	}
	if v.owner.UID != 0 {
		if err := v.share(); err != nil {
			return err
		}
	}
	return v.file(resolverFile, "") // no node reaches the host's name servers
}

// share gives directories to a root of the node who is not the host's.
func (v view) share() error {
	if err := v.empty("/root", 0o700); err != nil {
		return err
	}
	for _, dir := range opened {
		if err := v.give(dir); err != nil {
			return err
		}
	}
	return nil
}

// upper is where the node's part of a path is.
func (v view) upper(at string) string {
	layer := at
	for v.uppers[layer] == "" {
		layer = path.Dir(layer)
	}
	return path.Join(v.uppers[layer], strings.TrimPrefix(at, layer))
}

// give makes a directory of the host's the node's own, with what is in it. One
// that not everybody may look into stays closed.
func (v view) give(dir string) error {
	if !isOpen(dir) {
		return nil
	}
	if err := v.reflect(dir); err != nil {
		return err
	}
	return os.Chown(v.upper(dir), int(v.owner.UID), int(v.owner.GID))
}

// reflect makes a directory of the host's, and those above, in the node's part,
// as they are there.
func (v view) reflect(dir string) error {
	upper := v.upper(dir)
	if _, err := os.Lstat(upper); err == nil {
		return nil
	}
	if err := v.reflect(path.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(upper, 0o700); err != nil {
		return err
	}
	err := like(dir, upper)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) { // the host has none, or a link
		return os.Chmod(upper, 0o755)
	}
	return err
}

// like gives a directory owner and permissions of another.
func like(dir, upper string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "show", Path: dir, Err: unix.ENOTDIR}
	}
	st := info.Sys().(*syscall.Stat_t)
	return errors.Join(os.Chown(upper, int(st.Uid), int(st.Gid)), os.Chmod(upper, info.Mode()))
}

// empty makes a directory with nothing of the host's in it.
func (v view) empty(dir string, mode fs.FileMode) error {
	if err := v.reflect(path.Dir(dir)); err != nil {
		return err
	}
	upper := v.upper(dir)
	if err := os.Mkdir(upper, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := unix.Setxattr(upper, "trusted.overlay.opaque", []byte("y"), 0); err != nil {
		return err
	}
	return errors.Join(os.Chown(upper, int(v.owner.UID), int(v.owner.GID)), os.Chmod(upper, mode))
}

// file makes a file of the node's in place of the host's.
func (v view) file(at, text string) error {
	if err := v.reflect(path.Dir(at)); err != nil {
		return err
	}
	upper := v.upper(at)
	return errors.Join(os.WriteFile(upper, []byte(text), 0o644), os.Chown(upper, int(v.owner.UID), int(v.owner.GID)))
}

// isOpen says whether everybody may look into a directory of the host's, and no
// list says otherwise (acl(5)).
func isOpen(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode()&0o005 != 0o005 {
		return false
	}
	_, err = unix.Lgetxattr(dir, "system.posix_acl_access", nil)
	return err != nil
}
