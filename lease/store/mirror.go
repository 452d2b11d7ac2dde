package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sublet/lease"
	"sublet/plan"
	"sublet/vnet"
)

// mirror is a copy of what the store has of the book, kept up by a watch while a server
// waits to lead, so that it has not to read everything when it does.
type mirror struct {
	store Store // reads alone
	stop  context.CancelFunc

	mu       sync.Mutex
	values   map[string]*value // by key below the prefix; nil: nothing was read yet, or it was given away
	revision int64             // as of which values are
	ahead    *lease.Ahead      // of what values say; nil: no substrate was decoded
	grown    chan struct{}     // closed and replaced when revision has grown
}

// value is what a key has: read is nil until raw was decoded.
type value struct {
	raw   []byte
	read  any
	ahead bool // a lease or plan that was taken into what a book is made of
}

const (
	// decodeEvery is how long values stay encoded, so that one that changes often is not decoded
	// each time.
	decodeEvery = 500 * time.Millisecond
	// catchUp is how long a copy that lags behind is waited for.
	catchUp = 300 * time.Millisecond
	// convergeEvery is after how many leases is worked out what all of them get.
	convergeEvery = 500
	// mirrorAgain is how long a copy that was lost is not begun anew.
	mirrorAgain = time.Second
)

// newMirror begins a copy.
func newMirror(client *clientv3.Client, config Config) *mirror {
	ctx, stop := context.WithCancel(context.Background())
	m := &mirror{store: Store{config: config, client: client}, stop: stop, grown: make(chan struct{})}
	go m.keep(ctx)
	go m.decode(ctx)
	return m
}

// keep keeps the copy up, and begins it anew when that fails, until ctx ends.
func (m *mirror) keep(ctx context.Context) {
	for ctx.Err() == nil {
		watching, stop := context.WithCancel(ctx)
		if err := m.follow(watching); err != nil && ctx.Err() == nil {
			m.store.config.Logger.Debug("the copy of the store begins anew", "because", err)
		}
		stop()
		m.set(nil, 0)
		select {
		case <-ctx.Done():
		case <-time.After(mirrorAgain):
		}
	}
}

// kept are the keys whose values a copy has, the counters excepted: who leads reads those.
var kept = []string{substrateKey, leasesKey, plansKey, notifyKey, waitingKey}

// follow reads everything and takes in each change.
func (m *mirror) follow(ctx context.Context) error {
	answer, err := m.store.client.Get(ctx, m.store.key(countersKey))
	if err != nil {
		return explain(err)
	}
	values := map[string]*value{}
	for _, key := range kept {
		err := m.store.eachBelow(ctx, key, answer.Header.Revision, func(key string, raw []byte) error {
			values[key] = &value{raw: raw}
			return nil
		})
		if err != nil {
			return err
		}
	}
	m.set(values, answer.Header.Revision)
	changes := m.store.client.Watch(ctx, m.store.config.Prefix+"/", clientv3.WithPrefix(), clientv3.WithRev(answer.Header.Revision+1))
	for change := range changes {
		if err := change.Err(); err != nil {
			return explain(err)
		}
		m.take(change)
	}
	return errors.New("the watch ended")
}

// take takes in changes, all of a revision at once.
func (m *mirror) take(change clientv3.WatchResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range change.Events {
		key := strings.TrimPrefix(string(e.Kv.Key), m.store.config.Prefix+"/")
		if !slices.ContainsFunc(kept, func(of string) bool { return strings.HasPrefix(key, of) }) {
			continue
		}
		m.outdate(key)
		if e.Type == clientv3.EventTypeDelete {
			delete(m.values, key)
		} else if m.values != nil {
			m.values[key] = &value{raw: e.Kv.Value}
		}
	}
	if last := len(change.Events) - 1; last >= 0 {
		m.grow(change.Events[last].Kv.ModRevision) // that of the header may be ahead of what has come
	}
}

// outdate takes what follows from a value out of what was worked out.
func (m *mirror) outdate(key string) {
	switch v := m.values[key]; {
	case key == substrateKey:
		m.forget()
	case v != nil && v.ahead:
		drop(m.ahead, v.read)
	}
}

// forget takes back all that was worked out.
func (m *mirror) forget() {
	m.ahead = nil
	for _, v := range m.values {
		v.ahead = false
	}
}

