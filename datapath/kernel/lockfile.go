package kernel

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process has a lock.
var ErrLocked = errors.New("another process has the lock")

// LockFile takes the lock of a file, which it makes if there is none, until it
// is closed; ErrLocked. The lock is the process's (fcntl(2)): flock(2)'s would
// be held by a child that was made just before this process was killed, and
// keep the next one out.
func LockFile(path string) (io.Closer, error) {
	if err := MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		f.Close()
		if err == unix.EACCES || err == unix.EAGAIN {
			err = ErrLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
