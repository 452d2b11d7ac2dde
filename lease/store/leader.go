package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// leader is this process's won leadership: a key that every write is fenced by.
type leader struct {
	key      string
	revision int64 // at which the key was created
	// session keeps the key alive in an external cluster; nil in the embedded
	// store, whose directory nobody else can open: there the key stays until
	// the next process takes over, however long this one was suspended.
	session  *concurrency.Session
	election *concurrency.Election

	until   atomic.Int64  // since began: nobody else leads before; unused without a session
	began   time.Time     // with the reading of a clock that nobody sets
	deposed chan struct{} // closed when leadership is known to be lost
	once    sync.Once
}

// lead takes the embedded store, whose former leader is history: we hold the
// lock of its directory.
func lead(ctx context.Context, client *clientv3.Client, config Config) (*leader, error) {
	prefix := config.Prefix + "/leader/"
	key := prefix + "embedded"
	if _, err := client.Delete(ctx, prefix, clientv3.WithPrefix()); err != nil {
		return nil, fmt.Errorf("end the former leadership of the store: %w", explain(err))
	}
	put, err := client.Put(ctx, key, config.Name)
	if err != nil {
		return nil, fmt.Errorf("become the leader of the store: %w", explain(err))
	}
	return &leader{key: key, revision: put.Header.Revision, deposed: make(chan struct{})}, nil
}

// campaign waits until this process leads an external cluster.
func campaign(ctx context.Context, client *clientv3.Client, own *embedded, config Config) (*Store, error) {
	session, err := newSession(ctx, client, config.TTL)
	if err != nil {
		return nil, err
	}
	election := concurrency.NewElection(session, config.Prefix+"/leader")
	if err := runFor(ctx, election, session, config); err != nil {
		session.Close()
		return nil, fmt.Errorf("become the leader of the store: %w", explain(err))
	}
	l := &leader{key: election.Key(), revision: election.Rev(), session: session, election: election,
		began: time.Now(), deposed: make(chan struct{})}
	go func() {
		<-session.Done()
		l.depose()
	}()
	s := &Store{config: config, client: client, embedded: own, leader: l}
	if err = l.confirm(ctx, client); err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.resign(client))
	}
	go l.keepConfirmed(client)
	return s, nil
}

// runFor campaigns until elected, or until the session it does so with is over:
// a process that stood still is no longer in the queue.
func runFor(ctx context.Context, election *concurrency.Election, session *concurrency.Session, config Config) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-session.Done():
			cancel(errors.New("the session with the store is over"))
		case <-ctx.Done():
		}
	}()
	text, err := json.Marshal(Server{Name: config.Name, Address: config.Address})
	if err != nil {
		return err
	}
	if err := election.Campaign(ctx, string(text)); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

// confirmEvery is how often a leader asks whether it still is one: often enough
// that a lost answer does not stop its readers.
const confirmEvery = 300 * time.Millisecond

// keepConfirmed notes, as long as this process leads, until when that is sure.
func (l *leader) keepConfirmed(client *clientv3.Client) {
	every := time.NewTicker(confirmEvery)
	defer every.Stop()
	for {
		select {
		case <-l.deposed:
			return
		case <-every.C:
			_ = l.confirm(context.Background(), client) // unconfirmed for too long, it is deposed
		}
	}
}

// confirm prolongs leadership: it lasts for the granted time from when that was
// asked for, less a tenth for clocks that do not run at one speed.
func (l *leader) confirm(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	asked := time.Since(l.began)
	answer, err := client.KeepAliveOnce(ctx, l.session.Lease())
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		l.depose()
		return ErrDeposed
	case err != nil:
		return fmt.Errorf("confirm leadership of the store: %w", explain(err))
	}
	l.until.Store(int64(asked + time.Duration(answer.TTL)*time.Second*9/10))
	return nil
}

// confirmed says that no other process leads.
func (l *leader) confirmed() bool {
	select {
	case <-l.deposed:
		return false
	default:
		return l.session == nil || int64(time.Since(l.began)) < l.until.Load()
	}
}

// newSession grants the lease within dialTimeout: a session outlives the
// context it is made with only if that is never cancelled.
func newSession(ctx context.Context, client *clientv3.Client, ttl time.Duration) (*concurrency.Session, error) {
	seconds := int64(max(ttl, time.Second) / time.Second)
	granting, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	grant, err := client.Grant(granting, seconds)
	if err != nil {
		return nil, fmt.Errorf("reach the store: %w", explain(err))
	}
	session, err := concurrency.NewSession(client, concurrency.WithLease(grant.ID), concurrency.WithTTL(int(seconds)))
	if err != nil {
		return nil, fmt.Errorf("keep a session with the store: %w", explain(err))
	}
	return session, nil
}

// fence is true as long as this process leads.
func (l *leader) fence() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(l.key), "=", l.revision)
}

func (l *leader) depose() { l.once.Do(func() { close(l.deposed) }) }

// abandon ends leading by itself: the key expires, which takes no write by a member that
// is slow.
func (l *leader) abandon() {
	l.session.Orphan()
	l.depose()
}

func (l *leader) resign(client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	if l.session == nil {
		_, err := client.Txn(ctx).If(l.fence()).Then(clientv3.OpDelete(l.key)).Commit()
		return err
	}
	err := l.election.Resign(ctx)
	l.session.Close() // its key may have expired already
	return err
}
