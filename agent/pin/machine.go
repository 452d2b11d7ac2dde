package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Here is the machine that this process runs on.
type Here struct{}

// mostCores bounds the numbers of cores: as many as an affinity has room for.
const mostCores = 1024

// Cores are those that this process may run on, of which the operator may keep others
// away from it.
func (Here) Cores() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return nil, fmt.Errorf("read which cores may be used: %w", err)
	}
	return coresOf(&set), nil
}

func coresOf(set *unix.CPUSet) (list []int) {
	for n := range mostCores {
		if set.IsSet(n) {
			list = append(list, n)
		}
	}
	return list
}

// Interrupts are those of /proc/stat.
func (Here) Interrupts() (map[int]time.Duration, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return nil, fmt.Errorf("read what cores spend in interrupts: %w", err)
	}
	times := make(map[int]time.Duration)
	for n, cpu := range stat.CPU {
		times[int(n)] = time.Duration((cpu.IRQ + cpu.SoftIRQ) * float64(time.Second))
	}
	return times, nil
}

// Others looks at all threads of the machine. Those of the kernel have no program; what
// they spend is in interrupts, or nothing to speak of.
func (Here) Others(but map[int]bool) (map[int]map[int]time.Duration, error) {
	times := make(map[int]map[int]time.Duration)
	names, err := readNames("/proc")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || but[pid] {
			continue
		}
		for thread, core := range pinnedThreads(pid) {
			if times[core] == nil {
				times[core] = make(map[int]time.Duration)
			}
			times[core][thread] = spent(pid, thread)
		}
	}
	return times, nil
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// pinnedThreads are those of a process that may run on one core alone, with its number.
func pinnedThreads(pid int) map[int]int {
	var list map[int]int
	names, _ := readNames(fmt.Sprintf("/proc/%d/task", pid)) // none: it has ended
	for _, name := range names {
		thread, _ := strconv.Atoi(name)
		var set unix.CPUSet
		if unix.SchedGetaffinity(thread, &set) != nil || set.Count() != 1 {
			continue
		}
		if list == nil {
			if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); errors.Is(err, fs.ErrNotExist) {
				return nil // the kernel's
			}
			list = make(map[int]int)
		}
		list[thread] = coresOf(&set)[0]
	}
	return list
}

// spent is the processor time of a thread; 0: it has ended.
func spent(pid, thread int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, thread))
	field, _, _ := strings.Cut(string(text), " ")
	ns, _ := strconv.ParseInt(field, 10, 64)
	return time.Duration(ns)
}

// Pin sets the affinity of all threads. Threads and processes that begin while it looks
// inherit the old or the new one, and are found the next time.
func (Here) Pin(pid int, cores []int) error {
	var want unix.CPUSet
	for _, n := range cores {
		want.Set(n)
	}
	names, err := readNames(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return nil // it has ended
	}
	for _, name := range names {
		thread, _ := strconv.Atoi(name)
		var have unix.CPUSet
		if unix.SchedGetaffinity(thread, &have) != nil || have == want {
			continue
		}
		if err := unix.SchedSetaffinity(thread, &want); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("put thread %d of process %d on cores %v: %w", thread, pid, cores, err)
		}
	}
	return nil
}

// Pinned reads the affinity of a process's first thread.
func (Here) Pinned(pid int) (int, bool) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil || set.Count() != 1 {
		return 0, false
	}
	return coresOf(&set)[0], true
}

// Ready counts threads in state R.
func (Here) Ready(pids []int) (n int) {
	for _, pid := range pids {
		threads, err := procfs.AllThreads(pid)
		if err != nil {
			continue // it has ended
		}
		for _, t := range threads {
			if stat, err := t.Stat(); err == nil && stat.State == "R" {
				n++
			}
		}
	}
	return n
}
