package lease

import (
	"fmt"
	"slices"
	"time"

	"sublet/vnet"
)

// A network that is to be verified runs, as far as others are told, once its promises
// were measured after it was built. Who measures is not the book's matter: it says
// what waits for it, and is told the outcome.

// handover is what is known of a lease before it ran for the first time. It is not
// stored: who leads anew has it measured anew.
type handover struct {
	ready  bool // it is built, and waits for its verdict
	passed bool
	failed int    // times, one after the other
	why    string // the last one
}

// HandoverTries is how often promises may be found broken before a network is said to
// have failed. It is measured again all the same.
const HandoverTries = 3

// verifies says whether a lease is still to be measured before it runs.
func (b *Book) verifies(e *entry) bool {
	wanted := e.Request.Verify == vnet.VerifyHandover || e.Request.Verify == "" && b.VerifyHandover
	return wanted && e.Life.Ran.IsZero() && e.Paused == nil && !e.handover.passed && len(e.Topology().Links) > 0
}

// state is that of a network which is built and not handed over.
func (h handover) state() (vnet.State, string) {
	switch {
	case h.failed >= HandoverTries:
		return vnet.Failed, "not handed over: " + h.why
	case h.failed > 0:
		return vnet.Deploying, "measured before it is handed over, again: " + h.why
	}
	return vnet.Deploying, "its promises are measured before it is handed over"
}

// Handover is a network that waits to be measured; Failed is how often that was in
// vain.
type Handover struct {
	vnet.Lease
	Failed int
}

// Handovers lists the networks that are built and wait to be measured.
func (b *Book) Handovers() (list []Handover) {
	for _, e := range b.active {
		if e.handover.ready {
			list = append(list, Handover{e.Lease, e.handover.failed})
		}
	}
	slices.SortFunc(list, func(a, b Handover) int { return bySerial(a.Lease, b.Lease) })
	return list
}

// HandOver takes in that a network was measured; why says which promise is broken,
// and is empty if none is.
func (b *Book) HandOver(now time.Time, id vnet.LeaseID, serial uint64, why string) error {
	e, ok := b.entries[id]
	if !ok {
		return fmt.Errorf("hand over %s: %w", id, ErrUnknown)
	}
	if e.Serial != serial {
		return fmt.Errorf("hand over %s: %w: another lease has the name now", id, ErrConflict)
	}
	if !e.handover.ready {
		return nil // something is wrong with it meanwhile
	}
	if e.handover.passed, e.handover.why = why == "", why; why != "" {
		e.handover.failed++
	}
	return b.Tick(now)
}
