package server

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"sublet/internal/problem"
	"sublet/lease"
	"sublet/lease/api"
	"sublet/vnet"
)

func forbidden(detail string) error {
	return &api.Problem{Status: http.StatusForbidden, Detail: detail}
}

// noSuchLease is the answer for missing leases and for other tenants' alike.
func noSuchLease(id vnet.LeaseID) error {
	return &api.Problem{Status: http.StatusNotFound, Detail: "no lease " + id.String()}
}

// problemOf gives any error its form on the wire.
func problemOf(err error) api.Problem {
	p := api.Problem{Detail: err.Error()}
	var said *api.Problem
	var field *vnet.FieldError
	var rejection *vnet.Rejection
	switch {
	case errors.As(err, &said):
		p = *said
	case errors.As(err, &field):
		p.Status, p.Path, p.Detail = http.StatusBadRequest, field.Path, field.Problem
	case errors.As(err, &rejection):
		p.Status, p.Type, p.Title, p.Rejection = http.StatusConflict, api.TypeRefused, "Refused", rejection
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
		p.Type = problem.Type(p.Status)
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
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer") // RFC 9110, section 11.6.1
	}
	if p.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.After))
	}
	body, err := json.Marshal(p)
	if err != nil {
		s.log.Error("encode problem", slog.Any("error", err))
	}
	w.Header().Set("Content-Type", problem.ContentType)
	w.WriteHeader(p.Status)
	w.Write(body)
}
