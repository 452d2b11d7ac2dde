// Package store keeps the book's state in etcd: embedded in the server by default, an external cluster when one
// machine is outgrown.
//
// One process at a time leads. Every write is a transaction on the condition
// that the leader's key still is the one the writer was elected with, so a
// deposed leader that wakes up late changes nothing (etcd's locks alone do
// not exclude; see Jepsen on etcd 3.4.3). A write that returned nil is on disk.
//
// Only what cannot be asked for again is kept: counters, the substrate, leases
// (with their requests and verdicts) and plans. Agents report by themselves.
//
//	/sublet/leader/...               the election
//	/sublet/counters, /substrate
//	/sublet/leases/TENANT/NETWORK
//	/sublet/plans/HOST
//	/sublet/ledger/TENANT/SERIAL
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Errors a caller can tell apart with errors.Is.
var (
	// ErrDeposed: another process leads now, or this one lost its election
	// key; nothing was written and nothing will be.
	ErrDeposed = errors.New("no longer the leader")
	// ErrNoSpace: the disk or the store's quota is full; nothing was written.
	ErrNoSpace = errors.New("no space left for the store")
)

// Config says where the store is.
type Config struct {
	// Dir holds the embedded store's data (made with mode 0700). Ignored
	// when Endpoints are given.
	Dir string
	// Quota bounds the embedded database in bytes; 0 means 2 GiB.
	Quota int64
	// Reserve is the disk space in bytes without which Room is an error: what
	// is free and the ballast together. With less than a fifth of it free
	// every write is refused. 0 means 160 MiB: etcd allocates its log and its
	// database 8 and 16 MiB ahead and ends the process when the disk is full.
	// On a disk of less than 320 MiB, such as /run of a small machine where labs
	// keep their stores, it means less, down to a quarter of the disk.
	Reserve int64

	// Endpoints of an external cluster: host:port, https://host:port or
	// unix:///path. TLS is used when CA or Cert is given.
	Endpoints     []string
	CA, Cert, Key string // PEM files

	Name   string        // of this process, for the election; for people
	TTL    time.Duration // of leadership after the leader falls silent; 0 means 5 s
	Prefix string        // of all keys; "" means /sublet
	Logger *slog.Logger  // nil: silent
}

// Store is an open store that this process leads.
type Store struct {
	config   Config
	client   *clientv3.Client
	embedded *embedded // nil: external cluster
	leader   *leader
	closed   sync.Once
	failed   error // of closing

	reclaiming sync.Mutex
	reclaimed  time.Time // last, for want of room
}

// Open starts or reaches the store and waits until this process leads it (an
// external cluster's former leader has TTL to prove that it lives).
func Open(ctx context.Context, config Config) (*Store, error) {
	config.fill()
	s := &Store{config: config}
	if err := s.reach(); err != nil {
		return nil, err
	}
	take := campaign
	if s.embedded != nil {
		take = lead
	}
	var err error
	if s.leader, err = take(ctx, s.client, config); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (c *Config) fill() {
	if c.Quota == 0 {
		c.Quota = 2 << 30
	}
	if c.Reserve == 0 {
		c.Reserve = reserveOf(c.Dir)
	}
	if c.TTL == 0 {
		c.TTL = 5 * time.Second
	}
	if c.Prefix == "" {
		c.Prefix = "/sublet"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// reach starts the embedded etcd or connects to the external one.
func (s *Store) reach() (err error) {
	if len(s.config.Endpoints) > 0 {
		s.client, err = connect(s.config)
		return err
	}
	if s.config.Dir == "" {
		return errors.New("open the store: neither a data directory nor endpoints are given")
	}
	if s.embedded, err = startEmbedded(s.config); err != nil {
		return err
	}
	s.client = s.embedded.client()
	return nil
}

// Deposed is closed when this process no longer leads.
func (s *Store) Deposed() <-chan struct{} { return s.leader.deposed }

// Failed reports the embedded etcd's end, if it ends by itself; nil channel
// for an external cluster.
func (s *Store) Failed() <-chan error {
	if s.embedded == nil {
		return nil
	}
	return s.embedded.etcd.Err()
}

// Close gives up leadership and stops the embedded etcd. Closing twice is
// closing once.
func (s *Store) Close() error {
	s.closed.Do(func() {
		if err := s.leader.resign(s.client); err != nil {
			s.failed = fmt.Errorf("resign from leading the store: %w", err)
		}
		s.stop()
	})
	return s.failed
}

func (s *Store) stop() {
	s.client.Close()
	if s.embedded != nil {
		s.embedded.stop()
	}
}
