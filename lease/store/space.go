package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// reclaimEvery bounds how often a full store is defragmented: that reads and
// writes all of it.
const reclaimEvery = 10 * time.Second

// reclaim makes an embedded store that reached its quota writable again, if
// deletions or old revisions made room: etcd stays read-only until history is
// dropped, the file is defragmented and its alarm disarmed. An external
// cluster is its operator's. It says whether the store was touched.
func (s *Store) reclaim(ctx context.Context) (bool, error) {
	s.reclaiming.Lock()
	defer s.reclaiming.Unlock()
	if s.embedded == nil || time.Since(s.reclaimed) < reclaimEvery {
		return false, nil
	}
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return false, fmt.Errorf("ask the store for alarms: %w", err)
	}
	if !slices.ContainsFunc(alarms.Alarms, isNoSpace) {
		return false, nil
	}
	s.reclaimed = time.Now()
	if err := s.compact(ctx); err != nil {
		return false, err
	}
	if _, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil { // zero: all of them
		return false, fmt.Errorf("disarm the store's alarm: %w", err)
	}
	return true, nil
}

func isNoSpace(a *etcdserverpb.AlarmMember) bool {
	return a.Alarm == etcdserverpb.AlarmType_NOSPACE
}

// compact drops history and gives its room back to the disk.
func (s *Store) compact(ctx context.Context) error {
	now, err := s.client.Get(ctx, s.key(countersKey), clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("read the store's revision: %w", err)
	}
	_, err = s.client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) && !errors.Is(err, rpctypes.ErrGRPCCompacted) {
		return fmt.Errorf("drop the store's history: %w", err)
	}
	// Not by the in-process client: etcd 3.7.3 has no health notifier there and panics.
	if err := s.embedded.etcd.Server.Backend().Defrag(); err != nil {
		return fmt.Errorf("defragment the store: %w", err)
	}
	return nil
}
