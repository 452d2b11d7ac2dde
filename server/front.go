package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

// Cluster is what a server knows of those it shares a store with.
type Cluster interface {
	Name() string
	// Leader is who leads and where they answer; changed is closed when that is
	// another. No name: nobody is known to.
	Leader() (name, address string, changed <-chan struct{})
	// Gone ends the leadership of a server that says that it leads no more, or whose
	// machine answers that nothing listens there: it need not be waited for.
	Gone(ctx context.Context, name string) error
	// Rests says that this server has given up leading for a while.
	Rests() bool
	Servers(context.Context) ([]api.Server, error)
	// AddServer lets one more take part, in place of another unless replaces is "".
	AddServer(ctx context.Context, s api.Server, replaces string) error
	RemoveServer(ctx context.Context, name string) error
}

// Front answers on a server's listeners while it leads and while it does not: then
// it passes what it is asked on to the leader, with who asked.
type Front struct {
	cluster Cluster
	log     *slog.Logger
	passing *http.Transport // to the leader
	reader  *reader         // nil: the leader answers all
	clocks  *clocks
	asks    bool // other servers what their clocks say

	mu     sync.Mutex
	term   *term
	policy *vnet.Policy // in force from the next term on; nil: that of the configuration
}

// term is the time in which a server leads.
type term struct {
	server *Server
	api    http.Handler
	ctx    context.Context
	apart  map[string]bool // servers whose clocks were said to differ
}

// NewFront makes a front; config is for connections to other servers, nil: there
// are none. wall is what this machine's clock says.
func NewFront(cluster Cluster, config *tls.Config, wall func() time.Time, log *slog.Logger) *Front {
	f := &Front{cluster: cluster, log: log, clocks: newClocks(wall), asks: config != nil}
	f.passing = f.transport(config)
	return f
}

// Read answers what the store alone answers while this server does not lead; config
// is that of the server that may lead here.
func (f *Front) Read(config Config, store Versioned) (err error) {
	f.reader, err = newReader(config, store, f.pass)
	return err
}

// Serve answers on the listeners until ctx ends.
func (f *Front) Serve(ctx context.Context, listeners ...net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := newHTTP(ctx, f, f.log)
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- server.Serve(l) }()
	}
	defer f.passing.CloseIdleConnections()
	select {
	case <-ctx.Done():
		shut(server)
		return nil
	case err := <-ended:
		server.Close()
		return fmt.Errorf("serve the API: %w", err)
	}
}

// Lead answers by s until ctx ends or leadership is lost.
func (f *Front) Lead(ctx context.Context, s *Server) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.cluster, s.apart = f.cluster, f.clocks.differ
	f.begin(&term{server: s, api: s.handler(), ctx: ctx, apart: map[string]bool{}})
	return s.keep(ctx, nil, func() { f.begin(nil); stop() })
}

func (f *Front) begin(t *term) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.term = t
	if t != nil && f.policy != nil {
		if err := t.server.SetPolicy(*f.policy); err != nil {
			f.log.Error("the policy is not in force", slog.Any("because", err))
		}
	}
}

func (f *Front) leading() *term {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.term
}

// SetPolicy puts a policy into force, now if this server leads, and whenever it
// will.
func (f *Front) SetPolicy(p vnet.Policy) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := checkPolicy(&p); err != nil {
		return err
	}
	f.policy = &p
	if f.term == nil {
		return nil
	}
	return f.term.server.SetPolicy(p)
}

// ServeHTTP answers, or has the leader answer.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, passed := trust.Stated(r)
	if r.URL.Path == "/healthz" {
		w.Header().Set(clockField, f.clocks.wall().UTC().Format(time.RFC3339Nano))
	}
	if t := f.leading(); t != nil {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(t.ctx, cancel)()
		t.api.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	if r.URL.Path == "/healthz" {
		fmt.Fprintln(w, "follows")
		return
	}
	if passed {
		if f.cluster.Rests() {
			w.Header().Set(leadsNot, f.cluster.Name())
		}
		f.fail(w, r, leaderless("%s does not lead any more", f.cluster.Name()))
		return
	}
	if f.reader != nil {
		f.reader.mux.ServeHTTP(w, r)
		return
	}
	f.pass(w, r)
}

// fail answers with a problem.
func (f *Front) fail(w http.ResponseWriter, r *http.Request, err error) {
	(&Server{log: f.log}).writeProblem(w, r, err)
}

// leaderless is the answer when nothing was done, as nobody leads.
func leaderless(format string, args ...any) error {
	return &api.Problem{Status: http.StatusServiceUnavailable, Type: api.TypeNoLeader, Detail: fmt.Sprintf(format, args...) + ": nothing was changed, try again", After: 1}
}

// Watched answers metrics and health as the leader does; a follower has no metrics,
// and is ready when it knows the leader.
func (f *Front) Watched() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := f.cluster.Leader()
		switch t := f.leading(); {
		case t != nil:
			t.server.Watched().ServeHTTP(w, r)
		case r.URL.Path == "/healthz" || r.URL.Path == "/readyz" && name != "":
			fmt.Fprintf(w, "follows %s\n", name)
		default:
			f.fail(w, r, leaderless("%s follows %q, whose metrics say what there is", f.cluster.Name(), name))
		}
	})
}
