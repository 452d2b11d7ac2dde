package lease

import (
	"context"
	"errors"

	"sublet/lease/rollout"
	"sublet/plan"
	"sublet/vnet"
)

// ErrNotLeader is wrapped by Save when another server has become the leader:
// nothing was written, and the caller's Book is out of date.
var ErrNotLeader = errors.New("this server is not the leader")

// ErrFull is wrapped by Save when the store has no space left: nothing was
// written, and what is stored can still be read.
var ErrFull = errors.New("the store is full")

// State is what a server needs to go on after a restart.
type State struct {
	Substrate vnet.Substrate            `json:"substrate"`
	Leases    []vnet.Lease              `json:"leases,omitempty"` // live ones and history, by Serial
	Plans     map[vnet.HostID]plan.Host `json:"plans,omitempty"`  // as last published, with their Revision
	Counters  Counters                  `json:"counters"`
	Notify    []vnet.Notify             `json:"notify,omitempty"` // where tenants are told of events
	Waiting   []vnet.Waiting            `json:"waiting,omitempty"`
	Ahead     *Ahead                    `json:"-"` // of some of Leases; nil: of none. Who restores a book takes it
}

// Counters are the last numbers given out, which never go back, and whose
// they are.
type Counters struct {
	Serial   uint64      `json:"serial"`          // of vnet.Lease
	Revision uint64      `json:"revision"`        // of plan.Host
	Store    string      `json:"store,omitempty"` // identity of the store, random; see Book.Begin
	Terms    []plan.Term `json:"terms,omitempty"` // in which plans were published, oldest first

	// Unfinished says that more transactions of the same changes were to follow.
	Unfinished bool `json:"unfinished,omitempty"`
}

func (c Counters) lineage() rollout.Lineage {
	return rollout.Lineage{Revision: c.Revision, Store: c.Store, Terms: c.Terms}
}

// Changes is what became different in a Book since it was last asked.
type Changes struct {
	Counters  Counters        // always set
	Named     bool            // the store's identity is new
	Substrate *vnet.Substrate // nil: unchanged
	Records   []vnet.Record   // to put into the ledger, by Serial
	Leases    []vnet.Lease    // to put, each whole, by ID
	Plans     []plan.Host     // to put, each whole, by Host
	NoLeases  []vnet.LeaseID  // to delete
	NoPlans   []vnet.HostID   // to delete: hosts that left the substrate
	Notify    []vnet.Notify   // to put, by Tenant
	NoNotify  []vnet.TenantID // to delete
	Waiting   []vnet.Waiting  // to put, by ID
	NoWaiting []vnet.LeaseID  // to delete
}

// Empty says that there is nothing to save.
func (c Changes) Empty() bool {
	return !c.Named && c.Substrate == nil && len(c.Records)+len(c.Leases)+len(c.Plans)+len(c.NoLeases)+len(c.NoPlans)+len(c.Notify)+len(c.NoNotify)+len(c.Waiting)+len(c.NoWaiting) == 0
}

// Store keeps a State. The book's server is the only writer: every write is
// fenced by the leader's key.
type Store interface {
	// Load reads everything; an empty store gives the zero State.
	Load(ctx context.Context) (State, error)
	// Save writes changes. What does not fit one transaction is written in the
	// order Counters, Substrate, Records, Leases, Plans, NoLeases, NoPlans, and what is
	// beside leases: a prefix of
	// that order is a state to go on from. Saving twice is saving once. On an
	// error the caller saves the same changes again or, when the error is
	// ErrNotLeader, steps down; it publishes no plan before it is saved.
	Save(ctx context.Context, c Changes) error
	// Ledger reads up to limit records that follow a mark, by tenant and
	// serial; of one tenant, or of all with "". The mark of the first page is
	// "", each answer has that of the next; "": there is none.
	Ledger(ctx context.Context, tenant vnet.TenantID, after string, limit int) (records []vnet.Record, next string, err error)
}
