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

func (s *Store) try(ctx context.Context, operations []clientv3.Op) error {
	response, err := s.client.Txn(ctx).If(s.leader.fence()).Then(operations...).Commit()
	switch {
	case err != nil:
		return explain(err)
	case !response.Succeeded:
		s.leader.depose()
		return ErrDeposed
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
