package kernel

import (
	"net"

	"sublet/internal/socket"
)

// ListenForRoot opens a Unix socket to which only root can connect, in place
// of one that a killed process left, and makes it again when it is taken away.
func ListenForRoot(path string) (net.Listener, error) { return socket.Listen(path, 0o600, nil) }
