package trust

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

// Bounds of what is said of callers that could not prove who they are.
const (
	tellAgain    = 10 * time.Minute // of one address and one cause
	mostRefusers = 64               // addresses remembered; what others did wrong is not said meanwhile
)

// handshakes is where the HTTP server writes its errors. It passes on why
// connections failed before there was a request, once for each remote address
// and cause in a while.
type handshakes struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	told map[string]told // by remote address
}

// NewHandshakes is the writer of an HTTP server's log.Logger.
func NewHandshakes(log *slog.Logger) io.Writer {
	return &handshakes{log: log, now: time.Now, told: make(map[string]told)}
}

type told struct {
	cause string
	at    time.Time
}

// handshakeError begins what net/http says of a failed one.
const handshakeError = "http: TLS handshake error from "

func (h *handshakes) Write(line []byte) (int, error) {
	text, ours := strings.CutPrefix(strings.TrimSpace(string(line)), handshakeError)
	remote, cause, ok := strings.Cut(text, ": ")
	host, _, err := net.SplitHostPort(remote)
	if !ours || !ok || err != nil {
		h.log.Debug("of the HTTP server", "err", text)
		return len(line), nil
	}
	if h.news(host, cause) {
		h.log.Warn("a caller could not be verified", "remote", host, "err", cause)
	}
	return len(line), nil
}

// news notes a failure and says whether it is one to tell of.
func (h *handshakes) news(host, cause string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	for other, t := range h.told {
		if now.Sub(t.at) > tellAgain {
			delete(h.told, other)
		}
	}
	before, known := h.told[host]
	if before.cause == cause && known || !known && len(h.told) >= mostRefusers {
		return false
	}
	h.told[host] = told{cause, now}
	return true
}
