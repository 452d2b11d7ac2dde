package channel

import (
	"time"

	"sublet/openflow/of13"
)

const (
	mostEvents = 1 << 20  // bytes of packet-ins that wait
	mostReply  = 4 << 20  // bytes of replies above which no request is read
	mostHeld   = 64 << 20 // bytes of replies that wait on all connections of a Hub, if it says nothing else
	roomy      = 1 << 20  // bytes of control that are written before packet-ins, and that a lane keeps when it is empty
	piece      = 64 << 10 // bytes of packet-ins or statistics that are written before other things are looked at
)

// lane is messages that wait to be written, in their order.
type lane struct {
	b  []byte
	at int // what is before it has been taken
}

func (l *lane) size() int { return len(l.b) - l.at }

func (l *lane) put(w *wire, xid uint32, m of13.Message) {
	if l.at > piece && 2*l.at > len(l.b) { // of who always reads a little less than is sent it would never get empty
		l.b, l.at = l.b[:copy(l.b, l.b[l.at:])], 0
	}
	if b, err := w.append(l.b, xid, m); err == nil {
		l.b = b
	}
}

// take moves whole messages to b, until they are at least most bytes.
func (l *lane) take(b []byte, most int) []byte {
	end := l.at
	for end < len(l.b) && end-l.at < most {
		end += int(of13.ReadHeader(l.b[end:]).Length)
	}
	b = append(b, l.b[l.at:end]...)
	if l.at = end; end == len(l.b) {
		l.b, l.at = l.b[:0], 0
	}
	if len(l.b) == 0 && cap(l.b) > roomy {
		l.b = nil
	}
	return b
}

// lanes are what waits for a controller: control is written before packet-ins,
// and these before statistics.
type lanes struct{ control, events, statistics lane }

func (l *lanes) replies() int { return l.control.size() + l.statistics.size() }

// take moves to b what is to be written next.
func (l *lanes) take(b []byte) []byte {
	b = l.control.take(b, roomy)
	b = l.events.take(b, piece)
	if len(b) < piece {
		b = l.statistics.take(b, piece-len(b))
	}
	return b
}

// reply queues a message that is not dropped. Barriers' replies do not overtake
// statistics that were asked for before them.
func (c *Conn) reply(xid uint32, m of13.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil || c.direct != nil && c.fd < 0 {
		return // nobody gets it
	}
	l := &c.out.control
	if m.Type() == of13.TypeMultipartReply || m.Type() == of13.TypeBarrierReply && c.out.statistics.size() > 0 {
		l = &c.out.statistics
	}
	l.put(&c.wire, xid, m)
	c.count()
	c.tellWriter()
}

// tellWriter has what was queued be written.
func (c *Conn) tellWriter() {
	if c.direct != nil {
		c.hub.touch(c)
		return
	}
	c.wake.Broadcast()
}

// giveUp ends the connection, with c.mu held.
func (c *Conn) giveUp() {
	c.ending = true
	if c.direct != nil {
		c.shutdown()
	}
	c.net.Close()
}

// cut ends the connection.
func (c *Conn) cut() {
	c.mu.Lock()
	c.giveUp()
	c.mu.Unlock()
}

// event queues a message that is dropped if the controller does not keep up.
func (c *Conn) event(m of13.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out.events.size() > mostEvents {
		c.Dropped.Add(1)
		return
	}
	c.out.events.put(&c.wire, 0, m)
	c.tellWriter()
}

// write writes what is queued until the connection is closed.
func (c *Conn) write() {
	var b []byte
	for {
		c.mu.Lock()
		for c.out.replies()+c.out.events.size() == 0 && !c.closed && !c.handed {
			c.wake.Wait()
		}
		if c.handed {
			c.mu.Unlock()
			return
		}
		done := c.closed && c.out.replies() == 0
		b = c.out.take(b[:0])
		c.count()
		c.wake.Broadcast()
		c.mu.Unlock()
		if done && len(b) == 0 || !c.send(b) {
			c.net.Close()
			c.forget()
			return
		}
	}
}

func (c *Conn) send(b []byte) bool {
	c.net.SetWriteDeadline(time.Now().Add(unanswered))
	_, err := c.net.Write(b)
	return err == nil
}

// end lets the writer write the replies that wait, and close.
func (c *Conn) end() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wake.Broadcast()
}

// room waits until the controller has read most of what was replied.
func (c *Conn) room() {
	c.mu.Lock()
	for c.out.replies() > mostReply && !c.closed {
		c.wake.Wait()
	}
	c.mu.Unlock()
}
