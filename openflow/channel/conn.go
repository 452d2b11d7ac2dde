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

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

const (
	idle       = 5 * time.Second  // after which an echo is asked for
	unanswered = 10 * time.Second // after which a connection counts as dead
)

// Conn is a connection to a controller.
type Conn struct {
	Dropped atomic.Uint64 // packet-ins for which there was no room
	held    atomic.Int64  // bytes of replies that wait for it, as Hub.held has them

	target  Target    // by which it came
	address string    // of the other end
	since   time.Time // when it stood

	net     net.Conn
	hub     *Hub
	wire    wire
	role    uint32
	async   of13.Async
	manages bool // it is no controller: see Manage

	auxiliary    uint8  // its number; 0: it is a main connection
	main         *Conn  // of an auxiliary one
	beside       int    // auxiliary connections of a main one, of which Hub.mu is the lock
	greeted      func() // called when it stands; may be nil
	parts        parts
	bundles      map[uint32]*bundle
	bundledBytes int

	inbox chan []byte // messages that wait for the switch
	next  []byte      // the first of them, if it was looked at
	first []byte      // that came instead of a greeting, over UDP

	*direct // nil: goroutines of its own read and write it

	mu      sync.Mutex
	wake    sync.Cond
	out     lanes
	closed  bool
	handed  bool  // its writer is to end
	stuffed bool  // no message is taken until it has read; of one that is not direct
	why     error // it was dropped for
	ending  bool  // by cut
}

func newConn(n net.Conn, h *Hub) *Conn {
	c := &Conn{net: n, hub: h, inbox: make(chan []byte, inbox), role: of13.RoleEqual, wire: wire{version: of13.Version}, async: of13.Async{
		Kind: of13.TypeGetAsyncReply, PacketIn: [2]uint32{3, 0}, PortStatus: [2]uint32{7, 7}, FlowRemove: [2]uint32{15, 0},
	}}
	c.wake.L = &c.mu
	return c
}

// refuse tells of a message that was refused, with its first 64 bytes.
func (c *Conn) refuse(raw []byte, err error) {
	var e of13.Error
	if !errors.As(err, &e) {
		e = of13.BadRequestEPerm
	}
	c.reply(of13.ReadHeader(raw).XID, e.Refusal(raw))
}

// serve runs a connection until it ends.
func (c *Conn) serve() error {
	var writer sync.WaitGroup
	writer.Go(c.write)
	defer writer.Wait()
	defer c.end()
	c.reply(0, &of13.Hello{Bitmap: of10.Versions})
	address := c.net.RemoteAddr().String() // before the descriptor goes to the driver
	r := bufio.NewReaderSize(c.net, of13.MaxLen+1)
	if err := c.greet(r); err != nil {
		return err
	}
	if c.hub.Watch != nil {
		c.hand(r, &writer)
		defer c.written()
	}
	c.since, c.address = time.Now(), address
	c.hub.join(c)
	if c.greeted != nil {
		c.greeted()
	}
	defer c.hub.leave(c)
	if c.direct != nil {
		return c.watched()
	}
	if c.first != nil && !c.hub.deliver(c, c.first) {
		return net.ErrClosed
	}
	for {
		raw, err := c.message(r)
		if err != nil {
			return err
		}
		c.room()
		if !c.hub.deliver(c, raw) {
			return net.ErrClosed
		}
	}
}

// greet reads the other hello, which settles the version.
func (c *Conn) greet(r *bufio.Reader) error {
	raw, err := c.read(r)
	if err != nil {
		return err
	}
	if c.unreliable() {
		c.first, err = c.greetAgain(raw)
		return err
	}
	version, ok, err := of10.ReadHello(raw, &c.wire.decoder)
	switch {
	case err != nil && raw[1] == of13.TypeHello:
		c.refuse(raw, of13.BadRequestBadLen)
		return fmt.Errorf("its hello is malformed: %w", err)
	case err != nil:
		c.refuse(raw, of13.BadRequestBadType)
		return fmt.Errorf("the first message is of type %d: %w", raw[1], of13.BadRequestBadType)
	case ok && version >= c.hub.Least:
		c.wire.version = version
		return nil
	}
	c.reply(of13.ReadHeader(raw).XID, &of13.ErrorMessage{Kind: of13.HelloFailedIncompatible.Type(), Code: of13.HelloFailedIncompatible.Code(), Data: []byte("only OpenFlow 1.0 and 1.3 are spoken here")})
	return fmt.Errorf("it speaks neither OpenFlow 1.3 nor 1.0: %w", of13.HelloFailedIncompatible)
}

// message reads a message for the switch. Echoes are dealt with on the way.
func (c *Conn) message(r *bufio.Reader) ([]byte, error) {
	for {
		raw, err := c.read(r)
		if err != nil {
			return nil, err
		}
		switch h := of13.ReadHeader(raw); {
		case h.Version == c.wire.version && h.Type == of13.TypeEchoRequest:
			c.reply(h.XID, &of13.Echo{Reply: true, Data: raw[of13.HeaderLen:]})
		case h.Version == c.wire.version && h.Type == of13.TypeEchoReply:
		default:
			return raw, nil
		}
	}
}

// read reads one message. If none comes for a while it asks for an echo, and
// fails if none comes then either.
func (c *Conn) read(r *bufio.Reader) ([]byte, error) {
	if raw := c.buffered(r); raw != nil {
		return raw, nil
	}
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

// buffered is a message that has come with others, for which no time has to be
// bounded; nil: none has come whole.
func (c *Conn) buffered(r *bufio.Reader) []byte {
	if r.Buffered() < of13.HeaderLen {
		return nil
	}
	head, _ := r.Peek(of13.HeaderLen)
	n := int(of13.ReadHeader(head).Length)
	if n < of13.HeaderLen || n > r.Buffered() {
		return nil
	}
	raw := c.hub.buffer(n)
	_, _ = io.ReadFull(r, raw)
	return raw
}
