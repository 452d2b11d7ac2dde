package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// NoOwner is no user: -1 means "leave it" to chown(2).
const NoOwner = 1<<32 - 1

// OwnerFile is where a user's user namespace is mounted.
func (h *Host) OwnerFile(uid uint32) string {
	return filepath.Join(h.Dir("userns"), strconv.FormatUint(uint64(uid), 10))
}

// Owner tells which user a network namespace belongs to; os.ErrNotExist if
// there is none. One that belongs to no user namespace of ours is NoOwner's.
func (h *Host) Owner(namespace string) (uint32, error) {
	owner, err := UserNamespace(h.Path(namespace))
	if err != nil {
		return NoOwner, err
	}
	defer owner.Close()
	names, err := h.Names("userns")
	if err != nil {
		return NoOwner, err
	}
	for _, name := range names {
		uid, err := strconv.ParseUint(name, 10, 32)
		if err == nil && SameFile(owner, h.OwnerFile(uint32(uid))) {
			return uint32(uid), nil
		}
	}
	return NoOwner, nil
}

// nsGetUserns is NS_GET_USERNS of ioctl_ns(2).
const nsGetUserns = 0xb701

// UserNamespace opens the user namespace that owns a network namespace.
func UserNamespace(path string) (*os.File, error) {
	ns, err := OpenNamespace(path)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	fd, err := unix.IoctlRetInt(int(ns.Fd()), nsGetUserns)
	if err != nil {
		return nil, fmt.Errorf("find the owner of %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path+" (owner)"), nil
}

// SameFile says whether an open file is the one of a path.
func SameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	b, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(a, b)
}
