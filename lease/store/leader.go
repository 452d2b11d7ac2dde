package store

import (
	"context"
	"fmt"
	"sync"
	"time"

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
func campaign(ctx context.Context, client *clientv3.Client, config Config) (*leader, error) {
	session, err := newSession(ctx, client, config.TTL)
	if err != nil {
		return nil, err
	}
	election := concurrency.NewElection(session, config.Prefix+"/leader")
	if err := election.Campaign(ctx, config.Name); err != nil {
		session.Close()
		return nil, fmt.Errorf("become the leader of the store: %w", explain(err))
	}
	l := &leader{key: election.Key(), revision: election.Rev(), session: session, election: election, deposed: make(chan struct{})}
	go func() {
		<-session.Done()
		l.depose()
	}()
	return l, nil
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
