package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"sublet/vnet"
	"sublet/vnet/file"
)

const problemType = "application/problem+json"

// wrong is a problem of a text, with each place where something is wrong.
type wrong struct {
	Type     string  `json:"type"`
	Title    string  `json:"title"`
	Status   int     `json:"status"`
	Detail   string  `json:"detail"`
	Problems []place `json:"problems,omitempty"`
}

// place is where a text is wrong, counted from 1, and what is.
type place struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Problem string `json:"problem"`
}

func places(err error) (list []place) {
	var input *vnet.InputError
	if !errors.As(err, &input) {
		return nil
	}
	for _, e := range append([]*vnet.InputError{input}, input.More...) {
		list = append(list, place{e.Line, e.Column, e.Problem})
	}
	return list
}

// problem answers in the form of the API (RFC 9457).
func problem(w http.ResponseWriter, status int, detail string) {
	answer(w, problemType, status, map[string]any{
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
		answer(w, problemType, http.StatusBadRequest, wrong{"about:blank", http.StatusText(http.StatusBadRequest), http.StatusBadRequest, err.Error(), places(err)})
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
