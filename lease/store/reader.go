package store

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sublet/lease"
	"sublet/vnet"
)

// Reader is the store as a server sees it that does not lead.
type Reader struct{ store Store }

var _ lease.Store = (*Reader)(nil)

// Reader reads a cluster's store and writes nothing.
func (c *Cluster) Reader() *Reader {
	return &Reader{store: Store{config: c.config, client: c.client}}
}

// Load reads everything as of one revision.
func (r *Reader) Load(ctx context.Context) (lease.State, error) { return r.store.Load(ctx) }

// Version is of what was loaded last: each change of the store has another.
func (r *Reader) Version() int64 { return r.store.written }

// Newest is the version that the store has now, as a majority of its members says.
func (r *Reader) Newest(ctx context.Context) (version int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	answer, err := r.store.client.Get(ctx, r.store.key(countersKey), clientv3.WithKeysOnly())
	if err != nil {
		return 0, fmt.Errorf("read the store: %w", explain(err))
	}
	for _, kv := range answer.Kvs {
		version = kv.ModRevision
	}
	return version, nil
}

// Save writes nothing.
func (r *Reader) Save(context.Context, lease.Changes) error { return lease.ErrNotLeader }

// Ledger reads as that of a store that leads.
func (r *Reader) Ledger(ctx context.Context, tenant vnet.TenantID, after string, limit int) ([]vnet.Record, string, error) {
	return r.store.Ledger(ctx, tenant, after, limit)
}
