package vnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

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

// namespace makes a network namespace that belongs to a user. A helper that
// died is started again once.
func (o *owners) namespace(uid uint32) (*os.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for try := 0; ; try++ {
		m := o.makers[uid]
		if m == nil {
			var err error
			if m, err = startMaker(o.host.OwnerFile(uid), uid); err != nil {
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
