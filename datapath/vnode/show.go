package vnode

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// refresh shows a node's mounts, which the calling thread has entered, the
// program, the names and what belongs to routing daemons as they are now: a new
// version may have taken the place of the program, and the others may have been
// written anew.
func refresh(trees map[string]int) error {
	defer unix.Chdir("/")
	for at, tree := range trees {
		if err := show(tree, at); err != nil {
			return fmt.Errorf("mount %s anew: %w", at, err)
		}
	}
	return nil
}

// show mounts a tree on a path of the node in place of the tree before. The node
// may have changed all on the way while this runs: no link is followed, so that
// whatever it did the mount is on a directory of that name or nowhere. A
// directory is made if it is missing; a file is shown if there was one when the
// node was made.
func show(tree int, at string) error {
	var now, was unix.Stat_t
	if err := unix.Fstat(tree, &now); err != nil {
		return err
	}
	isDir := now.Mode&unix.S_IFMT == unix.S_IFDIR
	err := enterDirectory(path.Dir(at), isDir)
	name := path.Base(at)
	if err == nil && isDir {
		err = makeDirectory(name)
	}
	if err == nil {
		err = unix.Lstat(name, &was)
	}
	if err != nil || was.Mode&unix.S_IFMT != now.Mode&unix.S_IFMT {
		return nil // it has none, or the tenant has something else there
	}
	if now.Ino == was.Ino && now.Dev == was.Dev {
		return nil
	}
	_ = unix.Unmount(name, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) // it may be none
	return unix.MoveMount(tree, "", unix.AT_FDCWD, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// enterDirectory makes a directory the working directory, if no link is on the
// way; missing ones may be made.
func enterDirectory(dir string, make bool) error {
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	for _, name := range strings.FieldsFunc(dir, func(r rune) bool { return r == '/' }) {
		if make {
			if err := makeDirectory(name); err != nil {
				return err
			}
		}
		fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = unix.Fchdir(fd)
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// makeDirectory makes one in the working directory if there is nothing. It stays
// root's: what a change of its owner would reach is up to the node.
func makeDirectory(name string) error {
	if err := unix.Mkdir(name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// trees opens what refresh shows, as mounts that any mount namespace can take;
// what is not there is left out.
func (s session) trees() (map[string]int, error) {
	trees := make(map[string]int)
	shown := map[string]string{SelfInside(s.Run): s.Program, hostsFile: s.Hosts}
	maps.Copy(shown, s.FRR)
	for at, path := range shown {
		fd, err := openTree(path, true)
		switch {
		case errors.Is(err, unix.ENOENT):
		case err != nil:
			return nil, fmt.Errorf("open %s: %w", filepath.Base(path), err)
		default:
			trees[at] = fd
		}
	}
	return trees, nil
}
