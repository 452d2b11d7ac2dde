package channel

import (
	"slices"

	"sublet/openflow/of13"
)

const (
	inbox = 64 // messages of one connection that wait for the switch at most
	fair  = 8  // of so many messages one is taken in turn, whatever it asks
)

// Classes of messages: the switch takes those of a lower class first.
const (
	classControl  uint8 = iota // roles, barriers, configuration
	classChange                // of entries, groups, meters, ports, tables
	classPacket                // packet-outs
	classQuestion              // statistics
)

func class(kind uint8) uint8 {
	switch kind {
	case of13.TypeFlowMod, of13.TypeGroupMod, of13.TypePortMod, of13.TypeTableMod, of13.TypeMeterMod, of13.TypeExperimenter:
		return classChange
	case of13.TypePacketOut:
		return classPacket
	case of13.TypeMultipartRequest, of13.TypeQueueGetConfigRequest:
		return classQuestion
	}
	return classControl
}

// Incoming is a message from a controller, as received.
type Incoming struct {
	Conn *Conn
	Raw  []byte
}

// peek says whether a message of the connection waits; ended, that none will come.
func (c *Conn) peek() (waits, ended bool) {
	if c.next != nil {
		return true, false
	}
	if c.direct != nil {
		c.next, ended = c.look()
		return c.next != nil, ended
	}
	if c.stuff() {
		return false, false
	}
	select {
	case raw, open := <-c.inbox:
		c.next = raw
		return open, !open
	default:
		return false, false
	}
}

// Next gives the message that is to be done next; ok is false if none waits.
// The messages of one connection are taken in their order, so that a barrier
// holds. Between connections those of a lower class go first, but for every
// eighth message, which is that of whoever is next in turn.
func (h *Hub) Next() (in Incoming, ok bool) {
	h.relieve()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turn++
	var best *Conn
	h.sources = slices.DeleteFunc(h.sources, func(c *Conn) bool {
		_, ended := c.peek()
		if ended {
			h.Bundled.Add(-int64(c.bundledBytes))
			c.bundledBytes, c.bundles = 0, nil
		}
		return ended
	})
	from, inTurn := h.turn, h.turn%fair == 0
	if inTurn {
		from /= fair
	}
	for i := range h.sources {
		c := h.sources[(from+i)%len(h.sources)]
		if c.next == nil || best != nil && class(c.wire.kind(c.next)) >= class(best.wire.kind(best.next)) {
			continue
		}
		if best = c; inTurn {
			break
		}
	}
	if best == nil {
		return Incoming{}, false
	}
	in = Incoming{best, best.next}
	best.next = nil
	return in, true
}

// deliver queues a message for the switch; it waits while there is no room.
func (h *Hub) deliver(c *Conn, raw []byte) bool {
	select {
	case c.inbox <- raw:
		h.notify()
		return true
	case <-h.done:
		return false
	}
}
