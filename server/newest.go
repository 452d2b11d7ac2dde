package server

import (
	"context"
	"sync"
)

// newest asks a store for its newest version once for all who wait, so that a flood
// of reads is no flood of what a majority must answer: at most one call is under
// way, and whoever comes meanwhile shares the next one. A call begins after all who
// take its answer came.
type newest struct {
	ask func(context.Context) (int64, error)

	mu     sync.Mutex
	asking bool
	next   *pending // the call that has not begun; nil: nobody waits for one
}

// pending is a call; done is closed when the rest is there.
type pending struct {
	done    chan struct{}
	version int64
	err     error
}

func (n *newest) version(ctx context.Context) (int64, error) {
	call := n.join()
	select {
	case <-call.done:
		return call.version, call.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (n *newest) join() *pending {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = &pending{done: make(chan struct{})}
	}
	if !n.asking {
		n.asking = true
		go n.run()
	}
	return n.next
}

// run makes calls while somebody waits for one.
func (n *newest) run() {
	for call := n.begin(); call != nil; call = n.begin() {
		ctx, cancel := context.WithTimeout(context.Background(), leaderTimeout)
		call.version, call.err = n.ask(ctx)
		cancel()
		close(call.done)
	}
}

func (n *newest) begin() *pending {
	n.mu.Lock()
	defer n.mu.Unlock()
	call := n.next
	n.next, n.asking = nil, call != nil
	return call
}
