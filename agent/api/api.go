// Package api is the agent's half of the API: what its server asks it, over
// HTTP on a Unix socket or on TCP with mutual TLS. The server decided who may
// do what; an agent serves nobody else.
//
//	server --GET /v1/diff, samples, paths, overlay, .../traffic, .../reach,
//	         .../processes-------------------------------------------------> JSON
//	server --GET and PUT /v1/nodes/.../kept-------------------------------> archive
//	server --GET and PUT /v1/nodes/.../routes-----------------------------> routes of a router
//	server --GET, PUT and POST /v1/nodes/.../live-------------------------> machine
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
	"sublet/internal/problem"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Host is what the routes read of a host's agent and its parts. Every field is
// needed by the route that its comment names.
type Host struct {
	// Command makes a command that runs in a node's namespace; exec, probe and copy.
	Command func(namespace string, s session.Spec) (session.Program, error)
	// Attach makes a session at the console of a node's machine; attach.
	Attach func(namespace string, s session.Spec) (session.Program, error)
	// Prober is the command that probe runs in a node.
	Prober []string
	// Copy is the command that packs or unpacks files in a node; copy.
	Copy func(direction, path string) []string
	// Processes are those of a node; processes.
	Processes func(namespace string) ([]report.Process, error)
	// Flows hands on the entries of an OpenFlow switch as they come; flows.
	Flows func(ctx context.Context, namespace string, take func(report.Flow) error) error
	// Switch is what an OpenFlow switch tells of itself; status.
	Switch func(namespace string) (report.OpenFlowStatus, error)
	// Trace is what would become of a packet at an OpenFlow switch; trace.
	Trace func(namespace string, port uint32, frame []byte) (report.FlowTrace, error)
	// Join lets a machine with a public key become a node, or with one that is made
	// for it, and Revoke nobody; join.
	Join   func(namespace, public string) (report.Joined, error)
	Revoke func(namespace string) error
	// Save writes what a node keeps, and Bring replaces it, of one that is carried to
	// another host or of one that is not; kept.
	Save  func(ctx context.Context, namespace string, carried bool, w io.Writer) error
	Bring func(ctx context.Context, namespace string, carried bool, r io.Reader) error
	// SaveSwitch writes what an OpenFlow switch was told and has counted, and
	// BringSwitch gives it to another one; kept.
	SaveSwitch  func(namespace string, w io.Writer) error
	BringSwitch func(ctx context.Context, namespace string, r io.Reader) error
	// Learned are the routes that a router's daemons have learned, and Keep gives it
	// those of another one; routes.
	Learned func(namespace string) ([]report.Learned, error)
	Keep    func(namespace string, routes []report.Learned) error
	// Send writes what a machine is that goes to another host while it runs, Take has it
	// become that there, and GoOn has it run; live.
	Send func(ctx context.Context, namespace string, w io.Writer) error
	Take func(ctx context.Context, namespace string, r io.Reader) error
	GoOn func(namespace string) error
	// Log writes the log of a node; log.
	Log func(ctx context.Context, namespace string, follow bool, w io.Writer) error
	// Namespace is the file that stands for a network namespace; capture.
	Namespace func(name string) string
	// Plan is the newest that the server has for the host; capture.
	Plan func(context.Context) (plan.Host, error)
	// Diff is what the agent would do now; diff.
	Diff func(context.Context) ([]plan.Step, error)
	// Tables are those of the operator's own tunnels, ChangeTable changes one; tables.
	Tables      func() ([]report.TableState, error)
	ChangeTable func(plan.TableChange) error
	// Samples are what parts say now of some kinds of item; paths, overlay, traffic.
	Samples func(ctx context.Context, of report.Scope, kinds ...plan.Kind) ([]report.Sample, error)
	// Rounds are the last readings of all parts after a number; samples.
	Rounds func(ctx context.Context, after uint64, of report.Scope) []report.Round
	// Packed are Rounds in the short form, for who has some heads of an era; samples.
	Packed func(ctx context.Context, after uint64, of report.Scope, era uint64, heads int) report.Packed
	// Counts is what links have counted; counts.
	Counts func(context.Context) (report.Counts, error)
	// Watched answers Prometheus and probes; metrics, healthz, readyz.
	Watched http.Handler
	// Reach asks for at most a time whether nodes of a lease reach each other,
	// and says what is missing; "": nothing; reach.
	Reach func(ctx context.Context, lease vnet.LeaseID, most time.Duration) string

	captures counted // by fabric
	asked    counted // for entries, by switch
	moving   counted // kept files, of all nodes
}

