package lab

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// state is what Down needs to know, written before anything is made.
type state struct {
	Name       string    `json:"name"`
	Run        string    `json:"run"`
	MadeRun    bool      `json:"made_run"` // the run directory goes with the lab
	Ends       bool      `json:"ends"`     // the server's data goes with it, and so what agents keep for leases
	Began      time.Time `json:"began"`
	Token      string    `json:"token"` // in the environment of the lab's processes
	Hosts      []string  `json:"hosts"`
	Namespaces []string  `json:"namespaces"` // under /run/netns, the wires' first
	Processes  []process `json:"processes,omitempty"`

	discarded bool // it never came up
}

// ErrUp says that there is a lab already where one was to be made.
var ErrUp = errors.New("a lab is up already")

func stateFile(run string) string { return filepath.Join(dirOf(run), "state.json") }

// claim takes a run directory for a new lab and writes its state there, or
// says why there cannot be one and leaves nothing. The lock is the caller's.
func claim(spec Spec, l *layout) (s *state, lock *os.File, err error) {
	_, missing := os.Stat(spec.Run)
	lock, err = lockDir(dirOf(spec.Run), true)
	if err != nil {
		return nil, nil, err
	}
	s = &state{Name: spec.Name, Run: spec.Run, MadeRun: missing != nil, Ends: spec.Data == ownData(spec.Run), Began: time.Now(), Token: rand.Text(), Namespaces: l.namespaces()}
	for _, h := range spec.Substrate.Hosts {
		s.Hosts = append(s.Hosts, string(h.Name))
	}
	old, err := readState(spec.Run)
	switch {
	case err == nil:
		err = fmt.Errorf("%w: %q in %s, since %s: take it down first, or start again what ended of it with `sublet lab up`", ErrUp, old.Name, spec.Run, old.Began.Format(time.DateTime))
	case errors.Is(err, os.ErrNotExist):
		if err = l.free(); err == nil {
			err = s.write()
		}
		if err != nil {
			err = errors.Join(err, s.removeFiles())
		}
	}
	if err != nil {
		lock.Close()
		return nil, nil, err
	}
	return s, lock, nil
}

// free says whether nobody has the namespaces' names.
func (l *layout) free() error {
	for _, name := range l.namespaces() {
		if _, err := os.Lstat(filepath.Join(netnsDir, name)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: there is a network namespace %s: take down the lab it belongs to, or choose another name", ErrUp, name)
		}
	}
	return nil
}

func (s *state) write() error { return writeJSON(stateFile(s.Run), s) }

func readState(run string) (*state, error) {
	text, err := os.ReadFile(stateFile(run))
	if err != nil {
		return nil, err
	}
	s := &state{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read %s: %w", stateFile(run), err)
	}
	return s, nil
}

// writeJSON replaces a file at once: a reader sees the old or the new one.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// lockPatience is how long a lock may be taken before we say so: a child of an
// Up that was killed holds it until it has become another program.
const lockPatience = 2 * time.Second

// lockDir holds a directory against a second Up or Down in another process;
// the lock goes with the process. If create is false and there is no
// directory, the error is os.ErrNotExist.
func lockDir(dir string, create bool) (*os.File, error) {
	for end := time.Now().Add(lockPatience); ; time.Sleep(5 * time.Millisecond) {
		if create {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
		}
		f, err := os.Open(dir)
		if errors.Is(err, os.ErrNotExist) && create {
			continue // removed in between
		}
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && isStill(f, dir) {
			return f, nil
		}
		f.Close() // also if we locked a directory that was just removed
		if time.Now().After(end) {
			return nil, fmt.Errorf("%s is at work in %s: wait until it is done", holder(dir), dir)
		}
	}
}

func isStill(f *os.File, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(held, now)
}
