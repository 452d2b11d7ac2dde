package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sublet/lease"
	"sublet/plan"
	"sublet/vnet"
)

var _ lease.Store = (*Store)(nil)

// Keys below the prefix. Tenants', networks' and hosts' names hold no '/'.
const (
	countersKey  = "counters"
	substrateKey = "substrate"
	serversKey   = "servers/"
	leasesKey    = "leases/"
	plansKey     = "plans/"
	notifyKey    = "notify/"
	waitingKey   = "waiting/"
	ledgerKey    = "ledger/"
)

func leaseKey(id vnet.LeaseID) string { return leasesKey + id.String() }

func planKey(host vnet.HostID) string { return plansKey + string(host) }

// pageSize is how many values one read asks for: a page of the largest leases
// stays below the 2 GiB a response can have.
const pageSize = 256

// Load reads everything as of one revision; an empty store gives the zero State.
func (s *Store) Load(ctx context.Context) (lease.State, error) {
	ctx, end := s.whileLeading(ctx)
	defer end()
	var state lease.State
	if err := s.fenceOff(ctx); err != nil {
		return state, notLeader(err)
	}
	revision, written, err := s.loadOne(ctx, countersKey, 0, &state.Counters)
	if err == nil {
		_, _, err = s.loadOne(ctx, substrateKey, revision, &state.Substrate)
	}
	if err == nil {
		err = s.loadAll(ctx, leasesKey, revision, func(value []byte) error {
			var l vnet.Lease
			err := unpack(value, &l)
			state.Leases = append(state.Leases, l)
			return err
		})
	}
	if err == nil {
		err = s.loadAll(ctx, plansKey, revision, func(value []byte) error {
			var h plan.Host
			if err := unpack(value, &h); err != nil {
				return err
			}
			if state.Plans == nil {
				state.Plans = map[vnet.HostID]plan.Host{}
			}
			state.Plans[h.Host] = h
			return nil
		})
	}
	if err == nil {
		err = s.loadAll(ctx, notifyKey, revision, func(value []byte) error {
			var n vnet.Notify
			err := unpack(value, &n)
			state.Notify = append(state.Notify, n)
			return err
		})
	}
	if err == nil {
		err = s.loadAll(ctx, waitingKey, revision, func(value []byte) error {
			var w vnet.Waiting
			err := unpack(value, &w)
			state.Waiting = append(state.Waiting, w)
			return err
		})
	}
	slices.SortFunc(state.Leases, func(a, b vnet.Lease) int { return int(int64(a.Serial - b.Serial)) })
	if err == nil {
		s.written = written
	}
	return state, err
}

// HasSubstrate says whether a substrate is stored.
func (s *Store) HasSubstrate(ctx context.Context) (bool, error) {
	answer, err := s.client.Get(ctx, s.key(substrateKey), clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("read the store: %w", explain(err))
	}
	return answer.Count > 0, nil
}

// loadOne reads one value, if it exists, and says as of which revision, and in
// which it was written.
func (s *Store) loadOne(ctx context.Context, key string, revision int64, value any) (read, written int64, err error) {
	response, err := s.client.Get(ctx, s.key(key), clientv3.WithRev(revision))
	if err != nil {
		return 0, 0, fmt.Errorf("read %s from the store: %w", key, explain(err))
	}
	for _, kv := range response.Kvs {
		if err := unpack(kv.Value, value); err != nil {
			return 0, 0, fmt.Errorf("read %s from the store: %w", key, err)
		}
		written = kv.ModRevision
	}
	return response.Header.Revision, written, nil
}

