package web

import (
	"encoding/json"
	"io"
	"net/http"

	"sublet/vnet"
	"sublet/vnet/file"
)

// problem answers in the form of the API (RFC 9457).
func problem(w http.ResponseWriter, status int, detail string) {
	answer(w, "application/problem+json", status, map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	})
}

func answer(w http.ResponseWriter, kind string, status int, value any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // a browser that went away need not know
}

// about says what the page may do.
func (h Handler) about(w http.ResponseWriter, _ *http.Request) {
	answer(w, "application/json", http.StatusOK, map[string]bool{"read_only": h.ReadOnly})
}

// readRequest turns a request as people write it (YAML) into that of the API.
func (h Handler) readRequest(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		problem(w, http.StatusRequestEntityTooLarge, "the request is too large")
		return
	}
	request, err := h.parse(text)
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	answer(w, "application/json", http.StatusOK, request)
}

// parse holds its turn no longer than it needs: the browser may take the answer slowly.
func (h Handler) parse(text []byte) (vnet.Request, error) {
	if h.Turn != nil {
		defer h.Turn(len(text))()
	}
	return file.ParseRequest("request", text)
}
