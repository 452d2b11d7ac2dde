package channel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sublet/openflow/of13"
)

const (
	idle       = 5 * time.Second  // after which an echo is asked for
	unanswered = 10 * time.Second // after which a connection counts as dead
	mostEvents = 1 << 20          // bytes of packet-ins that wait
	mostReply  = 4 << 20          // bytes of replies above which no request is read
	mostHeld   = 64 << 20         // bytes of replies at which the connection is given up
)

// Conn is a connection to a controller.
type Conn struct {
	Dropped atomic.Uint64 // packet-ins for which there was no room

	net     net.Conn
	hub     *Hub
	decoder of13.Decoder
	role    uint32
	async   of13.Async

	mu              sync.Mutex
	wake            sync.Cond
	replies, events []byte // that wait to be written
	closed          bool
}

// Incoming is a message from a controller, as received.
type Incoming struct {
	Conn *Conn
	Raw  []byte
}

func newConn(n net.Conn, h *Hub) *Conn {
	c := &Conn{net: n, hub: h, role: of13.RoleEqual, async: of13.Async{
		Kind: of13.TypeGetAsyncReply, PacketIn: [2]uint32{3, 0}, PortStatus: [2]uint32{7, 7}, FlowRemove: [2]uint32{15, 0},
	}}
	c.wake.L = &c.mu
	return c
}

// reply queues a message that is not dropped.
func (c *Conn) reply(xid uint32, m of13.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, err := of13.Append(c.replies, xid, m); err == nil {
		c.replies = b
	}
	if len(c.replies) > mostHeld {
		c.net.Close()
	}
	c.wake.Broadcast()
}

// event queues a message that is dropped if the controller does not keep up.
func (c *Conn) event(m of13.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) > mostEvents {
		c.Dropped.Add(1)
		return
	}
	if b, err := of13.Append(c.events, 0, m); err == nil {
		c.events = b
	}
	c.wake.Broadcast()
}

// refuse tells of a message that was refused, with its first 64 bytes.
func (c *Conn) refuse(raw []byte, err error) {
	var e of13.Error
	if !errors.As(err, &e) {
		e = of13.BadRequestEPerm
	}
	c.reply(of13.ReadHeader(raw).XID, &of13.ErrorMessage{Kind: e.Type(), Code: e.Code(), Data: raw[:min(len(raw), 64)]})
}

// write writes what is queued until the connection is closed.
func (c *Conn) write() {
	var replies, events []byte
	for {
		c.mu.Lock()
		for len(c.replies)+len(c.events) == 0 && !c.closed {
			c.wake.Wait()
		}
		done := c.closed && len(c.replies) == 0
		replies, c.replies = c.replies, replies[:0]
		events, c.events = c.events, events[:0]
		c.wake.Broadcast()
		c.mu.Unlock()
		c.net.SetWriteDeadline(time.Now().Add(unanswered))
		if done || !c.send(replies) || !c.send(events) {
			c.net.Close()
			return
		}
	}
}

func (c *Conn) send(b []byte) bool {
	_, err := c.net.Write(b)
	return len(b) == 0 || err == nil
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
	for len(c.replies) > mostReply && !c.closed {
		c.wake.Wait()
	}
	c.mu.Unlock()
}

// serve runs a connection until it ends.
func (c *Conn) serve() error {
	var writer sync.WaitGroup
	writer.Go(c.write)
	defer writer.Wait()
	defer c.end()
	c.reply(0, &of13.Hello{Bitmap: 1 << of13.Version})
	r := bufio.NewReaderSize(c.net, of13.MaxLen+1)
	if err := c.greet(r); err != nil {
		return err
	}
	c.hub.join(c)
	defer c.hub.leave(c)
	for {
		raw, err := c.next(r)
		if err != nil {
			return err
		}
		c.room()
		if !c.hub.deliver(Incoming{c, raw}) {
			return net.ErrClosed
		}
	}
}

// greet reads the other hello: the highest version that both speak must be 1.3.
func (c *Conn) greet(r *bufio.Reader) error {
	raw, err := c.read(r)
	if err != nil {
		return err
	}
	h, m, err := c.decoder.Decode(raw)
	hello, ok := m.(*of13.Hello)
	switch {
	case err != nil || !ok:
		c.refuse(raw, of13.BadRequestBadType)
		return fmt.Errorf("the first message is of type %d: %w", h.Type, of13.BadRequestBadType)
	case hello.Bitmap == 0 && h.Version >= of13.Version, hello.Bitmap&(1<<of13.Version) != 0:
		return nil
	}
	c.reply(h.XID, &of13.ErrorMessage{Kind: of13.HelloFailedIncompatible.Type(), Code: of13.HelloFailedIncompatible.Code(), Data: []byte("only OpenFlow 1.3 is spoken here")})
	return fmt.Errorf("it does not speak OpenFlow 1.3: %w", of13.HelloFailedIncompatible)
}

// next reads a message for the switch. Echoes are dealt with on the way.
func (c *Conn) next(r *bufio.Reader) ([]byte, error) {
	for {
		raw, err := c.read(r)
		if err != nil {
			return nil, err
		}
		switch h := of13.ReadHeader(raw); {
		case h.Version == of13.Version && h.Type == of13.TypeEchoRequest:
			c.reply(h.XID, &of13.Echo{Reply: true, Data: raw[of13.HeaderLen:]})
		case h.Version == of13.Version && h.Type == of13.TypeEchoReply:
		default:
			return raw, nil
		}
	}
}

// read reads one message. If none comes for a while it asks for an echo, and
// fails if none comes then either.
func (c *Conn) read(r *bufio.Reader) ([]byte, error) {
	c.net.SetReadDeadline(time.Now().Add(idle))
	_, err := r.Peek(1)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.reply(0, &of13.Echo{})
		c.net.SetReadDeadline(time.Now().Add(unanswered))
		_, err = r.Peek(1)
	}
	if err != nil {
		return nil, err
	}
	c.net.SetReadDeadline(time.Now().Add(unanswered))
	head, err := r.Peek(of13.HeaderLen)
	if err != nil {
		return nil, err
	}
	n := int(of13.ReadHeader(head).Length)
	if n < of13.HeaderLen {
		c.refuse(head, of13.BadRequestBadLen)
		return nil, fmt.Errorf("a message of %d bytes: %w", n, of13.BadRequestBadLen)
	}
	raw := c.hub.buffer(n)
	_, err = io.ReadFull(r, raw)
	return raw, err
}
