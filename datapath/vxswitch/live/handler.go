package live

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"sublet/datapath/kernel"
)

// Serve answers on a Unix socket, which only root can open, until ctx is done:
// GET /health (answered between two rounds, as the others are), GET /status
// (JSON), GET /metrics (Prometheus), GET /config (what it was told
// to be), PUT /config (YAML: become that).
func (h *Host) Serve(ctx context.Context, socket string) error {
	l, err := kernel.ListenForRoot(socket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h.handler(), ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (h *Host) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		if st, ok := h.ask(w, r); ok {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(st)
		}
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {
		if err := h.Do(r.Context(), func() {}); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if st, ok := h.ask(w, r); ok {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			st.Metrics(w)
		}
	})
	mux.HandleFunc("GET /config", func(w http.ResponseWriter, r *http.Request) {
		var text []byte
		if err := h.Do(r.Context(), func() { text = h.text }); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Write(text)
	})
	mux.HandleFunc("PUT /config", h.become)
	return mux
}

func (h *Host) ask(w http.ResponseWriter, r *http.Request) (st Status, ok bool) {
	if err := h.Do(r.Context(), func() { st = h.Status() }); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return st, false
	}
	return st, true
}

// maxConfig is the longest description that is read.
const maxConfig = 4 << 20

func (h *Host) become(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxConfig))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c, err := Parse("config", text)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var result error
	if err := h.Do(r.Context(), func() { result = h.Change(c) }); err != nil {
		result = err
	}
	if result != nil {
		http.Error(w, result.Error(), http.StatusConflict)
	}
}

// Dial returns a client of a hosting switch's socket; the host in its URLs is
// not looked at.
func Dial(socket string) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
}