func (m *mirror) set(values map[string]*value, revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values, m.ahead = values, nil
	m.grow(revision)
}

func (m *mirror) grow(revision int64) {
	m.revision = revision
	close(m.grown)
	m.grown = make(chan struct{})
}

// decode decodes what has come, until ctx ends.
func (m *mirror) decode(ctx context.Context) {
	every := time.NewTicker(decodeEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		for key, v := range m.encoded() {
			read, err := decoded(key, v.raw)
			if err != nil {
				continue // whoever leads says so
			}
			m.mu.Lock()
			v.read, v.raw = read, nil
			m.mu.Unlock()
		}
		m.workOut(ctx)
	}
}

// workOut takes what is decoded into what a book is made of. Changes wait for convergeEvery
// leases at most.
func (m *mirror) workOut(ctx context.Context) {
	values := m.toWorkOut()
	for key, v := range values {
		if ctx.Err() != nil {
			return
		}
		m.mu.Lock()
		if m.ahead != nil && m.values[key] == v {
			take(m.ahead, v.read)
			v.ahead = true
		}
		if delete(values, key); m.ahead != nil && len(values)%convergeEvery == 0 {
			m.ahead.Converge()
		}
		m.mu.Unlock()
	}
}

// take takes a value into what a book is made of.
func take(a *lease.Ahead, read any) {
	switch of := read.(type) {
	case *vnet.Lease:
		a.Take(*of)
	case *plan.Host:
		a.TakePlan(*of)
	}
}

// drop takes it away.
func drop(a *lease.Ahead, read any) {
	switch of := read.(type) {
	case *vnet.Lease:
		a.Drop(of.ID())
	case *plan.Host:
		a.DropPlan(of.Host)
	}
}

// toWorkOut are leases and plans that were decoded since.
func (m *mirror) toWorkOut() map[string]*value {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := map[string]*value{}
	of := m.values[substrateKey]
	if of == nil || of.read == nil {
		return list
	}
	if m.ahead == nil {
		m.ahead = lease.NewAhead(*of.read.(*vnet.Substrate))
	}
	for key, v := range m.values {
		switch v.read.(type) {
		case *vnet.Lease, *plan.Host:
			if !v.ahead {
				list[key] = v
			}
		}
	}
	return list
}

func (m *mirror) encoded() map[string]*value {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := map[string]*value{}
	for key, v := range m.values {
		if v.read == nil {
			list[key] = v
		}
	}
	return list
}

// decoded is the value of a key.
func decoded(key string, raw []byte) (read any, err error) {
	switch {
	case key == substrateKey:
		read = new(vnet.Substrate)
	case strings.HasPrefix(key, leasesKey):
		read = new(vnet.Lease)
	case strings.HasPrefix(key, plansKey):
		read = new(plan.Host)
	case strings.HasPrefix(key, notifyKey):
		read = new(vnet.Notify)
	default:
		read = new(vnet.Waiting)
	}
	if err := unpack(raw, read); err != nil {
		return nil, fmt.Errorf("read %s from the store: %w", key, err)
	}
	return read, nil
}

// give ends the copy and gives what it has, if that is of a revision or a later one. Who
// gets it may change it.
func (m *mirror) give(ctx context.Context, revision int64) (state lease.State, there bool, err error) {
	defer m.stop()
	late := time.NewTimer(catchUp)
	defer late.Stop()
	for {
		m.mu.Lock()
		values, grown, have := m.values, m.grown, m.revision
		if values == nil {
			m.mu.Unlock()
			return state, false, nil
		}
		if have >= revision {
			m.values = nil
			state, err = stateOf(values) // while nothing else is decoded
			state.Ahead = m.ahead
			m.ahead = nil
			m.mu.Unlock()
			return state, err == nil, err
		}
		m.mu.Unlock()
		select {
		case <-grown:
		case <-late.C:
			return state, false, nil
		case <-ctx.Done():
			return state, false, ctx.Err()
		}
	}
}

// stateOf puts decoded values together.
func stateOf(values map[string]*value) (state lease.State, err error) {
	for key, v := range values {
		if v.read == nil {
			if v.read, err = decoded(key, v.raw); err != nil {
				return state, err
			}
		}
		add(&state, v.read)
	}
	sortLeases(&state)
	return state, nil
}
