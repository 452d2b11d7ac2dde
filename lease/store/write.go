package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// packFrom is the size in bytes from which values are compressed: etcd's own
// default limit of a request is 1.5 MiB, and a lease of 1,000 nodes has about 1 MB.
const packFrom = 64 << 10

// maxValue bounds a value after unpacking, in bytes.
const maxValue = 256 << 20

// commit does the operations in one fenced transaction. Failing, it has
// written nothing, except that after a lost connection to an external cluster
// the outcome is unknown until it is read.
func (s *Store) commit(ctx context.Context, operations ...clientv3.Op) error {
	if s.embedded != nil {
		if err := s.embedded.makeRoom(s.config.floor(), 2*s.config.floor()); err != nil {
			return err
		}
	}
	err := s.try(ctx, operations)
	if !errors.Is(err, ErrNoSpace) {
		return err
	}
	if touched, failed := s.reclaim(ctx); !touched {
		return errors.Join(err, failed)
	}
	return s.try(ctx, operations)
}

// try commits once, if this process leads and nothing was written since it wrote last.
func (s *Store) try(ctx context.Context, operations []clientv3.Op) error {
	counters := s.key(countersKey)
	unchanged := clientv3.Compare(clientv3.ModRevision(counters), "=", s.written)
	response, err := s.client.Txn(ctx).If(s.leader.fence(), unchanged).
		Then(operations...).Else(clientv3.OpGet(s.leader.key)).Commit()
	switch {
	case err != nil:
		return s.doubtful(ctx, explain(err))
	case !response.Succeeded:
		return s.refused(response)
	}
	s.written = response.Header.Revision // the counters are the first of the operations
	return nil
}

// doubtful notes that nobody knows whether a write that failed came into force. The
// one that found the store's quota exceeded is over, and may have: it is looked up.
func (s *Store) doubtful(ctx context.Context, err error) error {
	if errors.Is(err, ErrNoSpace) {
		return errors.Join(err, s.begin(ctx))
	}
	s.doubt = true
	return err
}

// refused says why a transaction's conditions did not hold.
func (s *Store) refused(response *clientv3.TxnResponse) error {
	for _, kv := range response.Responses[0].GetResponseRange().Kvs {
		if kv.CreateRevision == s.leader.revision {
			return errChanged
		}
	}
	s.leader.depose()
	return ErrDeposed
}

// errChanged: a write of this leader whose answer was lost came into force late.
var errChanged = errors.New("the store has what an earlier write left: it must be read again")

// fenceOff makes sure that no write of this leader's whose answer was lost can come
// into force any more: it changes the counters' revision, on which all depend.
func (s *Store) fenceOff(ctx context.Context) error {
	if !s.doubt {
		return nil
	}
	key := s.key(countersKey)
	now, err := s.client.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read the store: %w", explain(err))
	}
	value, revision := "{}", int64(0)
	for _, kv := range now.Kvs {
		value, revision = string(kv.Value), kv.ModRevision
	}
	unchanged := clientv3.Compare(clientv3.ModRevision(key), "=", revision)
	response, err := s.client.Txn(ctx).If(s.leader.fence(), unchanged).
		Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(s.leader.key)).Commit()
	switch {
	case errors.Is(explain(err), ErrNoSpace): // nothing else comes into force either
		return nil
	case err != nil:
		return fmt.Errorf("fence off writes whose answer was lost: %w", explain(err))
	case !response.Succeeded:
		return s.refused(response)
	}
	s.doubt = false
	return nil
}

// begin notes where the leader's writes go on from.
func (s *Store) begin(ctx context.Context) error {
	response, err := s.client.Get(ctx, s.key(countersKey))
	if err != nil {
		return fmt.Errorf("read the store: %w", explain(err))
	}
	s.written = 0
	for _, kv := range response.Kvs {
		s.written = kv.ModRevision
	}
	return nil
}

// explain gives etcd's errors our names.
func explain(err error) error {
	if errors.Is(err, rpctypes.ErrNoSpace) || errors.Is(err, rpctypes.ErrGRPCNoSpace) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// put is the operation that stores value as JSON.
func (s *Store) put(key string, value any) (clientv3.Op, error) {
	packed, err := pack(value)
	if err != nil {
		return clientv3.Op{}, fmt.Errorf("encode %s: %w", key, err)
	}
	return clientv3.OpPut(s.key(key), string(packed)), nil
}

func (s *Store) remove(key string) clientv3.Op { return clientv3.OpDelete(s.key(key)) }

func (s *Store) key(key string) string { return path.Join(s.config.Prefix, key) }

// pack is JSON, compressed when it is large.
func pack(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil || len(raw) < packFrom {
		return raw, err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// unpack reverses pack. No JSON begins with gzip's first byte.
func unpack(packed []byte, value any) error {
	if len(packed) == 0 || packed[0] != 0x1f {
		return json.Unmarshal(packed, value)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxValue))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, value)
}
