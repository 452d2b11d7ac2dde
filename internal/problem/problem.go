// Package problem writes errors of HTTP in the form of RFC 9457: what the API's
// callers read, whichever handler answers them.
package problem

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
)

// ContentType of a problem.
const ContentType = "application/problem+json"

// Problem is the members that every problem has.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

var types = map[int]string{
	http.StatusBadRequest:            "urn:sublet:bad-input",
	http.StatusUnauthorized:          "urn:sublet:unauthorized",
	http.StatusForbidden:             "urn:sublet:forbidden",
	http.StatusNotFound:              "urn:sublet:not-found",
	http.StatusMethodNotAllowed:      "urn:sublet:not-found", // there is no such route
	http.StatusConflict:              "urn:sublet:conflict",
	http.StatusPreconditionFailed:    "urn:sublet:changed",
	http.StatusRequestEntityTooLarge: "urn:sublet:too-large",
	http.StatusUpgradeRequired:       "urn:sublet:upgrade-required",
	http.StatusTooManyRequests:       "urn:sublet:too-many",
	http.StatusInternalServerError:   "urn:sublet:internal",
	http.StatusBadGateway:            "urn:sublet:agent-unreachable",
	http.StatusServiceUnavailable:    "urn:sublet:unavailable",
	http.StatusInsufficientStorage:   "urn:sublet:no-space",
}

// Type is what problems of a status are, if nothing more is known of them.
func Type(status int) string {
	switch t, ok := types[status]; {
	case ok:
		return t
	case status < 500:
		return "urn:sublet:bad-input"
	}
	return "urn:sublet:internal"
}

// Of is the problem that a status and some words stand for.
func Of(status int, detail string) Problem {
	if detail = strings.TrimSpace(detail); detail == "404 page not found" { // of http.NotFound
		detail = "there is nothing here: /v1/openapi.yaml lists what there is"
	}
	return Problem{Type: Type(status), Title: http.StatusText(status), Status: status, Detail: detail}
}

// Write answers with a problem.
func Write(w http.ResponseWriter, status int, detail string) {
	body, _ := json.Marshal(Of(status, detail)) // strings and a number: it cannot fail
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", ContentType)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that went away needs no answer
}

// Is says whether an answer's header is that of a problem.
func Is(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == ContentType
}

// mostWords bounds what is read of an error that is no problem, in bytes.
const mostWords = 8 << 10

// Mend makes a problem of an error that another process answered in other form.
func Mend(r *http.Response) error {
	if r.StatusCode < 400 || Is(r.Header) {
		return nil
	}
	words, err := io.ReadAll(io.LimitReader(r.Body, mostWords))
	if err != nil {
		return err
	}
	if err := r.Body.Close(); err != nil {
		return err
	}
	if len(words) == 0 {
		words = []byte(http.StatusText(r.StatusCode))
	}
	body, err := json.Marshal(Of(r.StatusCode, string(words)))
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
	r.Header.Del("Content-Length")
	r.Header.Set("Content-Type", ContentType)
	return nil
}
