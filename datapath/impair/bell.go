package impair

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// bell wakes a thread that waits in ppoll(2): an eventfd, which goes when that thread
// ends, whoever rings afterwards.
type bell struct {
	mu sync.Mutex
	fd int
}

const silent = -1

func newBell() (*bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	return &bell{fd: fd}, nil
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fd != silent {
		_, _ = unix.Write(b.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// heard is for the thread that waits.
func (b *bell) heard() {
	var count [8]byte
	_, _ = unix.Read(b.fd, count[:])
}

func (b *bell) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	unix.Close(b.fd)
	b.fd = silent
}
