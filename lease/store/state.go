package store

import (
	"cmp"
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
	revision, written, err := s.loadCounters(ctx, &state.Counters)
	if err != nil {
		return state, err
	}
	rest, there, err := s.fromMirror(ctx, written)
	if !there && err == nil {
		rest, err = s.loadRest(ctx, revision)
	}
	rest.Counters = state.Counters
	if err == nil {
		s.written = written
	}
	return rest, err
}

// fromMirror is all but the counters as this server's copy has it that waited to lead. It
// is given away once: the book changes it.
func (s *Store) fromMirror(ctx context.Context, written int64) (state lease.State, there bool, err error) {
	if s.mirror == nil {
		return state, false, nil
	}
	defer func() { s.mirror = nil }()
	return s.mirror.give(ctx, written)
}

// loadRest reads all but the counters.
func (s *Store) loadRest(ctx context.Context, revision int64) (state lease.State, err error) {
	for _, key := range kept {
		err := s.eachBelow(ctx, key, revision, func(key string, raw []byte) error {
			read, err := decoded(key, raw)
			add(&state, read)
			return err
		})
		if err != nil {
			return state, err
		}
	}
	sortLeases(&state)
	return state, nil
}

// add puts a decoded value where it belongs; nil is none.
func add(state *lease.State, read any) {
	switch of := read.(type) {
	case *vnet.Substrate:
		state.Substrate = *of
	case *vnet.Lease:
		state.Leases = append(state.Leases, *of)
	case *plan.Host:
		if state.Plans == nil {
			state.Plans = map[vnet.HostID]plan.Host{}
		}
		state.Plans[of.Host] = *of
	case *vnet.Notify:
		state.Notify = append(state.Notify, *of)
	case *vnet.Waiting:
		state.Waiting = append(state.Waiting, *of)
	}
}

func sortLeases(state *lease.State) {
	if len(state.Leases) == 0 {
		return
	}
	order := make([]*vnet.Lease, len(state.Leases)) // leases are large
	for i := range state.Leases {
		order[i] = &state.Leases[i]
	}
	slices.SortFunc(order, func(a, b *vnet.Lease) int { return cmp.Compare(a.Serial, b.Serial) })
	sorted := make([]vnet.Lease, len(order))
	for i, l := range order {
		sorted[i] = *l
	}
	state.Leases = sorted
}

// HasSubstrate says whether a substrate is stored.
func (s *Store) HasSubstrate(ctx context.Context) (bool, error) {
	answer, err := s.client.Get(ctx, s.key(substrateKey), clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("read the store: %w", explain(err))
	}
	return answer.Count > 0, nil
}

// loadCounters reads the counters, if there are any, and says as of which revision, and
// in which they were written.
func (s *Store) loadCounters(ctx context.Context, counters *lease.Counters) (read, written int64, err error) {
	response, err := s.client.Get(ctx, s.key(countersKey))
	if err != nil {
		return 0, 0, fmt.Errorf("read %s from the store: %w", countersKey, explain(err))
	}
	for _, kv := range response.Kvs {
		if err := unpack(kv.Value, counters); err != nil {
			return 0, 0, fmt.Errorf("read %s from the store: %w", countersKey, err)
		}
		written = kv.ModRevision
	}
	return response.Header.Revision, written, nil
}

// eachBelow reads every value below a key that ends in '/', a page at a time, or that of
// the key.
func (s *Store) eachBelow(ctx context.Context, key string, revision int64, each func(key string, raw []byte) error) error {
	from := s.config.Prefix + "/" + key
	end := from + "\x00"
	if strings.HasSuffix(key, "/") {
		end = clientv3.GetPrefixRangeEnd(from)
	}
	for {
		page, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithRev(revision), clientv3.WithLimit(pageSize))
		if err != nil {
			return fmt.Errorf("read %s from the store: %w", strings.TrimSuffix(key, "/"), explain(err))
		}
		for _, kv := range page.Kvs {
			if err := each(strings.TrimPrefix(string(kv.Key), s.config.Prefix+"/"), kv.Value); err != nil {
				return err
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
	batches := s.batches(operations)
	for i, batch := range batches {
		c.Counters.Unfinished = i < len(batches)-1
		counters, err := s.put(countersKey, c.Counters) // whose revision tells of each
		if err != nil {
			return err
		}
		if err := s.commit(ctx, append([]clientv3.Op{counters}, batch...)...); err != nil {
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

// operations lists the writes of c, the counters excepted.
func (s *Store) operations(c lease.Changes) ([]clientv3.Op, error) {
	var operations []clientv3.Op
	var failed error
	put := func(key string, value any) {
		operation, err := s.put(key, value)
		operations, failed = append(operations, operation), errors.Join(failed, err)
	}
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

// batches cuts operations, in order, to what one transaction may hold beside the counters. An
// external cluster has etcd's defaults: 128 operations, 1.5 MiB.
func (s *Store) batches(operations []clientv3.Op) [][]clientv3.Op {
	most, bytes := maxOps-1, maxRequest/4*3
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
