package server

import (
	"cmp"
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
	{"PUT", "/v1/leases/{tenant}/{network}/stage", trust.ForEveryone, true, (*Server).putStage},
	{"PUT", "/v1/leases/{tenant}/{network}/pause", trust.ForEveryone, true, (*Server).putPause},
	{"PUT", "/v1/leases/{tenant}/{network}/resume", trust.ForEveryone, true, (*Server).putResume},
	{"POST", "/v1/leases/{tenant}/{network}/check", trust.ForEveryone, true, (*Server).postCheck},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/exec", trust.ForEveryone, true, (*Server).nodeSession},
	{"POST", "/v1/leases/{tenant}/{network}/nodes/{node}/copy", trust.ForEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/log", trust.ForEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/switches/{switch}/flows", trust.ForEveryone, false, (*Server).getFlows},
	{"GET", "/v1/leases/{tenant}/{network}/switches/{switch}/status", trust.ForEveryone, false, (*Server).getSwitch},
	{"GET", "/v1/leases/{tenant}/{network}/switches/{switch}/trace", trust.ForEveryone, false, (*Server).getTrace},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/processes", trust.ForEveryone, false, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/kept", trust.ForEveryone, true, (*Server).kept},
	{"PUT", "/v1/leases/{tenant}/{network}/nodes/{node}/kept", trust.ForEveryone, true, (*Server).kept},
	{"POST", "/v1/leases/{tenant}/{network}/nodes/{node}/join", trust.ForEveryone, true, (*Server).join},
	{"DELETE", "/v1/leases/{tenant}/{network}/nodes/{node}/join", trust.ForEveryone, true, (*Server).join},
	{"POST", "/v1/leases/{tenant}/{network}/nodes/{node}/exec", trust.ForEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/attach", trust.ForEveryone, true, (*Server).nodeSession},
	{"POST", "/v1/leases/{tenant}/{network}/nodes/{node}/attach", trust.ForEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/nodes/{node}/probe", trust.ForEveryone, true, (*Server).nodeSession},
	{"POST", "/v1/leases/{tenant}/{network}/nodes/{node}/probe", trust.ForEveryone, true, (*Server).nodeSession},
	{"GET", "/v1/leases/{tenant}/{network}/links/{link}/capture", trust.ForEveryone, true, (*Server).linkSession},
	{"POST", "/v1/leases/{tenant}/{network}/links/{link}/capture", trust.ForEveryone, true, (*Server).linkSession},
	{"PUT", "/v1/leases/{tenant}/{network}/links/{link}/impair", trust.ForEveryone, true, (*Server).putImpair},
	{"PUT", "/v1/leases/{tenant}/{network}/links/{link}/state", trust.ForEveryone, true, (*Server).putLinkState},
	{"GET", "/v1/leases/{tenant}/{network}/traffic/{host}", trust.ForEveryone, false, (*Server).getTraffic},
	{"GET", "/v1/leases/{tenant}/{network}/chains/{host}", trust.ForEveryone, false, (*Server).getChains},
	{"GET", "/v1/openapi.yaml", trust.ForEveryone, false, (*Server).getDescription},
	{"GET", "/v1/version", trust.ForEveryone, false, (*Server).getVersion},
	{"POST", "/v1/offers", trust.ForEveryone, false, (*Server).postOffers},
	{"GET", "/v1/leases/{tenant}/{network}/proof", trust.ForEveryone, false, (*Server).getProof},
	{"GET", "/v1/events", trust.ForEveryone, false, (*Server).getEvents},
	{"GET", "/v1/calendar", trust.ForEveryone, false, (*Server).getCalendar},
	{"GET", "/v1/ledger", trust.ForEveryone, false, (*Server).getLedger},
	{"POST", "/v1/tokens", trust.ForEveryone, true, (*Server).postToken},
	{"GET", "/v1/tokens", trust.ForEveryone, false, (*Server).getTokens},
	{"DELETE", "/v1/tokens/{token}", trust.ForEveryone, true, (*Server).deleteToken},
	{"GET", "/v1/waiting", trust.ForEveryone, false, (*Server).getWaiting},
	{"DELETE", "/v1/waiting/{tenant}/{network}", trust.ForEveryone, true, (*Server).deleteWaiting},
	{"GET", "/v1/notify", trust.ForEveryone, false, (*Server).getNotify},
	{"PUT", "/v1/notify", trust.ForEveryone, true, (*Server).putNotify},
	{"DELETE", "/v1/notify", trust.ForEveryone, true, (*Server).deleteNotify},
	{"GET", "/v1/policy", trust.ForEveryone, false, (*Server).getPolicy},
	{"GET", "/v1/substrate", trust.ForEveryone, false, (*Server).getSubstrate},
	{"PUT", "/v1/substrate", trust.ForOperator, true, (*Server).putSubstrate},
	{"GET", "/v1/hosts", trust.ForEveryone, false, (*Server).getHosts},
	{"GET", "/v1/hosts/{host}/overlay", trust.ForEveryone, false, (*Server).getOverlay},
	{"GET", "/v1/hosts/{host}/tables", trust.ForOperator, false, (*Server).tables},
	{"POST", "/v1/hosts/{host}/tables", trust.ForOperator, true, (*Server).tables},
	{"PUT", "/v1/hosts/{host}/measured", trust.ForAgents, true, (*Server).putMeasured},
	{"PUT", "/v1/hosts/{host}/adopted", trust.ForOperator, true, (*Server).putAdopted},
	{"GET", "/v1/watch", trust.ForEveryone, false, (*Server).getWatch},
	{"GET", "/metrics", trust.ForEveryone, false, (*Server).getMetrics},
	{"GET", "/healthz", trust.ForEveryone, false, (*Server).getHealth},
	{"GET", "/readyz", trust.ForEveryone, false, (*Server).getReady},
	{"GET", "/v1/links", trust.ForEveryone, false, (*Server).getLinks},
	{"GET", "/v1/maintenance", trust.ForEveryone, false, (*Server).getMaintenance},
	{"POST", "/v1/maintenance", trust.ForOperator, true, (*Server).postMaintenance},
	{"DELETE", "/v1/maintenance/{maintenance}", trust.ForOperator, true, (*Server).deleteMaintenance},
	{"POST", "/v1/consolidation", trust.ForOperator, true, (*Server).postConsolidation},
	{"PUT", "/v1/drained/{host}", trust.ForOperator, true, (*Server).putDrained},
	{"DELETE", "/v1/drained/{host}", trust.ForOperator, true, (*Server).deleteDrained},
	{"PUT", "/v1/down/hosts/{host}", trust.ForOperator, true, (*Server).putDown},
	{"DELETE", "/v1/down/hosts/{host}", trust.ForOperator, true, (*Server).deleteDown},
	{"PUT", "/v1/down/links/{link}", trust.ForOperator, true, (*Server).putDown},
	{"DELETE", "/v1/down/links/{link}", trust.ForOperator, true, (*Server).deleteDown},
	{"GET", "/v1/plans/{host}", trust.ForAgents, false, (*Server).getPlan},
	{"GET", "/v1/plans/{host}/diff", trust.ForOperator, false, (*Server).getDiff},
	{"GET", "/v1/plans/{host}/paths", trust.ForOperator, false, (*Server).getPaths},
	{"GET", "/v1/servers", trust.ForOperator, false, (*Server).getServers},
	{"PUT", "/v1/servers/{name}", trust.ForOperator, true, (*Server).putServer},
	{"DELETE", "/v1/servers/{name}", trust.ForOperator, true, (*Server).deleteServer},
	{"POST", "/v1/reports", trust.ForAgents, false, (*Server).postReport},
}

// handler builds the whole API.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.method+" "+r.path, s.serve(r))
	}
	mux.Handle("/", s.unrouted())
	return mux
}

