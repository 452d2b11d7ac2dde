package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrUnseen says that something cannot be looked at: whether it is there is not
// known. Nothing is concluded from it, least of all that something is not there.
var ErrUnseen = errors.New("cannot be looked at")

// Look says whether one of the host's directories can be looked at: an error is
// ErrUnseen. One that is not there is empty, unless it had something in it when
// it was last listed.
func (h *Host) Look(kind string) error {
	dir := h.Dir(kind)
	now, err := directoryAt(dir)
	if errors.Is(err, os.ErrNotExist) && (kind == "bpf" || !h.filled(kind)) {
		return nil // of a bpf file system Hidden tells
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s %w: it is missing, and something was in it; if that is lost: mkdir -m 700 -p %s, and start the agent again", dir, ErrUnseen, dir)
	}
	if err == nil && kind != "bpf" {
		err = h.same(kind, now)
	}
	if err != nil {
		return fmt.Errorf("%s %w: %w", dir, ErrUnseen, err)
	}
	return nil
}

// directory identifies one.
type directory struct{ device, number uint64 }

func directoryAt(dir string) (d directory, err error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return d, &os.PathError{Op: "look at", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return d, errors.New("it is not a directory")
	}
	return directory{st.Dev, st.Ino}, nil
}

// same says whether a kind's directory is the one it was, as long as there was
// anything in it, and on the file system of the run directory: on another one it
// is a mount that covers it.
func (h *Host) same(kind string, now directory) error {
	run, err := directoryAt(h.Run)
	if err != nil {
		return err
	}
	if run.device != now.device {
		return errors.New("another file system is mounted on it")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.dirs[kind]
	if was.filled && was.at != now {
		return errors.New("it is not the directory that it was; if what was in that is lost: start the agent again")
	}
	h.dirs[kind] = seen{at: now, filled: was.filled, listed: was.listed}
	return nil
}

// seen is what was last seen of a directory.
type seen struct {
	at             directory
	filled, listed bool // it had something in it; that is known
}

// filled says whether a kind's directory had anything in it when it was last
// listed. Nodes have control groups beside their namespaces, which tells an
// agent that starts without a directory of namespaces that there was one.
func (h *Host) filled(kind string) bool {
	h.mu.Lock()
	was := h.dirs[kind]
	h.mu.Unlock()
	if was.listed || kind != "netns" {
		return was.filled
	}
	names, err := h.Group("x").Siblings()
	return err != nil || slices.ContainsFunc(names, func(name string) bool { return strings.Count(name, ".") == 2 })
}

func (h *Host) note(kind string, filled bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.dirs[kind]
	h.dirs[kind] = seen{at: was.at, filled: filled, listed: true}
}

// Hidden says that something is mounted at a path of the host, or below it,
// which cannot be seen there: because another file system covers it, or because
// this process has other mounts than the machine's first one. The error is
// ErrUnseen; nil: nothing is known to be hidden.
func (h *Host) Hidden(path string) error {
	for _, table := range []string{OwnMounts, FirstMounts} {
		mounted, err := mountedAt(table, path)
		if err != nil {
			if table == OwnMounts {
				return fmt.Errorf("%s %w: %w", path, ErrUnseen, err)
			}
			continue // another user's
		}
		if mounted {
			return fmt.Errorf("%s %w: it is mounted (%s) and not to be seen here", path, ErrUnseen, table)
		}
	}
	return nil
}

// Unseen is Hidden for a namespace that was not found.
func (h *Host) Unseen(namespace string) error {
	if err := h.Look("netns"); err != nil {
		return err
	}
	return h.Hidden(h.Path(namespace))
}

// mountedAt says whether a table of mounts has one at a path or below.
func mountedAt(table, path string) (bool, error) {
	path = concealed(path)
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	mounts, err := Mounts(table)
	return slices.ContainsFunc(mounts, func(m Mount) bool { return m.Within(path) }), err
}
