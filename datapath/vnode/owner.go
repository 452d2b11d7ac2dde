package vnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// owners keeps one user namespace per user, and a helper process in each that
// makes the network namespaces it owns: only a process inside can.
type owners struct {
	host   *kernel.Host
	mu     sync.Mutex
	makers map[uint32]*maker
}

func newOwners(host *kernel.Host) *owners {
	return &owners{host: host, makers: make(map[uint32]*maker)}
}

func (o *owners) path(uid uint32) string {
	return filepath.Join(o.host.Dir("userns"), strconv.FormatUint(uint64(uid), 10))
}

// namespace makes a network namespace that belongs to a user. A helper that
// died is started again once.
func (o *owners) namespace(uid uint32) (*os.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for try := 0; ; try++ {
		m := o.makers[uid]
		if m == nil {
			var err error
			if m, err = startMaker(o.path(uid), uid); err != nil {
				return nil, err
			}
			o.makers[uid] = m
		}
		ns, err := m.namespace()
		if err == nil {
			return ns, nil
		}
		m.close()
		delete(o.makers, uid)
		if try > 0 {
			return nil, fmt.Errorf("make a network namespace for user %d: %w", uid, err)
		}
	}
}

// of tells whose a network namespace is; os.ErrNotExist if there is none.
// One that belongs to no user namespace of ours is nobody's.
func (o *owners) of(path string) (uint32, error) {
	owner, err := userNamespace(path)
	if err != nil {
		return noOwner, err
	}
	defer owner.Close()
	names, err := o.host.Names("userns")
	if err != nil {
		return noOwner, err
	}
	for _, name := range names {
		uid, err := strconv.ParseUint(name, 10, 32)
		if err == nil && sameFile(owner, filepath.Join(o.host.Dir("userns"), name)) {
			return uint32(uid), nil
		}
	}
	return noOwner, nil
}

// nsGetUserns is NS_GET_USERNS of ioctl_ns(2).
const nsGetUserns = 0xb701

// userNamespace opens the user namespace that owns a network namespace.
func userNamespace(path string) (*os.File, error) {
	ns, err := kernel.OpenNamespace(path)
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

func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	b, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(a, b)
}

// sweep removes the user namespaces, and their helpers, of users without nodes.
func (o *owners) sweep(used map[uint32]bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	names, err := o.host.Names("userns")
	for _, name := range names {
		uid, bad := strconv.ParseUint(name, 10, 32)
		if bad == nil && used[uint32(uid)] {
			continue
		}
		if m := o.makers[uint32(uid)]; m != nil {
			m.close()
			delete(o.makers, uint32(uid))
		}
		err = errors.Join(err, kernel.Unbind(filepath.Join(o.host.Dir("userns"), name)))
	}
	return err
}

func (o *owners) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid, m := range o.makers {
		m.close()
		delete(o.makers, uid)
	}
}
