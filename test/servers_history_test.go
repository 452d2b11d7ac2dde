package test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"sublet/lease/api"
	"sublet/vnet"
)

// Verbs and answers of a history.
const (
	verbUp, verbGet, verbDown = 0, 1, 2

	answerDone    = "done"
	answerThere   = "there"
	answerGone    = "gone"
	answerUnknown = "unknown" // it may have been done, now or later
)

// asked is one operation on one lease.
type asked struct {
	verb  int
	lease string
}

// states of a lease in the model.
const (
	leaseNever, leaseThere, leaseGone = 0, 1, 2
)

// leasesModel is what leases are to whoever looks from outside: each is made once,
// is there until it is released, and never again.
var leasesModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		of := map[string][]porcupine.Operation{}
		for _, o := range history {
			name := o.Input.(asked).lease
			of[name] = append(of[name], o)
		}
		for _, part := range of {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return leaseNever },
	Step: func(state, input, output any) (bool, any) {
		switch a := output.(string); input.(asked).verb {
		case verbGet:
			return (a == answerThere) == (state == leaseThere), state
		case verbUp:
			if state == leaseNever {
				return true, leaseThere
			}
			return a == answerUnknown, state
		default:
			if state == leaseThere {
				return a != answerGone, leaseGone
			}
			return a != answerDone || state == leaseGone, state // releasing twice is releasing once
		}
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%s %s: %v", [...]string{"up", "get", "down"}[input.(asked).verb], input.(asked).lease, output)
	},
}

// history is what clients asked a control plane and were answered.
type history struct {
	c                         *control
	on                        vnet.HostID // where its leases are; "": anywhere
	began                     time.Time
	stop                      context.CancelFunc
	ends                      sync.WaitGroup
	newest, unknown, answered atomic.Int64

	mu   sync.Mutex
	list []porcupine.Operation
}

// record lets clients ask until the history is checked: half of them each know one
// server only, the others all.
func (c *control) record(clients int) *history { return c.recordOn(clients, "") }

// recordOn is record with leases on one host.
func (c *control) recordOn(clients int, on vnet.HostID) *history {
	ctx, stop := context.WithCancel(c.t.Context())
	h := &history{c: c, on: on, began: time.Now(), stop: stop}
	for n := range clients {
		client := c.client(c.addresses()...)
		if n%2 == 1 {
			client = c.client(c.members[n/2%len(c.members)].address)
		}
		h.ends.Go(func() { h.ask(ctx, n, client) })
	}
	c.t.Cleanup(func() { stop(); h.ends.Wait() })
	return h
}

// ask asks one thing after another, about leases that are new and such that others
// ask about.
func (h *history) ask(ctx context.Context, n int, client *api.Client) {
	for i := 0; ctx.Err() == nil; i++ {
		a := asked{verb: verbGet}
		newest := h.newest.Load()
		switch draw := rand.IntN(8); {
		case draw == 0 || newest == 0:
			a.verb, newest = verbUp, h.newest.Add(1)
		case draw == 1:
			a.verb = verbDown
		}
		if a.verb != verbUp {
			newest = max(1, newest-rand.Int64N(8))
		}
		a.lease = fmt.Sprintf("n%d", newest)
		h.one(ctx, n, client, a)
	}
}

// one asks one thing, within a time that leaves room for a takeover.
func (h *history) one(ctx context.Context, n int, client *api.Client, a asked) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	o := porcupine.Operation{ClientId: n, Input: a, Call: int64(time.Since(h.began))}
	o.Output, o.Return = answerOf(ctx, client, a, h.on), int64(time.Since(h.began))
	if o.Output == answerUnknown {
		h.unknown.Add(1)
		if time.Sleep(10 * time.Millisecond); a.verb == verbGet {
			return
		}
		o.Return = math.MaxInt64
	}
	h.answered.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, o)
}

func answerOf(ctx context.Context, client *api.Client, a asked, on vnet.HostID) string {
	id := vnet.LeaseID{Tenant: "bin", Network: vnet.VNetID(a.lease)}
	var err error
	switch a.verb {
	case verbUp:
		r := vnet.Request{Tenant: id.Tenant, Network: id.Network}
		r.Nodes = []vnet.VirtualNode{{Name: "a", CPU: 10, Memory: vnet.MiB, Host: on}}
		_, err = client.Admit(ctx, r, false)
	case verbGet:
		var l vnet.Lease
		if l, err = client.Lease(ctx, id); err == nil && l.State != vnet.Ended {
			return answerThere
		} else if err == nil {
			return answerGone
		}
	case verbDown:
		_, err = client.Release(ctx, id)
	}
	switch {
	case err == nil:
		return answerDone
	case errors.Is(err, api.ErrNotFound):
		return answerGone
	case errors.Is(err, api.ErrConflict):
		return "taken"
	}
	return answerUnknown
}

// check ends the history, and looks for an order of what was asked that explains
// every answer.
func (h *history) check() {
	t := h.c.t
	t.Helper()
	h.stop()
	h.ends.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	done := map[int]int{}
	for _, o := range h.list {
		if o.Output == answerDone || o.Output == answerThere {
			done[o.Input.(asked).verb]++
		}
	}
	if done[verbUp] == 0 || done[verbGet] == 0 || done[verbDown] == 0 {
		t.Errorf("the history says nothing: by verb, %v were answered", done)
	}
	result, info := porcupine.CheckOperationsVerbose(leasesModel, h.list, time.Minute)
	t.Logf("%d answers, %d without; done by verb: %v", h.answered.Load(), h.unknown.Load(), done)
	if result == porcupine.Ok {
		return
	}
	h.tell()
	file := t.ArtifactDir() + "/history.html"
	t.Errorf("the history is not linearizable (%s): %v, see %s", result, porcupine.VisualizePath(leasesModel, info, file), file)
}

// tell logs what was asked about one lease that no order explains.
func (h *history) tell() {
	for _, part := range leasesModel.Partition(h.list) {
		if porcupine.CheckOperations(leasesModel, part) {
			continue
		}
		for _, o := range part {
			h.c.t.Logf("client %d, %.4f to %.4f s: %s", o.ClientId, float64(o.Call)/1e9, float64(o.Return)/1e9, leasesModel.DescribeOperation(o.Input, o.Output))
		}
		return
	}
}

// The model tells a history in which a lease is lost from one in which none is.
func TestHistoryOfALostLease(t *testing.T) {
	t.Parallel()
	at := func(verb int, call int64, answer string) porcupine.Operation {
		return porcupine.Operation{Input: asked{verb, "n"}, Output: answer, Call: call, Return: call + 1}
	}
	up, there, gone := at(verbUp, 0, answerDone), at(verbGet, 2, answerThere), at(verbGet, 4, answerGone)
	if !porcupine.CheckOperations(leasesModel, []porcupine.Operation{up, there, at(verbDown, 3, answerDone), at(verbGet, 5, answerGone)}) {
		t.Error("a sound history is refused")
	}
	for name, list := range map[string][]porcupine.Operation{
		"lost": {up, gone}, "undone": {up, there, gone}, "doubled": {up, at(verbUp, 2, answerDone)},
		"back": {up, at(verbDown, 2, answerDone), at(verbGet, 4, answerThere)},
	} {
		if porcupine.CheckOperations(leasesModel, list) {
			t.Errorf("a history with a lease that is %s is accepted", name)
		}
	}
}
