package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sublet/internal/plain"
	"sublet/internal/problem"
	"sublet/lease"
	"sublet/plan"
	"sublet/vnet"
)

// What nodes keep, routers have learned and switches were told is copied from the agent of one host to that of another through this
// server, which both believe. The receiving host takes it when it is whole. A copy that
// is interrupted, as when an agent is killed, begins anew.
const (
	mostCopies = 4                // at a time
	copyTries  = 10               // of one
	copyAgain  = 2 * time.Second  // after one that failed
	copyLook   = 5 * time.Second  // between signs of progress
	copyStands = 60 * time.Second // without a byte
)

// carriedFiles is what agents are told with the files of nodes that go to another host
// (api.Carried of agent/api).
const carriedFiles = "carried"

// copier has what is copied now.
type copier struct {
	mu    sync.Mutex
	tries map[lease.Copy]int
	due   map[lease.Copy]time.Time // when the next try begins at the earliest
	under map[lease.Copy]bool
}

// keepCopying copies what is to be copied until ctx ends.
func (s *Server) keepCopying(ctx context.Context) {
	c := copier{tries: make(map[lease.Copy]int), due: make(map[lease.Copy]time.Time), under: make(map[lease.Copy]bool)}
	var copying sync.WaitGroup
	defer copying.Wait()
	for ctx.Err() == nil {
		changed, list := s.copies()
		for _, one := range c.next(list) {
			copying.Go(func() { c.ended(one, s.copyKept(ctx, &c, one)) })
		}
		await(ctx, changed)
	}
}

// copies are what is to be copied, and a channel that is closed when the book changes.
func (s *Server) copies() (changed <-chan struct{}, list []lease.Copy) {
	_ = s.look(func(_ time.Time, b *lease.Book) error { // else nothing is copied now
		changed, list = s.changed, b.Copies()
		return nil
	})
	return changed, list
}

// next are those to begin, and forgets what is wanted no more.
func (c *copier) next(list []lease.Copy) (begin []lease.Copy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := make(map[lease.Copy]bool)
	for _, one := range list {
		wanted[one] = true
		if len(c.under) < mostCopies && !c.under[one] && !time.Now().Before(c.due[one]) {
			c.under[one] = true
			begin = append(begin, one)
		}
	}
	for one := range c.tries {
		if !wanted[one] && !c.under[one] {
			delete(c.tries, one)
			delete(c.due, one)
		}
	}
	return begin
}

// ended notes what came of a try.
func (c *copier) ended(one lease.Copy, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.under, one)
	if err == nil {
		delete(c.tries, one)
		delete(c.due, one)
		return
	}
	c.tries[one]++
	c.due[one] = time.Now().Add(copyAgain)
}

// last says whether a try is the last one.
func (c *copier) last(one lease.Copy) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tries[one]+1 >= copyTries
}

// copyKept copies what one node keeps and tells the book; why not, otherwise.
func (s *Server) copyKept(ctx context.Context, c *copier, one lease.Copy) error {
	err := s.passKept(ctx, one)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	tell := (*lease.Book).Copied
	if final := (refusedCopy{}); errors.As(err, &final) || err != nil && c.last(one) {
		tell = (*lease.Book).CopyFailed
	} else if err != nil {
		s.log.Warn("copy what a node has", "lease", one.Lease.String(), "node", one.Node, "err", err)
		return err
	}
	by, comes := clock(), "is taken back"
	if err != nil {
		by.did = fmt.Sprintf("what %s has cannot be copied from %s to %s: %s", one.Node, one.From, one.To, err)
		if one.What == lease.CopyMachine {
			by.did = fmt.Sprintf("%s is stopped while it is copied from %s to %s: it cannot be copied while it runs: %s", one.Node, one.From, one.To, err)
			by.tells(one.Lease, "stands still to move")
			comes = "goes on with the machine stopped"
		}
		s.log.Error("a move "+comes, "lease", one.Lease.String(), "why", by.did)
	}
	var arrived []lease.Copy
	told := s.changeBy(by, func(now time.Time, b *lease.Book) error {
		err := tell(b, now, one)
		arrived = b.Arrived(one.Lease)
		return err
	})
	if errors.Is(told, lease.ErrConflict) {
		return nil
	}
	if told != nil {
		return told
	}
	for _, machine := range arrived {
		if err := s.goOn(ctx, machine); err != nil { // its plan says the same, later
			s.log.Warn("let a machine go on that has moved", "lease", machine.Lease.String(), "node", machine.Node, "err", err)
		}
	}
	return nil
}

// goOn lets a machine go on that has come to its new host.
func (s *Server) goOn(ctx context.Context, one lease.Copy) error {
	answer, err := s.askKept(ctx, one, one.To, http.MethodPost, nil)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// refusedCopy is an answer of an agent that another try would get again.
type refusedCopy struct{ why string }

func (r refusedCopy) Error() string { return r.why }

// passKept passes what a node keeps from one agent to another.
func (s *Server) passKept(ctx context.Context, one lease.Copy) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	from, err := s.askKept(ctx, one, one.From, http.MethodGet, nil)
	if err != nil {
		return err
	}
	defer from.Body.Close()
	passed := &counted{Reader: from.Body}
	go s.followCopy(ctx, stop, one, passed)
	to, err := s.askKept(ctx, one, one.To, http.MethodPut, passed)
	if err == nil {
		err = to.Body.Close()
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// counted counts what is read.
type counted struct {
	io.Reader
	bytes atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// followCopy tells the book that a copy goes on, and ends one that does not, or is
// wanted no more.
func (s *Server) followCopy(ctx context.Context, stop context.CancelCauseFunc, one lease.Copy, passed *counted) {
	look := time.NewTicker(copyLook)
	defer look.Stop()
	before, since := int64(0), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if now := passed.bytes.Load(); now > before {
			before, since = now, time.Now()
		}
		if time.Since(since) > copyStands {
			stop(fmt.Errorf("nothing has come for %s", copyStands))
			return
		}
		err := s.look(func(now time.Time, b *lease.Book) error { return b.CopyGoesOn(now, one) })
		if err != nil {
			stop(err)
			return
		}
	}
}

// askKept asks an agent for what a node keeps, or gives it to one.
func (s *Server) askKept(ctx context.Context, one lease.Copy, host vnet.HostID, method string, body io.Reader) (*http.Response, error) {
	target, transport, err := s.agentOf(host)
	if err != nil {
		return nil, err
	}
	at := target.JoinPath("/v1/nodes/", plan.Namespace(one.Lease, one.Node))
	switch one.What {
	case lease.CopyRoutes:
		at = at.JoinPath("routes")
	case lease.CopyMachine:
		at = at.JoinPath("live")
	case lease.CopyTables:
		at = target.JoinPath("/v1/switches/", plan.SwitchNamespace(one.Lease, one.Node, vnet.SwitchOpenFlow), "kept")
	default:
		at = at.JoinPath("kept")
		at.RawQuery = carriedFiles
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, agentUnreachable(host, err.Error())
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	var why problem.Problem
	_ = json.NewDecoder(io.LimitReader(response.Body, mostState)).Decode(&why) // the status says something, too
	err = fmt.Errorf("the agent of %s answers %s: %s", host, response.Status, plain.Text(why.Detail))
	switch response.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage:
		return nil, refusedCopy{err.Error()}
	}
	return nil, err
}
