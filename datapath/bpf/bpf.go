// Package bpf is what the datapath's parts share to run programs in the
// kernel: C headers (include/), the recipe that compiles (generate), and here
// the pins by which programs and maps outlive the agent.
//
// A part's programs are attached by TCX links (Linux 6.6), pinned, so that
// they stay when the agent ends. A new agent opens the pins: what is right is
// not touched, a newer program replaces an older one in one step, without a
// packet in between that meets none.
//
// Sources: bpf(2), Documentation/bpf/ of Linux, github.com/cilium/ebpf.
package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Pins is the directory of one part's pinned objects on one host:
// RUN/bpf/HOST/PART. The file system is mounted on RUN/bpf/HOST, one for each
// host, since a host has one agent and a run directory may have several.
type Pins struct {
	host      *kernel.Host
	root, dir string
	loaded    map[string]pinned // by pin, what Load gave
}

// pinned is a map or a program.
type pinned interface {
	repin(path string) error
}

// mounting keeps one part from taking the mount away under another that has
// just found it.
var mounting sync.Mutex

// OpenPins mounts the host's file system unless it is mounted, and makes the
// part's directory. One that is mounted and not to be seen is kernel.ErrUnseen.
func OpenPins(h *kernel.Host, part string) (*Pins, error) {
	p := &Pins{host: h, root: h.Dir("bpf"), loaded: make(map[string]pinned)}
	p.dir = filepath.Join(p.root, part)
	return p, p.open()
}

func (p *Pins) open() error {
	mounting.Lock()
	defer mounting.Unlock()
	if err := os.MkdirAll(p.root, 0o700); err != nil {
		return fmt.Errorf("make a directory for pinned programs: %w", err)
	}
	if there, err := mounted(p.host); err != nil {
		return err
	} else if !there {
		if err := unix.Mount("sublet", p.root, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
			return fmt.Errorf("mount a bpf file system on %s: %w", p.root, err)
		}
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("make a directory for pinned programs: %w", err)
	}
	return nil
}

// Repin mounts the file system again if somebody unmounted it, and pins again
// what Load gave and is not pinned any more, so that a later agent finds it.
// Links are for Attach to make again.
func (p *Pins) Repin() error {
	if err := p.open(); err != nil {
		return err
	}
	names, err := p.Names()
	if err != nil {
		return err
	}
	for name, object := range p.loaded {
		if slices.Contains(names, name) {
			continue
		}
		if err := object.repin(p.Path(name)); err != nil {
			return fmt.Errorf("pin %s again: %w", name, err)
		}
	}
	return nil
}

// Left says whether a part has pinned anything on a host. That it cannot be
// told is an error.
func Left(h *kernel.Host, part string) (bool, error) {
	mounting.Lock()
	defer mounting.Unlock()
	if there, err := mounted(h); err != nil || !there {
		return false, err
	}
	_, err := os.Stat(filepath.Join(h.Dir("bpf"), part))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Path of a pin. Names hold no '/' and no '.': the file system refuses dots.
func (p *Pins) Path(name string) string { return filepath.Join(p.dir, name) }

// Names lists the part's pins, sorted; a directory that is gone is empty.
func (p *Pins) Names() ([]string, error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Locked does something while no other process does anything by Locked with the
// same pins: what is read from a map, changed and put back. Pins that were taken
// away are nobody else's.
func (p *Pins) Locked(do func() error) error {
	dir, err := os.Open(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return do()
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", p.dir, err)
	}
	defer dir.Close() // ends the lock
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", p.dir, err)
	}
	return do()
}

// Remove takes pins away, present or not. A link that nothing else holds is
// detached thereby.
func (p *Pins) Remove(names ...string) error {
	for _, name := range names {
		if err := os.Remove(p.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unpin: %w", err)
		}
	}
	return nil
}

// Close removes the part's directory if it is empty, and with the last part's
// the mount. What is pinned stays.
func (p *Pins) Close() error {
	mounting.Lock()
	defer mounting.Unlock()
	_ = os.Remove(p.dir) // refused while something is pinned
	return unmount(p.root)
}

// Tidy unmounts a host's file system in which no part has anything: an agent
// that was killed, or failed, just before it would have left it so.
func Tidy(h *kernel.Host) error {
	mounting.Lock()
	defer mounting.Unlock()
	if there, err := mounted(h); err != nil || !there {
		return err
	}
	return unmount(h.Dir("bpf"))
}

// mounted says whether the host's file system is mounted; that one is, and
// cannot be seen, is kernel.ErrUnseen.
func mounted(h *kernel.Host) (bool, error) {
	var fs unix.Statfs_t
	root := h.Dir("bpf")
	err := unix.Statfs(root, &fs)
	switch {
	case err == nil && fs.Type == unix.BPF_FS_MAGIC:
		return true, nil
	case err != nil && err != unix.ENOENT:
		return false, fmt.Errorf("%s %w: %w", root, kernel.ErrUnseen, err)
	}
	return false, h.Hidden(root)
}

// unmount takes a file system without directories away, and its own; mounting
// is locked.
func unmount(root string) error {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// The kernel puts files of its own there; parts have directories.
	if err != nil || slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
		return err
	}
	if err := unix.Unmount(root, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && err != unix.EINVAL {
		return fmt.Errorf("unmount %s: %w", root, err)
	}
	_ = os.Remove(root) // refused while anything is there, or mounted
	_ = os.Remove(filepath.Dir(root))
	return nil
}
