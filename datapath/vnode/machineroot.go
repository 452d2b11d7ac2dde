package vnode

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A machine's emulator finds of the host's files programs and libraries only, and
// writes none: whoever breaks out of it into its process sees less than a command in
// another node of the tenant's does.

// shown is what the emulator has of the host's files, where the host has it. What is a
// link stays one.
var shown = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache"}

// machineRoot makes a root directory for an emulator, and enters it.
func (s pause) machineRoot() error {
	if err := mount("sublet", s.Run, "tmpfs", safe, "size=64k,mode=0700"); err != nil {
		return err
	}
	root := s.Run + "/root"
	if err := os.Mkdir(root, 0o700); err != nil {
		return err
	}
	if err := mount("sublet", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=0755"); err != nil {
		return err
	}
	for _, file := range shown {
		if err := reveal(file, root); err != nil {
			return fmt.Errorf("show %s to the machine: %w", file, err)
		}
	}
	return pivot(root)
}

// reveal shows a file or directory of the host's below a root, read only.
func reveal(file, root string) error {
	info, err := os.Lstat(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	at := path.Join(root, file)
	if err := os.MkdirAll(path.Dir(at), 0o755); err != nil {
		return err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		to, err := os.Readlink(file)
		return errors.Join(err, os.Symlink(to, at))
	case info.IsDir():
		err = os.Mkdir(at, 0o755)
	default:
		err = os.WriteFile(at, nil, 0o644)
	}
	if err != nil {
		return err
	}
	fd, err := openTree(file, true)
	if err != nil {
		return err
	}
	tree := os.NewFile(uintptr(fd), filepath.Base(file))
	defer tree.Close()
	return attach(tree, at)
}

// seal makes the root directory, and the ways that are mounts, ones in which nothing
// can be written.
func (s pause) seal() error {
	for _, dir := range s.leading() {
		if err := mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return err
		}
	}
	return mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
}
