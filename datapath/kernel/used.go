package kernel

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Used is the processor time of what runs in a group: in version 2 that of all that
// ever ran there; in version 1, where the controllers of limits do not count it, that
// of the processes that live, so that it may fall.
func (g Group) Used() (time.Duration, error) {
	if mount, version := g.cgroups.Controller("cpu"); version == 2 {
		micros, err := statOf(filepath.Join(mount, g.path, "cpu.stat"), "usage_usec")
		return time.Duration(micros) * time.Microsecond, err
	}
	pids, err := g.Processes()
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, pid := range pids {
		used, err := ClockOf(pid)
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// Throttled is in how many periods a group wanted more than its quota.
func (g Group) Throttled() (int64, error) {
	mount, version := g.cgroups.Controller("cpu")
	if version == 0 {
		return 0, nil
	}
	return statOf(filepath.Join(mount, g.path, "cpu.stat"), "nr_throttled")
}

// statOf is a figure of a file such as cpu.stat.
func statOf(path, name string) (value int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), name+" "); ok {
			_, err := fmt.Sscan(text, &value)
			return value, err
		}
	}
	return 0, fmt.Errorf("%s has no %s", file.Name(), name)
}

// ClockOf is the processor time of a process with all of its threads; 0: it has
// ended.
func ClockOf(pid int) (time.Duration, error) {
	const scheduled = 2 // the clock of time on a processor: linux/posix-timers.h
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil && !errors.Is(err, unix.EINVAL) {
		return 0, fmt.Errorf("read the clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
