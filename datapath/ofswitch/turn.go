package ofswitch

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// slot is how long the switch's thread runs before others that want to, in
// nanoseconds: the least the kernel takes. It gets no more of the processor, but
// comes sooner to it when a frame wakes it up (Linux 6.12; before, it means nothing).
const slot = 100_000

// drive gives the calling goroutine a thread of its own, for frames.
func drive() {
	if runtime.GOMAXPROCS(0) < 2 { // this thread holds one while it waits for frames, and connections need one
		runtime.GOMAXPROCS(2)
	}
	runtime.LockOSThread()
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil || a.Policy != unix.SCHED_NORMAL {
		return // whoever started it has chosen something else
	}
	a.Runtime = slot
	_ = unix.SchedSetAttr(0, a, 0) // a kernel that has no slices goes on without
}
