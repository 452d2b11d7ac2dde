package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Processes lists the group's processes.
func (g Group) Processes() ([]int, error) {
	var pids []int
	for _, dir := range g.dirs() {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		for _, field := range strings.Fields(string(data)) {
			var pid int
			if _, err := fmt.Sscan(field, &pid); err == nil && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// killTime bounds how long processes may take to die of SIGKILL.
const killTime = 5 * time.Second

// Remove kills every process of the group and removes it.
func (g Group) Remove() error {
	for end := time.Now().Add(killTime); ; time.Sleep(2 * time.Millisecond) {
		pids, err := g.Processes()
		if err != nil {
			return err
		}
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL) // one that is gone already is fine
		}
		if err = g.rmdir(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

func (g Group) rmdir() error {
	for _, dir := range g.dirs() {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// RemoveParents removes the group's empty parents.
func (g Group) RemoveParents() {
	for dir := filepath.Dir(g.path); dir != "." && dir != "/"; dir = filepath.Dir(dir) {
		for _, mount := range g.mounts() {
			unix.Rmdir(filepath.Join(mount, dir)) // refused while others use it
		}
	}
}
