package api

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"sublet/lease"
	"sublet/vnet"
)

// Problem is how the API says no (RFC 9457, application/problem+json). Type
// is one of the URNs below; a client needs nothing else to tell them apart.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Path   string `json:"path,omitempty"`  // bad-input: which field
	After  int    `json:"after,omitempty"` // too-many: seconds until another try

	*vnet.Rejection // refused
}

// Types of problems.
const (
	typeBadInput    = "urn:sublet:bad-input"
	typeForbidden   = "urn:sublet:forbidden"
	typeNotFound    = "urn:sublet:not-found"
	typeRefused     = "urn:sublet:refused"
	typeConflict    = "urn:sublet:conflict"
	typeTooLarge    = "urn:sublet:too-large"
	typeTooMany     = "urn:sublet:too-many"
	typeInternal    = "urn:sublet:internal"
	typeAgentGone   = "urn:sublet:agent-unreachable"
	typeUnavailable = "urn:sublet:unavailable"
	typeNoSpace     = "urn:sublet:no-space"
)

var typeOfStatus = map[int]string{
	http.StatusBadRequest:            typeBadInput,
	http.StatusForbidden:             typeForbidden,
	http.StatusNotFound:              typeNotFound,
	http.StatusConflict:              typeConflict,
	http.StatusRequestEntityTooLarge: typeTooLarge,
	http.StatusTooManyRequests:       typeTooMany,
	http.StatusInternalServerError:   typeInternal,
	http.StatusBadGateway:            typeAgentGone,
	http.StatusServiceUnavailable:    typeUnavailable,
	http.StatusInsufficientStorage:   typeNoSpace,
}

func (p *Problem) Error() string { return p.Detail }

func forbidden(detail string) error {
	return &Problem{Status: http.StatusForbidden, Detail: detail}
}

// noSuchLease is the answer for missing leases and for other tenants' alike.
func noSuchLease(id vnet.LeaseID) error {
	return &Problem{Status: http.StatusNotFound, Detail: "no lease " + id.String()}
}

// problemOf gives any error its form on the wire.
func problemOf(err error) Problem {
	p := Problem{Detail: err.Error()}
	var problem *Problem
	var field *vnet.FieldError
	var rejection *vnet.Rejection
	switch {
	case errors.As(err, &problem):
		p = *problem
	case errors.As(err, &field):
		p.Status, p.Path, p.Detail = http.StatusBadRequest, field.Path, field.Problem
	case errors.As(err, &rejection):
		p.Status, p.Type, p.Title, p.Rejection = http.StatusConflict, typeRefused, "Refused", rejection
	case errors.Is(err, lease.ErrConflict):
		p.Status = http.StatusConflict
	case errors.Is(err, lease.ErrUnknown):
		p.Status = http.StatusNotFound
	case errors.Is(err, lease.ErrNotLeader):
		p.Status = http.StatusServiceUnavailable
	default: // an accident: its words are for the log
		p.Status, p.Detail = http.StatusInternalServerError, "the server failed: see its log"
	}
	if p.Type == "" {
		p.Type = typeOfStatus[p.Status]
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	return p
}

func (s *Server) writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody is there to read it
	}
	p := problemOf(err)
	if p.Status == http.StatusInternalServerError {
		s.log.Error("request failed", slog.String("what", r.Method+" "+r.URL.Path), slog.Any("error", err))
	}
	if p.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.After))
	}
	body, err := json.Marshal(p)
	if err != nil {
		s.log.Error("encode problem", slog.Any("error", err))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	w.Write(body)
}

// asError is the way back, in the client.
func (p *Problem) asError() error {
	switch p.Type {
	case typeRefused:
		if p.Rejection != nil {
			return p.Rejection
		}
	case typeBadInput:
		return &vnet.FieldError{Path: p.Path, Problem: p.Detail}
	case typeNotFound:
		return &kindError{detail: p.Detail, kind: ErrNotFound}
	case typeConflict:
		return &kindError{detail: p.Detail, kind: ErrConflict}
	case typeForbidden:
		return &kindError{detail: p.Detail, kind: ErrForbidden}
	}
	return p
}

// kindError says the server's words and is one of the client's errors.
type kindError struct {
	detail string
	kind   error
}

func (e *kindError) Error() string { return e.detail }
func (e *kindError) Unwrap() error { return e.kind }
