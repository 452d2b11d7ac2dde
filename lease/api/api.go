// Package api is the tenants', the operator's and the agents' door: HTTP/JSON
// on a unix socket, on request also on TCP with mutual TLS. openapi.yaml
// describes it and is served at /v1/openapi.yaml.
//
// The Server owns the book, the store and the clock. Whatever changes the book
// is saved before anyone hears of it: a lease that was answered survives any
// crash, and a plan that an agent was given is never taken back by one.
//
//	caller --socket--> identity, limits --> handler --> Book --> Store --> answer
//	                                           |
//	                                           +--> agent (exec, probe, capture), proxied
package api

import (
	"log/slog"
	"net/http"
	"strings"

	"sublet/lease/policy"
)

// Bounds of what a stranger may send.
const (
	maxBody   = 8 << 20  // bytes of a request's body
	maxHeader = 32 << 10 // bytes of its header
)

// access says who may use a route.
type access int

const (
	forEveryone access = iota // tenants, for what is theirs, and the operator
	forAgents                 // the host's agent and the operator
	forOperator
)

// call is what is known of a request besides its text.
type call struct {
	Caller
	about string        // what it concerns, for the audit log
	terms *policy.Terms // that what is asked for must keep; nil: none
}

// route is one line of the API.
type route struct {
	method, path string
	access       access
	audited      bool
	handle       func(*Server, http.ResponseWriter, *http.Request, *call) error
}

var routes = []route{
	{"POST", "/v1/leases", forEveryone, true, (*Server).postLease},
	{"GET", "/v1/leases", forEveryone, false, (*Server).getLeases},
	{"GET", "/v1/leases/{tenant}/{network}", forEveryone, false, (*Server).getLease},
	{"DELETE", "/v1/leases/{tenant}/{network}", forEveryone, true, (*Server).deleteLease},
	{"POST", "/v1/leases/{tenant}/{network}/check", forEveryone, true, (*Server).postCheck},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/exec", forEveryone, true, (*Server).nodeSession},
	{"POST", "/v1/leases/{tenant}/{network}/nodes/{node}/exec", forEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/probe", forEveryone, true, (*Server).nodeSession},
	{"POST", "/v1/leases/{tenant}/{network}/nodes/{node}/probe", forEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/links/{link}/capture", forEveryone, true, (*Server).linkSession},
	{"POST", "/v1/leases/{tenant}/{network}/links/{link}/capture", forEveryone, true, (*Server).linkSession},
	{"GET", "/v1/leases/{tenant}/{network}/traffic/{host}", forEveryone, false, (*Server).getTraffic},
	{"GET", "/v1/openapi.yaml", forEveryone, false, (*Server).getDescription},
	{"POST", "/v1/offers", forEveryone, false, (*Server).postOffers},
	{"GET", "/v1/calendar", forEveryone, false, (*Server).getCalendar},
	{"GET", "/v1/ledger", forEveryone, false, (*Server).getLedger},
	{"GET", "/v1/policy", forEveryone, false, (*Server).getPolicy},
	{"GET", "/v1/substrate", forEveryone, false, (*Server).getSubstrate},
	{"GET", "/v1/hosts", forEveryone, false, (*Server).getHosts},
	{"GET", "/v1/hosts/{host}/overlay", forEveryone, false, (*Server).getOverlay},
	{"PUT", "/v1/hosts/{host}/measured", forAgents, true, (*Server).putMeasured},
	{"PUT", "/v1/hosts/{host}/adopted", forOperator, true, (*Server).putAdopted},
	{"GET", "/v1/links", forEveryone, false, (*Server).getLinks},
	{"PUT", "/v1/down/hosts/{host}", forOperator, true, (*Server).putDown},
	{"DELETE", "/v1/down/hosts/{host}", forOperator, true, (*Server).deleteDown},
	{"PUT", "/v1/down/links/{link}", forOperator, true, (*Server).putDown},
	{"DELETE", "/v1/down/links/{link}", forOperator, true, (*Server).deleteDown},
	{"GET", "/v1/plans/{host}", forAgents, false, (*Server).getPlan},
	{"GET", "/v1/plans/{host}/diff", forOperator, false, (*Server).getDiff},
	{"GET", "/v1/plans/{host}/paths", forOperator, false, (*Server).getPaths},
	{"POST", "/v1/reports", forAgents, false, (*Server).postReport},
}

// handler builds the whole API.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.method+" "+r.path, s.serve(r))
	}
	mux.Handle("/", s.serve(route{handle: (*Server).noRoute}))
	return mux
}

func (s *Server) noRoute(_ http.ResponseWriter, r *http.Request, _ *call) error {
	return &Problem{Status: http.StatusNotFound, Detail: "no " + r.Method + " " + r.URL.Path + " in this API: see /v1/openapi.yaml"}
}

// serve puts identity, limits, errors and the audit log around a handler.
func (s *Server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{Caller: callerOf(r), about: strings.TrimPrefix(r.URL.Path, "/v1/")}
		err := s.guarded(rt, w, r, c)
		if err != nil {
			s.writeProblem(w, r, err)
		}
		if rt.audited {
			s.audit(r, c, err)
		}
	})
}

func (s *Server) guarded(rt route, w http.ResponseWriter, r *http.Request, c *call) error {
	if err := c.may(rt.access, r.PathValue("host")); err != nil {
		return err
	}
	leave, err := s.limiter.enter(c.Caller)
	if err != nil {
		return err
	}
	defer leave()
	return rt.handle(s, w, r, c)
}

// audit writes one line for each thing somebody wanted done.
func (s *Server) audit(r *http.Request, c *call, err error) {
	decision, detail := "done", ""
	if err != nil {
		decision, detail = problemOf(err).Title, clip(err.Error())
	}
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "audit",
		slog.String("who", c.Name), slog.Uint64("uid", uint64(c.UID)),
		slog.String("what", r.Method), slog.String("about", clip(c.about)),
		slog.String("decision", decision), slog.String("detail", detail))
}

// clip bounds what a caller can write into the log at a time.
func clip(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
