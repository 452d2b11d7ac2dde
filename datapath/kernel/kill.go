package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Processes lists the processes of the group and of the groups inside it.
func (g Group) Processes() ([]int, error) {
	var pids []int
	for _, dir := range g.tree() {
		more, err := processesOf(dir)
		if err != nil {
			return nil, err
		}
		for _, pid := range more {
			if !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// processesOf lists the processes of one directory; none if it is gone.
func processesOf(dir string) (pids []int, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
		return nil, err
	}
	for _, field := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// tree lists the group's directories and those inside, outer ones first.
func (g Group) tree() []string { return treeOf(g.dirs()) }

func treeOf(roots []string) (dirs []string) {
	for _, dir := range roots {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // one that is gone has nothing in it
		})
	}
	return dirs
}

// killTime bounds how long processes may take to die of SIGKILL.
const killTime = 5 * time.Second

// Remove kills every process of the group and of those inside, and removes them.
func (g Group) Remove() error {
	for end := time.Now().Add(killTime); ; time.Sleep(2 * time.Millisecond) {
		pids, err := g.Processes()
		if err != nil {
			return err
		}
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL) // one that is gone already is fine
		}
		g.letDie()
		if err = g.Rmdir(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// Rmdir removes the group and those inside; it fails if there are processes in them.
func (g Group) Rmdir() error {
	for _, dir := range slices.Backward(append(g.tree(), treeOf(g.freezers())...)) {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// RemoveParents removes the group's empty parents.
func (g Group) RemoveParents() {
	for dir := filepath.Dir(g.path); dir != "." && dir != "/"; dir = filepath.Dir(dir) {
		for _, mount := range append(g.mounts(), g.cgroups.freezer()...) {
			unix.Rmdir(filepath.Join(mount, dir)) // refused while others use it
		}
	}
}
