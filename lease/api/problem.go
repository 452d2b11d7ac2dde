package api

import (
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
	TypeBadInput = "urn:sublet:bad-input"
	// TypeUnauthorized is of callers whom nobody knows.
	TypeUnauthorized = "urn:sublet:unauthorized"

	TypeForbidden   = "urn:sublet:forbidden"
	TypeNotFound    = "urn:sublet:not-found"
	TypeRefused     = "urn:sublet:refused"
	TypeConflict    = "urn:sublet:conflict"
	TypeTooLarge    = "urn:sublet:too-large"
	TypeTooMany     = "urn:sublet:too-many"
	TypeInternal    = "urn:sublet:internal"
	TypeAgentGone   = "urn:sublet:agent-unreachable"
	TypeUnavailable = "urn:sublet:unavailable"
	TypeChanged     = "urn:sublet:changed"
	TypeUpgrade     = "urn:sublet:upgrade-required" // the address is for sessions
	TypeNoSpace     = "urn:sublet:no-space"
	TypeNoLeader    = "urn:sublet:no-leader" // nothing was done
)

func (p *Problem) Error() string { return p.Detail }

// asError is the way back, in the client.
func (p *Problem) asError() error {
	switch p.Type {
	case TypeRefused:
		if p.Rejection != nil {
			return p.Rejection
		}
	case TypeBadInput:
		return &vnet.FieldError{Path: p.Path, Problem: p.Detail}
	case TypeNotFound:
		return &kindError{detail: p.Detail, kind: ErrNotFound}
	case TypeConflict, TypeChanged:
		return &kindError{detail: p.Detail, kind: ErrConflict}
	case TypeForbidden, TypeUnauthorized:
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
