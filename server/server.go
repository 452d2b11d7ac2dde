package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"sublet/lease"
	"sublet/report"
	"sublet/trust"
	"sublet/vnet"
)

// Config of a Server.
type Config struct {
	Store lease.Store // which this process leads
	// Substrate replaces the stored one; nil keeps that.
	Substrate *vnet.Substrate
	Log       *slog.Logger     // audit and troubles; nil: none
	Now       func() time.Time // nil: time.Now
	Limits    Limits           // zero: DefaultLimits
	Prices    *vnet.Prices     // of leases from now on; nil: vnet.DefaultPrices
	Moves     *int             // Book.MostMoves; nil: lease.DefaultMoves
	Policy    *vnet.Policy     // who may have how much; nil: vnet.DefaultPolicy
	AgentTLS  *tls.Config      // towards agents that serve sessions on https
	Checker   Checker          // measures leases; nil: nobody does
}

// Server answers the API. It must be the store's leader.
type Server struct {
	store    lease.Store
	log      *slog.Logger
	now      func() time.Time
	limiter  *limiter
	deciders *deciders
	agentTLS *tls.Config
	checker  Checker
	checks   checks
	prices   vnet.Prices
	moves    int
	policy   atomic.Pointer[vnet.Policy]
	people   people
	wake     chan struct{} // the clock has something new to wait for
	lost     chan error    // leadership
	feeds    *feeds
	term     string // random: this server's among those that write the store

	mu      sync.Mutex
	book    *lease.Book
	broken  error         // why book must not be used; nil: it may
	full    error         // why it must not be changed; nil: it may
	changed chan struct{} // closed and replaced when the book has changed
	agents  map[vnet.HostID]agentState
	states  states
}

// agentState is what the server remembers of an agent, in memory only.
type agentState struct {
	seen   time.Time
	report report.Report
	from   netip.Addr // of an agent with a host's certificate: where it connects from
}

// New loads the book and brings it to the present. An error names the lease
// that a new substrate contradicts.
func New(ctx context.Context, config Config) (*Server, error) {
	s := &Server{
		store: config.Store, log: config.Log, now: config.Now, agentTLS: config.AgentTLS, checker: config.Checker, term: rand.Text(),
		wake: make(chan struct{}, 1), lost: make(chan error, 1),
		changed: make(chan struct{}), agents: make(map[vnet.HostID]agentState),
		people: people{known: make(map[vnet.TenantID]person)},
		feeds:  newFeeds(), states: make(states),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.prices = vnet.DefaultPrices
	if config.Prices != nil {
		s.prices = *config.Prices
	}
	s.moves = lease.DefaultMoves
	if config.Moves != nil {
		s.moves = *config.Moves
	}
	if config.Limits == (Limits{}) {
		config.Limits = DefaultLimits
	}
	s.limiter, s.deciders = newLimiter(config.Limits), newDeciders()
	p, err := checkPolicy(config.Policy)
	if err != nil {
		return nil, err
	}
	s.policy.Store(&p)
	if err := s.reload(ctx); err != nil {
		return nil, err
	}
	if err := s.adopt(config.Substrate); err != nil {
		return nil, err
	}
	return s, nil
}

// adopt takes on a substrate, if the leases can stay on it.
func (s *Server) adopt(sub *vnet.Substrate) error {
	if sub == nil {
		return nil
	}
	sub.Fill()
	if err := sub.Check(); err != nil {
		return fmt.Errorf("take on the substrate: %w", err)
	}
	same := false
	err := s.look(func(_ time.Time, b *lease.Book) error {
		b.KeepMeasured(sub)
		same = reflect.DeepEqual(b.Substrate(), *sub)
		return nil
	})
	if err != nil || same {
		return err
	}
	return s.change(func(now time.Time, b *lease.Book) error { return b.SetSubstrate(now, *sub) })
}

// Timeouts of the HTTP server. Bodies and answers have theirs in the handlers,
// because long polls and sessions have none.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 5 * time.Second
)

// Serve answers on the listeners and keeps the book's time until ctx ends, or
// until leadership is lost: then the error wraps lease.ErrNotLeader, and what
// runs on the hosts runs on.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	server := &http.Server{
		Handler: s.handler(), Protocols: protocols, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: trust.WithCaller, ConnState: trust.Proven,
		ErrorLog: log.New(trust.NewHandshakes(s.log), "", 0),
	}
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- server.Serve(l) }()
	}
	clock := make(chan struct{})
	go func() { s.keepTime(ctx); close(clock) }()
	var collecting sync.WaitGroup
	collecting.Go(func() { s.collect(ctx) })
	err := s.wait(ctx, ended)
	stop()
	s.shut(server)
	<-clock
	collecting.Wait()
	return err
}

func (s *Server) wait(ctx context.Context, ended <-chan error) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.lost:
		return err
	case err := <-ended:
		return fmt.Errorf("serve the API: %w", err)
	}
}

// shut lets answers that are under way finish.
func (s *Server) shut(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		server.Close()
	}
}
