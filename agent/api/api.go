// Package api is the agent's half of the API: what its server asks it, over
// HTTP on a Unix socket or on TCP with mutual TLS. The server decided who may
// do what; an agent serves nobody else.
//
//	server --GET /v1/diff, samples, paths, overlay, .../traffic, .../reach,
//	         .../processes-------------------------------------------------> JSON
//	server --exec, probe, copy, log, capture, upgraded---------------------> session
package api

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"

	"sublet/agent/session"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Host is what the routes read of a host's agent and its parts. Every field is
// needed by the route that its comment names.
type Host struct {
	// Command makes a command that runs in a node's namespace; exec, probe and copy.
	Command func(namespace string, s session.Spec) (session.Program, error)
	// Prober is the command that probe runs in a node.
	Prober []string
	// Copy is the command that packs or unpacks files in a node; copy.
	Copy func(direction, path string) []string
	// Processes are those of a node; processes.
	Processes func(namespace string) ([]report.Process, error)
	// Log writes the log of a node; log.
	Log func(ctx context.Context, namespace string, follow bool, w io.Writer) error
	// Namespace is the file that stands for a network namespace; capture.
	Namespace func(name string) string
	// Plan is the newest that the server has for the host; capture.
	Plan func(context.Context) (plan.Host, error)
	// Diff is what the agent would do now; diff.
	Diff func(context.Context) ([]plan.Step, error)
	// Samples are what parts say now of some kinds of item; paths, overlay, traffic.
	Samples func(ctx context.Context, of report.Scope, kinds ...plan.Kind) ([]report.Sample, error)
	// Rounds are the last readings of all parts after a number; samples.
	Rounds func(ctx context.Context, after uint64, of report.Scope) []report.Round
	// Reach asks for at most a time whether nodes of a lease reach each other,
	// and says what is missing; "": nothing; reach.
	Reach func(ctx context.Context, lease vnet.LeaseID, most time.Duration) string

	captures counted // by fabric
}

// Handler answers all routes.
func (h *Host) Handler() http.Handler {
	sessions := http.NewServeMux()
	sessions.HandleFunc("/v1/nodes/{namespace}/exec", h.exec)
	sessions.HandleFunc("/v1/nodes/{namespace}/probe", h.probe)
	sessions.HandleFunc("/v1/nodes/{namespace}/copy", h.copy)
	sessions.HandleFunc("/v1/nodes/{namespace}/log", h.log)
	sessions.HandleFunc("/v1/links/{fabric}/{index}/capture", h.capture)
	mux := http.NewServeMux()
	mux.Handle("/v1/", session.Bound(session.MostSessions, sessions))
	mux.HandleFunc("GET /v1/nodes/{namespace}/processes", h.processes)
	mux.HandleFunc("GET /v1/diff", h.diff)
	mux.HandleFunc("GET /v1/paths", h.paths)
	mux.HandleFunc("GET /v1/overlay", h.overlay)
	mux.HandleFunc("GET /v1/samples", h.samples)
	mux.HandleFunc("GET /v1/links/{fabric}/traffic", h.traffic)
	mux.HandleFunc("GET /v1/links/{fabric}/reach", h.reach)
	return mux
}

// Directions of copy: out of a node, and into it.
const (
	CopyOut = "out"
	CopyIn  = "in"
)

// headerTimeout is how long a caller may take to say what it wants.
const headerTimeout = 10 * time.Second

// Serve answers until stop is called. Sessions end with ctx.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) (stop func()) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = server.Serve(l) }()
	return func() { _ = server.Close() }
}

// leaseOf is the lease whose fabric a path names.
func leaseOf(r *http.Request) vnet.LeaseID {
	id, _ := plan.ParseFabric(r.PathValue("fabric"))
	return id
}

// answer writes a list as JSON, or why there is none.
func answer[T any](w http.ResponseWriter, list []T, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if list == nil {
		list = []T{}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list) // a caller that went away needs no answer
}
