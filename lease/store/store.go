// Package store keeps the book's state in etcd: embedded in the server by default, alone or as one cluster with
// those of other servers, or an external cluster.
//
// One process at a time leads. Every write is a transaction on the condition
// that the leader's key still is the one the writer was elected with, so a
// deposed leader that wakes up late changes nothing (etcd's locks alone do
// not exclude; see Jepsen on etcd 3.4.3). A further condition is that nothing was
// written since the leader's last write: a transaction whose answer was lost
// cannot come into force after a later one. A write that returned nil is on disk.
//
// Only what cannot be asked for again is kept: counters, the substrate, leases
// (with their requests and verdicts) and plans. Agents report by themselves.
//
//	/sublet/leader/...               the election
//	/sublet/servers/NAME             who may take part in it
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
	Endpoints []string
	// Member is HOST:PORT where the embedded store answers those of other servers,
	// with which it is one cluster; "": it has no others.
	Member string
	// Members asks for the servers of the cluster that an empty Dir becomes a member of;
	// nil: it founds one.
	Members func(context.Context) ([]Server, error)

	CA, Cert, Key string // PEM files, towards the endpoints or between members

	Name    string        // of this process, for the election; for people
	Address string        // where this server answers others; "": nowhere
	TTL     time.Duration // of leadership after the leader falls silent; 0 means 2 s, 1 s with Member
	Prefix  string        // of all keys; "" means /sublet
	Logger  *slog.Logger  // nil: silent
}

// Store is an open store that this process leads.
type Store struct {
	config   Config
	client   *clientv3.Client
	embedded *embedded // nil: external cluster
	leader   *leader
	written  int64   // revision of the counters as this store knows them; 0: none are stored
	doubt    bool    // whether a write came into force
	owned    bool    // the client ends with the store
	mirror   *mirror // what this server knew when it began to lead; nil: nothing, or it is the book's
	closed   sync.Once
	failed   error // of closing

	reclaiming sync.Mutex
	reclaimed  time.Time // last, for want of room
}

// Open starts or reaches the store and waits until this process leads it (an
// external cluster's former leader has TTL to prove that it lives).
func Open(ctx context.Context, config Config) (*Store, error) {
	config.fill()
	if config.external() {
		c, err := connect(config)
		if err != nil {
			return nil, err
		}
		s, err := campaign(ctx, c, nil, config)
		if err != nil {
			c.Close()
			return nil, err
		}
		s.owned = true
		return s, nil
	}
	if config.Dir == "" {
		return nil, errors.New("open the store: neither a data directory nor endpoints are given")
	}
	e, err := startEmbedded(config, nil)
	if err != nil {
		return nil, err
	}
	s := &Store{config: config, embedded: e, client: e.client(), owned: true}
	if s.leader, err = lead(ctx, s.client, config); err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// external says that the store is none of Sublet's own.
func (c *Config) external() bool { return len(c.Endpoints) > 0 }

func (c *Config) fill() {
	if c.Quota == 0 {
		c.Quota = 2 << 30
	}
	if c.Reserve == 0 {
		c.Reserve = reserveOf(c.Dir)
	}
	if c.TTL == 0 {
		c.TTL = 2 * time.Second
		if c.Member != "" {
			c.TTL = memberTTL
		}
	}
	if c.Prefix == "" {
		c.Prefix = "/sublet"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// Deposed is closed when this process no longer leads.
func (s *Store) Deposed() <-chan struct{} { return s.leader.deposed }

// Leads says that no other process can have become the leader yet: what was read
// of the store is what it holds.
func (s *Store) Leads() bool { return s.leader.confirmed() }

// Failed reports the embedded etcd's end, if it ends by itself; nil channel
// for an external cluster.
func (s *Store) Failed() <-chan error {
	if s.embedded == nil || s.config.Member != "" { // a cluster says so itself
		return nil
	}
	return s.embedded.etcd.Err()
}

// Close gives up leadership and stops the embedded etcd. Closing twice is
// closing once.
func (s *Store) Close() error {
	s.closed.Do(func() {
		if s.mirror != nil {
			s.mirror.stop()
		}
		if err := s.leader.resign(s.client); err != nil {
			s.failed = fmt.Errorf("resign from leading the store: %w", err)
		}
		s.stop()
	})
	return s.failed
}

func (s *Store) stop() {
	if !s.owned {
		return
	}
	s.client.Close()
	if s.embedded != nil {
		s.embedded.stop()
	}
}
