package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"sublet/lease"
)

// Versioned is the store of a server that does not lead.
type Versioned interface {
	lease.Store
	Version() int64                        // of what was loaded last
	Newest(context.Context) (int64, error) // what there is now
}

// fromStore are the routes whose answers depend on the store alone, not on what
// agents told the leader.
var fromStore = map[string]bool{
	"GET /v1/leases":                    true,
	"GET /v1/leases/{tenant}/{network}": true,
	"GET /v1/substrate":                 true,
	"GET /v1/ledger":                    true,
	"GET /v1/openapi.yaml":              true,
}

// readShare bounds the part of the time in which a follower reads the store anew.
const readShare = 10

// reader answers reads on a server that does not lead, by a book of its own. Each
// answer is of the newest version that the store had after the question came: what
// the reader has not loaded yet the leader answers.
type reader struct {
	server *Server
	store  Versioned
	newest *newest
	mux    *http.ServeMux

	mu      sync.Mutex
	version int64     // of server's book; -1: there is none
	loading bool      // or until when it rests
	rest    time.Time // before nothing is loaded
}

// newReader answers by config's store; everything else is passed on by pass.
func newReader(config Config, store Versioned, pass http.HandlerFunc) (*reader, error) {
	config.Store, config.Journal = store, ""
	s, err := assemble(config)
	if err != nil {
		return nil, err
	}
	r := &reader{server: s, store: store, newest: &newest{ask: store.Newest}, mux: http.NewServeMux(), version: -1}
	for _, rt := range routes {
		if pattern := rt.method + " " + rt.path; fromStore[pattern] {
			local := s.serve(rt)
			r.mux.HandleFunc(pattern, func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Query().Has("until") || !r.current(q.Context()) {
					pass(w, q)
					return
				}
				local.ServeHTTP(w, q)
			})
		}
	}
	r.mux.Handle("/", pass)
	return r, nil
}

// current says that the book is what the store has now. If it is not it is loaded
// for those who ask later.
func (r *reader) current(ctx context.Context) bool {
	r.mu.Lock()
	have := r.version
	r.mu.Unlock()
	newest, err := r.newest.version(ctx)
	if err != nil {
		return false
	}
	if have >= newest {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.loading && time.Now().After(r.rest) {
		r.loading = true
		go r.load()
	}
	return false
}

// load makes the book what the store has, and rests.
func (r *reader) load() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	version := int64(-1)
	state, err := r.store.Load(ctx)
	if err == nil {
		version = r.store.Version()
		err = r.server.show(state)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loading, r.rest = false, time.Now().Add(readShare*time.Since(began)); err != nil {
		r.server.log.Warn("the store cannot be read, the leader answers", slog.Any("because", err))
		return
	}
	r.version = version
}

// show makes a stored state what reads are answered by; nothing is changed in it.
func (s *Server) show(state lease.State) error {
	book, err := lease.Restore(s.now(), state)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	book.Prices, book.MostMoves, book.VerifyHandover = s.prices, s.moves, s.verify
	s.book, s.broken = book, nil
	return nil
}
