package lease

import (
	"fmt"
	"time"

	"sublet/vnet"
)

// Begin names the store, if it has no name yet, and the term of the server
// that writes from now on. Both are random, from outside: the same after a
// restart is another term.
func (b *Book) Begin(store, term string) {
	if b.rollout.Begin(store, term) {
		b.changed.named = true
	}
}

// Adopt makes a host whose agent keeps another plan follow this book's: first
// what both allow, then, when all hosts have come that far, the rest. The
// error is ErrUnknown, or ErrConflict when the agent keeps none.
func (b *Book) Adopt(now time.Time, host vnet.HostID) error {
	held, ok := b.rollout.Held(host)
	switch {
	case !ok:
		return fmt.Errorf("adopt host %s: %w", host, ErrUnknown)
	case held == nil:
		return fmt.Errorf("adopt host %s: %w: its agent follows this server or has not been heard of", host, ErrConflict)
	}
	b.rollout.Adopt(host)
	return b.Tick(now)
}