// unrouted answers what no route does: the page, which decides for itself who may
// see what of it.
func (s *Server) unrouted() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.getPage(w, r); err != nil {
			s.writeProblem(w, r, err)
		}
	})
}

func noRoute(r *http.Request) error {
	return &api.Problem{Status: http.StatusNotFound, Detail: "no " + r.Method + " " + r.URL.Path + " in this API: see /v1/openapi.yaml"}
}

// serve puts identity, limits, errors and the audit log around a handler.
func (s *Server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := s.callerOf(r)
		c := &call{Caller: caller, about: strings.TrimPrefix(r.URL.Path, "/v1/")}
		if err == nil {
			err = s.guarded(rt, w, r, c)
		}
		if err != nil {
			s.writeProblem(w, r, err)
		}
		s.counters.request(rt, err)
		if rt.audited {
			s.audit(r, c, err)
		}
	})
}

func (s *Server) guarded(rt route, w http.ResponseWriter, r *http.Request, c *call) error {
	if err := known(r, c); err != nil {
		return err
	}
	if err := c.permit(rt.Access, r.PathValue("host")); err != nil {
		return err
	}
	if err := c.granted(rt, r); err != nil {
		return err
	}
	if err := cmp.Or(sameOrigin(r), s.leads()); err != nil {
		return err
	}
	leave, err := s.limiter.enter(c.Caller)
	if err != nil {
		return err
	}
	defer leave()
	if c.Token != nil {
		ctx, end := s.tokens.While(r.Context(), c.Token)
		defer end()
		r = r.WithContext(ctx)
	}
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