// Handler answers all routes.
func (h *Host) Handler() http.Handler {
	sessions := http.NewServeMux()
	sessions.HandleFunc("/v1/nodes/{namespace}/exec", h.exec)
	sessions.HandleFunc("/v1/nodes/{namespace}/attach", h.attach)
	sessions.HandleFunc("/v1/nodes/{namespace}/probe", h.probe)
	sessions.HandleFunc("/v1/nodes/{namespace}/copy", h.copy)
	sessions.HandleFunc("/v1/nodes/{namespace}/log", h.log)
	sessions.HandleFunc("/v1/links/{fabric}/{index}/capture", h.capture)
	mux := http.NewServeMux()
	mux.Handle("/v1/", session.Bound(session.MostSessions, sessions))
	mux.HandleFunc("GET /v1/nodes/{namespace}/processes", h.processes)
	mux.HandleFunc("GET /v1/nodes/{namespace}/kept", h.save)
	mux.HandleFunc("PUT /v1/nodes/{namespace}/kept", h.bring)
	mux.HandleFunc("GET /v1/nodes/{namespace}/routes", h.learned)
	mux.HandleFunc("PUT /v1/nodes/{namespace}/routes", h.keep)
	mux.HandleFunc("GET /v1/nodes/{namespace}/live", h.send)
	mux.HandleFunc("PUT /v1/nodes/{namespace}/live", h.takeIn)
	mux.HandleFunc("POST /v1/nodes/{namespace}/live", h.goOn)
	mux.HandleFunc("POST /v1/nodes/{namespace}/join", h.join)
	mux.HandleFunc("DELETE /v1/nodes/{namespace}/join", h.revoke)
	mux.HandleFunc("GET /v1/switches/{namespace}/flows", h.flows)
	mux.HandleFunc("GET /v1/switches/{namespace}/status", h.status)
	mux.HandleFunc("GET /v1/switches/{namespace}/kept", h.saveSwitch)
	mux.HandleFunc("PUT /v1/switches/{namespace}/kept", h.bringSwitch)
	mux.HandleFunc("GET /v1/switches/{namespace}/trace", h.trace)
	mux.HandleFunc("GET /v1/diff", h.diff)
	mux.HandleFunc("GET /v1/paths", h.paths)
	mux.HandleFunc("GET /v1/overlay", h.overlay)
	mux.HandleFunc("GET /v1/tables", h.tables)
	mux.HandleFunc("POST /v1/tables", h.changeTable)
	mux.HandleFunc("GET /v1/samples", h.samples)
	mux.HandleFunc("GET /v1/counts", h.counts)
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { h.Watched.ServeHTTP(w, r) })
	}
	mux.HandleFunc("GET /v1/links/{fabric}/traffic", h.traffic)
	mux.HandleFunc("GET /v1/links/{fabric}/chains", h.chains)
	mux.HandleFunc("GET /v1/links/{fabric}/reach", h.reach)
	return problem.Handler(mux)
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
	if list == nil {
		list = []T{}
	}
	answerOne(w, list, err)
}

// list writes a list as JSON, element by element.
type list struct {
	w     http.ResponseWriter
	begun bool
}

// add writes one more element.
func (l *list) add(what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	before := ",\n"
	if !l.begun {
		l.w.Header().Set("Content-Type", "application/json")
		l.begun, before = true, "["
	}
	_, err = l.w.Write(append([]byte(before), text...))
	return err
}

// end ends it, or says why it cannot: one that has begun is broken off, as nothing in it
// could say that it is not whole.
func (l *list) end(err error) {
	switch {
	case err == nil && !l.begun:
		answer[struct{}](l.w, nil, nil)
	case err == nil:
		_, _ = io.WriteString(l.w, "]\n") // a caller that went away needs no answer
	case l.begun:
		panic(http.ErrAbortHandler)
	default:
		answerOne(l.w, nil, err)
	}
}

// answerOne writes JSON, or why there is none.
func answerOne(w http.ResponseWriter, what any, err error) {
	if err != nil {
		problem.Write(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what) // a caller that went away needs no answer
}
