package server

import (
	"log/slog"
	"net/http"
	"strings"

	"sublet/lease/api"
	"sublet/lease/policy"
	"sublet/trust"
)

// call is what is known of a request besides its text.
type call struct {
	trust.Caller
	about string        // what it concerns, for the audit log
	terms *policy.Terms // that what is asked for must keep; nil: none
}

// permit refuses a caller who must not use a route.
func (c *call) permit(a trust.Access, host string) error {
	if err := c.May(a, host); err != nil {
		return forbidden(err.Error())
	}
	return nil
}

// route is one line of the API.
type route struct {
	method, path string
	Access       trust.Access
	audited      bool
	handle       func(*Server, http.ResponseWriter, *http.Request, *call) error
}

var routes = []route{
	{"POST", "/v1/leases", trust.ForEveryone, true, (*Server).postLease},
	{"GET", "/v1/leases", trust.ForEveryone, false, (*Server).getLeases},
	{"GET", "/v1/leases/{tenant}/{network}", trust.ForEveryone, false, (*Server).getLease},
	{"PUT", "/v1/leases/{tenant}/{network}", trust.ForEveryone, true, (*Server).putLease},
	{"DELETE", "/v1/leases/{tenant}/{network}", trust.ForEveryone, true, (*Server).deleteLease},
	{"POST", "/v1/leases/{tenant}/{network}/check", trust.ForEveryone, true, (*Server).postCheck},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/exec", trust.ForEveryone, true, (*Server).nodeSession},
	{"POST", "/v1/leases/{tenant}/{network}/nodes/{node}/copy", trust.ForEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/log", trust.ForEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/processes", trust.ForEveryone, false, (*Server).nodeSession},
	{"POST", "/v1/leases/{tenant}/{network}/nodes/{node}/exec", trust.ForEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/probe", trust.ForEveryone, true, (*Server).nodeSession},
	{"POST", "/v1/leases/{tenant}/{network}/nodes/{node}/probe", trust.ForEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/links/{link}/capture", trust.ForEveryone, true, (*Server).linkSession},
	{"POST", "/v1/leases/{tenant}/{network}/links/{link}/capture", trust.ForEveryone, true, (*Server).linkSession},
	{"PUT", "/v1/leases/{tenant}/{network}/links/{link}/impair", trust.ForEveryone, true, (*Server).putImpair},
	{"GET", "/v1/leases/{tenant}/{network}/traffic/{host}", trust.ForEveryone, false, (*Server).getTraffic},
	{"GET", "/v1/openapi.yaml", trust.ForEveryone, false, (*Server).getDescription},
	{"POST", "/v1/offers", trust.ForEveryone, false, (*Server).postOffers},
	{"GET", "/v1/calendar", trust.ForEveryone, false, (*Server).getCalendar},
	{"GET", "/v1/ledger", trust.ForEveryone, false, (*Server).getLedger},
	{"GET", "/v1/policy", trust.ForEveryone, false, (*Server).getPolicy},
	{"GET", "/v1/substrate", trust.ForEveryone, false, (*Server).getSubstrate},
	{"GET", "/v1/hosts", trust.ForEveryone, false, (*Server).getHosts},
	{"GET", "/v1/hosts/{host}/overlay", trust.ForEveryone, false, (*Server).getOverlay},
	{"PUT", "/v1/hosts/{host}/measured", trust.ForAgents, true, (*Server).putMeasured},
	{"PUT", "/v1/hosts/{host}/adopted", trust.ForOperator, true, (*Server).putAdopted},
	{"GET", "/v1/watch", trust.ForEveryone, false, (*Server).getWatch},
	{"GET", "/v1/links", trust.ForEveryone, false, (*Server).getLinks},
	{"PUT", "/v1/down/hosts/{host}", trust.ForOperator, true, (*Server).putDown},
	{"DELETE", "/v1/down/hosts/{host}", trust.ForOperator, true, (*Server).deleteDown},
	{"PUT", "/v1/down/links/{link}", trust.ForOperator, true, (*Server).putDown},
	{"DELETE", "/v1/down/links/{link}", trust.ForOperator, true, (*Server).deleteDown},
	{"GET", "/v1/plans/{host}", trust.ForAgents, false, (*Server).getPlan},
	{"GET", "/v1/plans/{host}/diff", trust.ForOperator, false, (*Server).getDiff},
	{"GET", "/v1/plans/{host}/paths", trust.ForOperator, false, (*Server).getPaths},
	{"POST", "/v1/reports", trust.ForAgents, false, (*Server).postReport},
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
	return &api.Problem{Status: http.StatusNotFound, Detail: "no " + r.Method + " " + r.URL.Path + " in this API: see /v1/openapi.yaml"}
}

// serve puts identity, limits, errors and the audit log around a handler.
func (s *Server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{Caller: trust.CallerOf(r), about: strings.TrimPrefix(r.URL.Path, "/v1/")}
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
	if err := c.permit(rt.Access, r.PathValue("host")); err != nil {
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
