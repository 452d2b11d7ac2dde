package capture

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// inNamespace runs f on a thread inside the network namespace of a file. A
// thread that cannot return stays locked and so ends with its goroutine.
func inNamespace(path string, f func() error) error {
	there, err := os.Open(path)
	if err != nil {
		return err
	}
	defer there.Close()
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		returned, err := visit(there, f)
		if returned {
			runtime.UnlockOSThread()
		}
		result <- err
	}()
	return <-result
}

// visit says whether the thread is back where it was.
func visit(there *os.File, f func() error) (returned bool, err error) {
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return true, err
	}
	defer here.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return true, fmt.Errorf("enter the namespace: %w", err)
	}
	err = f()
	return unix.Setns(int(here.Fd()), unix.CLONE_NEWNET) == nil, err
}
