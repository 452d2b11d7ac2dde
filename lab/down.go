package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Down ends the lab of a run directory and removes all it made, whatever state
// it is in. Without a lab there is nothing to do.
func Down(run string) error {
	run, err := filepath.Abs(run)
	if err != nil {
		return fmt.Errorf("lab down: %w", err)
	}
	lock, err := lockDir(dirOf(run), false)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lab down: %w", err)
	}
	defer lock.Close()
	s, err := readState(run)
	if errors.Is(err, os.ErrNotExist) {
		// Killed before it wrote, or while it removed its last files.
		return removeTree(dirOf(run))
	}
	if err != nil {
		return fmt.Errorf("lab down: %w", err)
	}
	return down(s)
}

// down is Down with the lock held. Every step is tried; the state stays until
// all are done, so that Down can be asked again.
func down(s *state) error {
	var errs []error
	try := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("lab down: %s: %w", what, err))
		}
	}
	try("stop processes", s.stop())
	for _, host := range s.Hosts {
		try("remove cgroups of "+host, removeCgroups(filepath.Join(Cgroup(s.Run), host)))
	}
	try("remove what the agents made", s.removeHosts())
	for _, name := range s.Namespaces {
		if isLabsOwn(name) {
			try("cut wires", cutWires(name))
		}
	}
	for _, name := range s.Namespaces {
		try("remove namespace "+name, kernel.Unbind(filepath.Join(netnsDir, name)))
	}
	if len(errs) == 0 {
		try("remove files", s.removeFiles())
	}
	return errors.Join(errs...)
}

// removeHosts removes RUN/*/HOST, and what is mounted there.
func (s *state) removeHosts() error {
	kinds, err := os.ReadDir(s.Run)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, kind := range kinds {
		dir := filepath.Join(s.Run, kind.Name())
		if !kind.IsDir() || dir == dirOf(s.Run) {
			continue
		}
		for _, host := range s.Hosts {
			if err := removeTree(filepath.Join(dir, host)); err != nil {
				return err
			}
		}
		_ = os.Remove(dir) // refused while others use it
	}
	return nil
}

// removeFiles removes what is left in the run directory; the state goes last.
func (s *state) removeFiles() error {
	if s.MadeRun {
		return removeTree(s.Run)
	}
	left := []string{filepath.Join(s.Run, "api.sock")}
	for _, host := range s.Hosts {
		for _, pattern := range []string{"agent-" + host + ".*", "*/*-" + host + ".json"} {
			of, err := filepath.Glob(filepath.Join(s.Run, pattern))
			if err != nil {
				return err
			}
			left = append(left, of...)
		}
		if s.Ends {
			left = append(left, filepath.Join(agentData(s.Run), "kept", host))
		}
	}
	if s.Ends && !s.shared() {
		left = append(left, agentData(s.Run))
	}
	for _, path := range append(left, dirOf(s.Run)) {
		if err := removeTree(path); err != nil {
			return err
		}
	}
	return nil
}

// shared says that agents which are none of the lab's keep something beside its own.
func (s *state) shared() bool {
	plans, _ := filepath.Glob(filepath.Join(agentData(s.Run), "plan-*.json")) // the pattern is a good one
	return slices.ContainsFunc(plans, func(path string) bool {
		name := filepath.Base(path)
		return !slices.Contains(s.Hosts, name[len("plan-"):len(name)-len(".json")])
	})
}

// removeTree unmounts everything in a directory and removes it. It refuses to
// delete through a mount that stays.
func removeTree(dir string) error {
	for range 2 {
		mounts, err := mountsBelow(dir)
		if err != nil {
			return err
		}
		slices.Reverse(mounts) // later ones may lie on earlier ones
		for _, mount := range mounts {
			if err := unix.Unmount(mount, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && err != unix.EINVAL {
				return fmt.Errorf("unmount %s: %w", mount, err)
			}
		}
	}
	if mounts, err := mountsBelow(dir); err != nil || len(mounts) > 0 {
		return errors.Join(err, fmt.Errorf("remove %s: %d mounts in it stay", dir, len(mounts)))
	}
	return os.RemoveAll(dir)
}

// mountsBelow lists mount points at and below a directory in the order they
// were made.
func mountsBelow(dir string) (points []string, err error) {
	mounts, err := kernel.Mounts(kernel.OwnMounts)
	for _, m := range mounts {
		if m.Within(dir) {
			points = append(points, m.Point)
		}
	}
	return points, err
}
