package server

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"sublet/internal/socket"
	"sublet/lease/api"
	"sublet/trust"
)

// Listen opens the API's unix socket in the run directory: everybody may
// connect, the kernel says who it is. A socket that a killed server left is
// replaced, one that a living server serves is not. What becomes of it later
// is logged; log may be nil.
func Listen(run string, log *slog.Logger) (net.Listener, error) {
	if err := os.MkdirAll(run, 0o755); err != nil {
		return nil, fmt.Errorf("make the run directory: %w", err)
	}
	path := filepath.Join(run, api.SocketName)
	if socket.Answers(path) {
		return nil, fmt.Errorf("listen on %s: another server answers there", path)
	}
	l, err := socket.Listen(path, 0o666, log)
	if err != nil {
		return nil, fmt.Errorf("listen for the API: %w", err)
	}
	return trust.NewPeers(l), nil
}
