package store

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// leader is this process's won election.
type leader struct {
	session  *concurrency.Session
	election *concurrency.Election
}

// campaign waits until this process leads. alone says that nobody else can
// reach the store (we hold its directory), so a former leader is history.
func campaign(ctx context.Context, client *clientv3.Client, config Config, alone bool) (*leader, error) {
	prefix := config.Prefix + "/leader"
	if alone {
		if _, err := client.Delete(ctx, prefix+"/", clientv3.WithPrefix()); err != nil {
			return nil, fmt.Errorf("end the former leadership of the store: %w", explain(err))
		}
	}
	session, err := newSession(ctx, client, config.TTL)
	if err != nil {
		return nil, err
	}
	l := &leader{session: session, election: concurrency.NewElection(session, prefix)}
	if err := l.election.Campaign(ctx, config.Name); err != nil {
		session.Close()
		return nil, fmt.Errorf("become the leader of the store: %w", explain(err))
	}
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
	return clientv3.Compare(clientv3.CreateRevision(l.election.Key()), "=", l.election.Rev())
}

func (l *leader) resign() error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	err := l.election.Resign(ctx)
	l.session.Close()
	return err
}
