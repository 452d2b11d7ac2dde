package channel

import (
	"errors"
	"fmt"
)

// ErrUnread is why a connection is ended whose controller asks and does not read.
var ErrUnread = errors.New("it did not read what it had asked for")

// count takes down how much waits for the controller, with c.mu held.
func (c *Conn) count() {
	now := int64(c.out.replies())
	if c.direct != nil {
		now += int64(len(c.sending))
	}
	c.hub.held.Add(now - c.held.Swap(now))
	if c.stuffed && now <= mostReply {
		c.stuffed = false
		c.hub.notify()
	}
}

// stuff says whether the controller is to read replies before it is answered; then
// count says when it has.
func (c *Conn) stuff() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stuffed = c.held.Load() > mostReply
	return c.stuffed
}

// forget drops what waits for a controller that is gone.
func (c *Conn) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = lanes{}
	c.count()
}

// relieve ends the connections for which most waits, until no more waits than there may.
// Whoever drives the switch calls it before a message is done, so one reply may be above
// the bound.
func (h *Hub) relieve() {
	for h.held.Load() > h.most() {
		c := h.fullest()
		if c == nil {
			return
		}
		c.drop(fmt.Errorf("%w: %d bytes waited", ErrUnread, c.held.Load()))
	}
}

func (h *Hub) most() int64 {
	if h.Most > 0 {
		return h.Most
	}
	return mostHeld
}

// fullest is the connection for which most waits; nil: nothing waits for any.
func (h *Hub) fullest() (fullest *Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.sources {
		if n := c.held.Load(); n > 0 && (fullest == nil || n > fullest.held.Load()) {
			fullest = c
		}
	}
	return fullest
}

// drop ends a connection at once, and says why.
func (c *Conn) drop(why error) {
	c.hub.note(c.controller().target, why)
	c.mu.Lock()
	c.why = why
	c.mu.Unlock()
	c.forget()
	if c.direct != nil {
		c.finish(why)
		c.close()
		return
	}
	c.cut()
}
