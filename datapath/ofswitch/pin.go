package ofswitch

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin has all threads of this process, and those that they start, run on some
// processors only.
func Pin(processors []int) error {
	var set, may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return err
	}
	for _, n := range processors {
		if !may.IsSet(n) {
			return fmt.Errorf("there is no processor %d, or this process may not run on it", n)
		}
		set.Set(n)
	}
	for pinned := map[int]bool{}; ; {
		before := len(pinned)
		if err := pinThreads(pinned, &set); err != nil {
			return err
		}
		if len(pinned) == before { // none has been started by one that was not pinned yet
			return nil
		}
	}
}

// pinThreads pins those that are not in a list, and adds them to it.
func pinThreads(pinned map[int]bool, set *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil || pinned[id] {
			continue
		}
		if err := unix.SchedSetaffinity(id, set); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		pinned[id] = true
	}
	return nil
}
