package vnode

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"sublet/datapath/kernel"
)

// owners keeps one user namespace per user, and a helper process in each that
// makes the network namespaces it owns: only a process inside can. Nobody
// waits for another user's helper.
type owners struct {
	host *kernel.Host
	kept func() (map[uint32]uint32, error) // ranges that files belong to which nodes keep
	mu   sync.Mutex
	all  map[uint32]*owner
}

type owner struct {
	mu    sync.Mutex
	maker *maker // nil: none is running
}

func newOwners(host *kernel.Host) *owners {
	return &owners{host: host, all: make(map[uint32]*owner)}
}

func (o *owners) of(uid uint32) *owner {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all[uid] == nil {
		o.all[uid] = &owner{}
	}
	return o.all[uid]
}

// namespace makes a network namespace that belongs to a user. A helper that
// died is started again once.
func (o *owners) namespace(uid uint32) (*os.File, error) {
	w := o.of(uid)
	w.mu.Lock()
	defer w.mu.Unlock()
	for try := 0; ; try++ {
		if w.maker == nil {
			m, err := o.start(uid)
			if err != nil {
				return nil, err
			}
			w.maker = m
		}
		ns, err := w.maker.namespace()
		if err == nil {
			return ns, nil
		}
		w.end()
		if try > 0 || errors.Is(err, errSilent) {
			return nil, fmt.Errorf("make a network namespace for user %d: %w", uid, err)
		}
	}
}

// start starts a user's helper. Who has no user namespace yet gets a range for it.
func (o *owners) start(uid uint32) (*maker, error) {
	path := o.host.OwnerFile(uid)
	userns, err := kernel.OpenNamespace(path)
	if errors.Is(err, os.ErrNotExist) {
		err = o.reserve(uid)
	} else if err == nil {
		err = o.recall(uid, userns)
		userns.Close()
	}
	if err != nil {
		return nil, err
	}
	root, err := rootOwner(o.host, uid)
	if err != nil {
		return nil, err
	}
	return startMaker(path, root)
}

// end ends the helper; w is locked.
func (w *owner) end() {
	if w.maker != nil {
		w.maker.close()
		w.maker = nil
	}
}

// sweep removes the user namespaces, their helpers and their ranges of users without
// nodes, while nobody makes any.
func (o *owners) sweep(used map[uint32]bool) error {
	names, err := o.host.Names("userns")
	for _, name := range names {
		uid, bad := strconv.ParseUint(name, 10, 32)
		if bad == nil && used[uint32(uid)] {
			continue
		}
		if bad == nil {
			o.drop(uint32(uid))
		}
		err = errors.Join(err, kernel.Unbind(filepath.Join(o.host.Dir("userns"), name)))
	}
	return errors.Join(err, o.free(used))
}

func (o *owners) drop(uid uint32) {
	w := o.of(uid)
	w.mu.Lock()
	w.end()
	w.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, uid)
}

func (o *owners) close() {
	for _, uid := range o.users() {
		o.drop(uid)
	}
}

func (o *owners) users() []uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.all))
}
