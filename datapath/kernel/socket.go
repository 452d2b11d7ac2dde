package kernel

import (
	"errors"
	"net"
	"os"
)

// ListenForRoot opens a Unix socket to which only root can connect, in place
// of one that a killed process left.
func ListenForRoot(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
