package overlay

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/plan"
)

// A host whose programs could not be loaded, here for want of file descriptors,
// is as it was: it can be observed, has no pins, and the next attempt succeeds.
func TestFailedLoadLeavesTheHostAlone(t *testing.T) {
	l := newLab(t)
	h, other := l.hosts[0], l.hosts[1]
	// The library remembers what the kernel can do; it must not find out meanwhile.
	check1(t, other.part.Do(context.Background(), plan.Step{Op: plan.Add, Item: item(1, "", under4)}))
	step := plan.Step{Op: plan.Add, Item: item(0, "", under4)}
	withFewFiles(t, 9, func() {
		if err := h.part.Do(context.Background(), step); err == nil { // EMFILE, or what the library makes of it
			t.Error("with few file descriptors the entry is made")
		}
	})
	if _, err := os.Stat(h.Dir("bpf") + "/overlay"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("pins of a failed load are left: %v", err)
	}
	withFewFiles(t, 9, func() {
		var have plan.Host
		if err := h.part.Observe(context.Background(), &have); err != nil {
			t.Errorf("after a failed load the host cannot be observed: %v", err)
		}
	})
	l.tunnel("", under4)
	l.ping(inner(1))
}

// withFewFiles does something with n more file descriptors than there are.
func withFewFiles(t *testing.T, n uint64, do func()) {
	t.Helper()
	var was unix.Rlimit
	check1(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	next, err := unix.Dup(0) // the lowest free number
	check1(t, err)
	unix.Close(next)
	check1(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next) + n, Max: was.Max}))
	defer func() { check1(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	do()
}
