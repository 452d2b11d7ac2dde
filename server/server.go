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
	Notices   []time.Duration  // how long before its end a lease is said to end; nil: DefaultNotices, empty: not at all
	Policy    *vnet.Policy     // who may have how much; nil: vnet.DefaultPolicy
	AgentTLS  *tls.Config      // towards agents that serve sessions on https
	Checker   Checker          // measures leases; nil: nobody does
	Verify    bool             // Book.VerifyHandover; needs a Checker
	Tokens    *trust.Tokens    // by which scripts and browsers call; nil: none
	Page      Page             // served at /; nil: none
	Notify    Notices          // that go out
	Journal   string           // directory of events and proofs; "": none are kept, and no link is judged while it lives
}

// Server answers the API. It must be the store's leader.
type Server struct {
	store    lease.Store
	log      *slog.Logger
	now      func() time.Time
	limiter  *limiter
	deciders *deciders
	tokens   *trust.Tokens
	page     Page
	inner    *inner
	agentTLS *tls.Config
	checker  Checker
	checks   checks
	verify   bool
	prices   vnet.Prices
	moves    int
	notices  []time.Duration // before the end of a lease
	policy   atomic.Pointer[vnet.Policy]
	people   people
	wake     chan struct{} // the clock has something new to wait for
	lost     chan error    // leadership
	feeds    *feeds
	counters *counters
	scraper  scraper
	journal  *journal
	freed    atomic.Bool // something may have become free for requests that wait
	// reporting is how many reports of hosts wait for the book.
	reporting atomic.Int32
	notifier  *notifier
	proving   *proving
	metering  *metering
	cluster   Cluster                         // nil: this server shares its store with no other
	apart     func() map[string]time.Duration // servers whose clocks differ from this one's
	term      string                          // random: this server's among those that write the store

	mu      sync.Mutex
	book    *lease.Book
	broken  error         // why book must not be used; nil: it may
	full    error         // why it must not be changed; nil: it may
	changed chan struct{} // closed and replaced when the book has changed
	agents  map[vnet.HostID]agentState
	states  states
	cause   *cause // of the change that is under way; nil: not known
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
	s, err := assemble(config)
	if err != nil {
		return nil, err
	}
	if err := s.reload(ctx); err != nil {
		return nil, err
	}
	if err := s.adopt(config.Substrate); err != nil {
		return nil, err
	}
	return s, nil
}

// assemble makes a server without a book.
func assemble(config Config) (*Server, error) {
	s := &Server{
		store: config.Store, log: config.Log, now: config.Now, agentTLS: config.AgentTLS, checker: config.Checker, verify: config.Verify, tokens: config.Tokens, page: config.Page, inner: newInner(), term: rand.Text(),
		wake: make(chan struct{}, 1), lost: make(chan error, 1),
		changed: make(chan struct{}), agents: make(map[vnet.HostID]agentState),
		people: people{known: make(map[vnet.TenantID]person)},
		feeds:  newFeeds(), states: make(states), counters: newCounters(),
	}
	s.scraper.hosts = make(map[vnet.HostID]*collected)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.journal, s.proving, s.metering = openJournal(config.Journal, s.log), newProving(), newMetering()
	s.notifier = newNotifier(config.Notify, s.counters.registry)
	s.prices = vnet.DefaultPrices
	if config.Prices != nil {
		s.prices = *config.Prices
	}
	s.moves = lease.DefaultMoves
	if config.Moves != nil {
		s.moves = *config.Moves
	}
	s.notices = DefaultNotices
	if config.Notices != nil {
		s.notices = config.Notices
	}
	if config.Limits == (Limits{}) {
		config.Limits = DefaultLimits
	}
	s.limiter, s.deciders = newLimiter(config.Limits), newDeciders()
	s.queues()
	p, err := checkPolicy(config.Policy)
	if err != nil {
		return nil, err
	}
	s.policy.Store(&p)
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
	var was vnet.Substrate
	err := s.look(func(_ time.Time, b *lease.Book) error {
		b.KeepMeasured(sub)
		was = b.Substrate()
		return nil
	})
	if err != nil || reflect.DeepEqual(was, *sub) {
		return err
	}
	if len(was.Hosts) > 0 {
		s.log.Warn("takes another substrate than was leased out until now, as started with one: what sublet substrate apply changed and this one has not is undone",
			"differ", differing(was, *sub))
	}
	return s.changeBy(&cause{by: vnet.OperatorName, did: "another substrate"}, func(now time.Time, b *lease.Book) error { return b.SetSubstrate(now, *sub) })
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
	server := newHTTP(ctx, s.handler(), s.log)
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- server.Serve(l) }()
	}
	return s.keep(ctx, ended, func() { stop(); shut(server) })
}

// newHTTP answers by handler within the bounds of the API, until ctx ends.
func newHTTP(ctx context.Context, handler http.Handler, to *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: handler, Protocols: protocols, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: trust.WithCaller, ConnState: trust.Proven,
		ErrorLog: log.New(trust.NewHandshakes(to), "", 0),
	}
}

// keep keeps the book's time, and what is collected of hosts, until ctx ends,
// leadership is lost or answering has ended; shut is called first then.
func (s *Server) keep(ctx context.Context, ended <-chan error, shut func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	within := newHTTP(ctx, s.handler(), s.log) // for the page
	go within.Serve(s.inner)
	defer within.Close()
	clock := make(chan struct{})
	go func() { s.keepTime(ctx); close(clock) }()
	var collecting sync.WaitGroup
	collecting.Go(func() { s.collect(ctx) })
	collecting.Go(func() { s.keepTelling(ctx) })
	collecting.Go(func() { s.keepCharging(ctx) })
	collecting.Go(func() { s.keepTrying(ctx) })
	collecting.Go(func() { s.handOver(ctx) })
	collecting.Go(func() { s.keepCopying(ctx) })
	collecting.Go(func() { s.keepRemaking(ctx) })
	err := s.wait(ctx, ended)
	stop()
	shut()
	<-clock
	collecting.Wait()
	s.chargeAbove(1)
	s.proving.flush(s)
	s.notifier.stop()
	s.scraper.close()
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
func shut(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		server.Close()
	}
}