// loadAll reads every value below a key, a page at a time.
func (s *Store) loadAll(ctx context.Context, key string, revision int64, each func([]byte) error) error {
	prefix := s.key(key) + "/"
	end := clientv3.GetPrefixRangeEnd(prefix)
	for from := prefix; ; {
		page, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithRev(revision), clientv3.WithLimit(pageSize))
		if err != nil {
			return fmt.Errorf("read %s from the store: %w", key, explain(err))
		}
		for _, kv := range page.Kvs {
			if err := each(kv.Value); err != nil {
				return fmt.Errorf("read %s from the store: %w", strings.TrimPrefix(string(kv.Key), s.config.Prefix+"/"), err)
			}
			from = string(kv.Key) + "\x00"
		}
		if !page.More {
			return nil
		}
	}
}

// Save writes changes in as few transactions as fit, in the order that
// lease.Store demands.
func (s *Store) Save(ctx context.Context, c lease.Changes) error {
	operations, err := s.operations(c)
	if err != nil {
		return err
	}
	ctx, end := s.whileLeading(ctx)
	defer end()
	for i, batch := range s.batches(operations) {
		if i > 0 { // the counters' revision tells of each
			batch = append([]clientv3.Op{operations[0]}, batch...)
		}
		if err := s.commit(ctx, batch...); err != nil {
			switch err = notLeader(err); {
			case errors.Is(err, ErrNoSpace):
				err = fmt.Errorf("%w: %w", lease.ErrFull, err)
			}
			return fmt.Errorf("save to the store: %w", err)
		}
	}
	return nil
}

// whileLeading gives a context that ends with leadership: a member that has lost the
// others would go on with a write for as long as it has. Whether that came into force
// is not known then. Who only reads has none that ends.
func (s *Store) whileLeading(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	if s.leader == nil {
		return ctx, end
	}
	go func() {
		select {
		case <-s.leader.deposed:
			end()
		case <-ctx.Done():
		}
	}()
	return ctx, end
}

// notLeader gives the error of who was deposed the book's name.
func notLeader(err error) error {
	if errors.Is(err, ErrDeposed) {
		return fmt.Errorf("%w: %w", lease.ErrNotLeader, err)
	}
	return err
}

// operations lists the writes of c.
func (s *Store) operations(c lease.Changes) ([]clientv3.Op, error) {
	var operations []clientv3.Op
	var failed error
	put := func(key string, value any) {
		operation, err := s.put(key, value)
		operations, failed = append(operations, operation), errors.Join(failed, err)
	}
	put(countersKey, c.Counters)
	if c.Substrate != nil {
		put(substrateKey, c.Substrate)
	}
	for _, r := range c.Records {
		put(recordKey(r), r)
	}
	for _, l := range c.Leases {
		put(leaseKey(l.ID()), l)
	}
	for _, h := range c.Plans {
		put(planKey(h.Host), h)
	}
	for _, id := range c.NoLeases {
		operations = append(operations, s.remove(leaseKey(id)))
	}
	for _, host := range c.NoPlans {
		operations = append(operations, s.remove(planKey(host)))
	}
	for _, n := range c.Notify {
		put(notifyKey+string(n.Tenant), n)
	}
	for _, t := range c.NoNotify {
		operations = append(operations, s.remove(notifyKey+string(t)))
	}
	for _, w := range c.Waiting {
		put(waitingKey+w.ID().String(), w)
	}
	for _, id := range c.NoWaiting {
		operations = append(operations, s.remove(waitingKey+id.String()))
	}
	return operations, failed
}

// batches cuts operations, in order, to what one transaction may hold. An
// external cluster has etcd's defaults: 128 operations, 1.5 MiB.
func (s *Store) batches(operations []clientv3.Op) [][]clientv3.Op {
	most, bytes := maxOps, maxRequest/4*3
	if s.embedded == nil {
		most, bytes = 100, 1<<20
	}
	var batches [][]clientv3.Op
	begin, size := 0, 0
	for i, o := range operations {
		grown := size + len(o.KeyBytes()) + len(o.ValueBytes())
		if i > begin && (i-begin == most || grown > bytes) {
			batches = append(batches, operations[begin:i])
			begin, grown = i, grown-size
		}
		size = grown
	}
	return append(batches, operations[begin:])
}
