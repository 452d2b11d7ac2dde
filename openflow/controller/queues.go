package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sublet/openflow/of13"
)

// queues are those of a switch's ports, which its operator has set up: they are read
// before entries lead to them, and looked after. What is lost of them nobody but the
// operator can put right.
type queues struct {
	by    map[uint32]portQueue // by passage
	shown map[portQueue]bool   // as they were read last
	read  uint32               // transaction that asks for them; 0: none
	since time.Time            // it asks
	then  func()               // waits for what is read; nil: nothing does
	fail  error                // what was refused instead of shown
}

type portQueue struct{ port, number uint32 }

var errQueuesTaken = errors.New("all queues of this rate at its port are taken by other entries")

func throughQueue(queue, out uint32) []of13.Instruction {
	return []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{{Type: of13.ActionSetQueue, Number: queue}, of13.Output(out)}}}
}

// adoptQueue keeps the queue that a former process gave a passage.
func (l *forwarderLink) adoptQueue(id uint32, actions []of13.Action) {
	if len(actions) == 2 && actions[0].Type == of13.ActionSetQueue {
		l.queues.by[id] = portQueue{actions[1].Number, actions[0].Number}
	}
}

// inQueues says whether a passage is to have a queue.
func (l *forwarderLink) inQueues() bool {
	for _, p := range l.w.wanted {
		if len(p.Queues) > 0 {
			return true
		}
	}
	return false
}

// withQueues reads the queues of the switch, if passages are to have some, and goes on
// without the lock then.
func (l *forwarderLink) withQueues(now time.Time, then func()) {
	if !l.inQueues() {
		then()
		return
	}
	l.queues.then = then
	l.askQueues(now)
}

func (l *forwarderLink) askQueues(now time.Time) {
	l.queues.since = now
	l.queues.read = l.s.Send(&of13.QueueConfigRequest{Port: of13.PortAny})
}

// queueMessage takes the answer to what was asked of queues.
func (l *forwarderLink) queueMessage(h of13.Header, m of13.Message) bool {
	if l.queues.read == 0 || h.XID != l.queues.read {
		return false
	}
	shown, fail := make(map[portQueue]bool), error(nil)
	switch m := m.(type) {
	case *of13.QueueConfigReply:
		for _, q := range m.Queues {
			shown[portQueue{q.Port, q.Queue}] = true
		}
	case *of13.ErrorMessage:
		fail = of13.Error(uint32(m.Kind)<<16 | uint32(m.Code))
	default:
		return false
	}
	l.queuesShown(shown, fail)
	return true
}

// queuesShown goes on with what waits, and no longer shows passages whose queues are gone.
func (l *forwarderLink) queuesShown(shown map[portQueue]bool, fail error) {
	l.f.mu.Lock()
	q := &l.queues
	q.shown, q.fail, q.read = shown, fail, 0
	for id := range l.w.proven {
		if p := l.w.wanted[id]; len(p.Queues) > 0 && !shown[q.by[id]] {
			delete(l.w.proven, id)
		}
	}
	then := q.then
	q.then = nil
	l.f.mu.Unlock()
	if then != nil {
		then()
	}
}

// tickQueues gives up a question that has no answer, and asks again now and then.
func (l *forwarderLink) tickQueues(now time.Time) {
	silent := now.Sub(l.queues.since)
	switch {
	case l.queues.read != 0 && silent > proveWithin:
		l.f.mu.Unlock()
		l.queuesShown(nil, fmt.Errorf("queues within %s: %w", proveWithin, ErrUnproven))
		l.f.mu.Lock()
	case l.queues.read == 0 && silent > auditEvery && !l.busy && l.inQueues():
		l.askQueues(now)
	}
}

// takeQueue gives a passage a queue of its port that no other has: the one that it has
// already, or else the lowest.
func (l *forwarderLink) takeQueue(p Passage) error {
	if len(p.Queues) == 0 {
		delete(l.queues.by, p.ID)
		return nil
	}
	taken := l.takenQueues(p.ID)
	usable := func(n uint32) bool { q := portQueue{p.Out, n}; return !taken[q] && l.queues.shown[q] }
	has := l.queues.by[p.ID]
	if has.port == p.Out && slices.Contains(p.Queues, has.number) && usable(has.number) {
		return nil
	}
	delete(l.queues.by, p.ID)
	if i := slices.IndexFunc(p.Queues, usable); i >= 0 {
		l.queues.by[p.ID] = portQueue{p.Out, p.Queues[i]}
		return nil
	}
	missing := slices.DeleteFunc(slices.Clone(p.Queues), func(n uint32) bool { return l.queues.shown[portQueue{p.Out, n}] })
	switch {
	case l.queues.fail != nil:
		return fmt.Errorf("its queues cannot be read: %w", l.queues.fail)
	case len(missing) > 0:
		return fmt.Errorf("the switch has no queues %v at port %d, as the substrate states: set them up there", missing, p.Out)
	}
	return errQueuesTaken
}

// takenQueues are those of other passages, also of those that a former process told and
// that may be wanted still.
func (l *forwarderLink) takenQueues(besides uint32) map[portQueue]bool {
	taken := make(map[portQueue]bool)
	for id, q := range l.queues.by {
		_, wanted := l.w.wanted[id]
		switch {
		case id == besides:
		case wanted || !l.w.settled && !l.claimed[id]:
			taken[q] = true
		default:
			delete(l.queues.by, id)
		}
	}
	return taken
}
