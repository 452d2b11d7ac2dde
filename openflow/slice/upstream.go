package slice

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"sublet/openflow/of13"
)

const (
	quiet    = 5 * time.Second  // after which an echo is asked for
	dead     = 15 * time.Second // after which a switch that says nothing is given up
	mostSeen = 4096             // packet-ins that wait for their controllers; further ones are dropped
)

// ground is the switch that slices are of. One question is open at a time.
type ground interface {
	change(list ...of13.Message) error // until the switch has done them
	ask(m of13.Message) (parts []of13.Message, err error)
	post(m of13.Message) error // without waiting
	atomic(run func() error) error
}

// askMultipart is ask for what has several parts.
func askMultipart(g ground, m *of13.MultipartRequest) (parts []*of13.MultipartReply, err error) {
	list, err := g.ask(m)
	for _, m := range list {
		r, is := m.(*of13.MultipartReply)
		if !is {
			return nil, fmt.Errorf("it answers with a message of type %d", m.Type())
		}
		parts = append(parts, r)
	}
	return parts, err
}

// upstream is the connection to the switch.
type upstream struct {
	conn     net.Conn
	xid      uint32
	wake     func()
	answered chan struct{} // something came to answers, or the connection ended

	writing sync.Mutex

	mu      sync.Mutex
	answers []heard
	events  []of13.Message // that nobody asked for
	packets int            // packet-ins among them
	ended   error
}

// heard is a message that answers.
type heard struct {
	xid uint32
	m   of13.Message
}

func newUpstream(conn net.Conn, wake func()) *upstream {
	return &upstream{conn: conn, wake: wake, answered: make(chan struct{}, 1)}
}

// read reads until the connection ends.
func (u *upstream) read() {
	r := bufio.NewReaderSize(u.conn, of13.MaxLen+1)
	for {
		err := u.one(r)
		if err == nil {
			continue
		}
		u.mu.Lock()
		u.ended = err
		u.mu.Unlock()
		u.tell()
		u.wake()
		return
	}
}

// one reads a message, which stays valid.
func (u *upstream) one(r *bufio.Reader) error {
	u.conn.SetReadDeadline(time.Now().Add(dead))
	head, err := r.Peek(of13.HeaderLen)
	if err != nil {
		return err
	}
	raw := make([]byte, max(int(of13.ReadHeader(head).Length), of13.HeaderLen))
	if _, err := io.ReadFull(r, raw); err != nil {
		return err
	}
	h, m, err := new(of13.Decoder).Decode(raw)
	if err != nil && of13.ReadHeader(raw).Version == of13.Version && of13.ReadHeader(raw).Type == of13.TypePacketIn {
		return nil // one with fields of the switch's maker, such as those of its tunnels: no packet ends the slices
	}
	if err != nil {
		return fmt.Errorf("it sends a message of type %d that cannot be read: %w", h.Type, err)
	}
	switch m := m.(type) {
	case *of13.Echo:
		if !m.Reply {
			return u.send(h.XID, &of13.Echo{Reply: true, Data: m.Data})
		}
	case *of13.PacketIn, *of13.FlowRemoved, *of13.PortStatus:
		u.happened(m)
	default:
		u.mu.Lock()
		u.answers = append(u.answers, heard{h.XID, m})
		u.mu.Unlock()
		u.tell()
	}
	return nil
}

// tell wakes whoever waits for an answer.
func (u *upstream) tell() {
	select {
	case u.answered <- struct{}{}:
	default:
	}
}

// happened keeps what nobody asked for until it is taken.
func (u *upstream) happened(m of13.Message) {
	u.mu.Lock()
	if _, is := m.(*of13.PacketIn); is {
		if u.packets++; u.packets > mostSeen {
			u.packets--
			u.mu.Unlock()
			return
		}
	}
	u.events = append(u.events, m)
	u.mu.Unlock()
	u.wake()
}

// take gives what happened, and why the connection ended. No question is open then, so
// what answers none, such as the refusal of a packet-out, is forgotten.
func (u *upstream) take() (events []of13.Message, ended error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answers = nil
	events, u.events, u.packets = u.events, nil, 0
	return events, u.ended
}

func (u *upstream) send(xid uint32, m of13.Message) error {
	b, err := of13.Append(nil, xid, m)
	if err != nil {
		return err
	}
	u.writing.Lock()
	defer u.writing.Unlock()
	u.conn.SetWriteDeadline(time.Now().Add(dead))
	_, err = u.conn.Write(b)
	return err
}

// errGone is of a switch that answers no more.
var errGone = errors.New("the switch does not answer")

// next is the next answer to a question not older than first.
func (u *upstream) next(first uint32) (heard, error) {
	timeout := time.NewTimer(dead)
	defer timeout.Stop()
	for {
		switch h, ok, ended := u.answer(first); {
		case ok:
			return h, nil
		case ended:
			return h, errGone
		}
		select {
		case <-u.answered:
		case <-timeout.C:
			u.conn.Close()
			return heard{}, errGone
		}
	}
}

// answer takes the first one not older than a question.
func (u *upstream) answer(first uint32) (h heard, ok, ended bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.answers) > 0 && !ok {
		h, u.answers = u.answers[0], u.answers[1:]
		ok = h.xid-first < 1<<31
	}
	return h, ok, u.ended != nil
}

// change has the switch do messages, and waits until it has. The error is that of the
// first one that it refuses.
func (u *upstream) change(list ...of13.Message) (refused error) {
	first := u.xid + 1
	for _, m := range append(list, &of13.Plain{Kind: of13.TypeBarrierRequest}) {
		u.xid++
		if err := u.send(u.xid, m); err != nil {
			return err
		}
	}
	for {
		h, err := u.next(first)
		if err != nil {
			return err
		}
		if e, is := h.m.(*of13.ErrorMessage); is && refused == nil {
			refused = of13.Error(uint32(e.Kind)<<16 | uint32(e.Code))
		}
		if h.xid == u.xid { // of the barrier, or the refusal of it
			return refused
		}
	}
}

// ask gives the parts of an answer.
func (u *upstream) ask(m of13.Message) (parts []of13.Message, err error) {
	u.xid++
	if err := u.send(u.xid, m); err != nil {
		return nil, err
	}
	for {
		h, err := u.next(u.xid)
		if err != nil {
			return nil, err
		}
		if e, is := h.m.(*of13.ErrorMessage); is {
			return nil, of13.Error(uint32(e.Kind)<<16 | uint32(e.Code))
		}
		parts = append(parts, h.m)
		if r, long := h.m.(*of13.MultipartReply); !long || r.Flags&of13.MultipartMore == 0 {
			return parts, nil
		}
	}
}

// post sends a message whose end nobody waits for.
func (u *upstream) post(m of13.Message) error {
	u.xid++
	return u.send(u.xid, m)
}

// atomic refuses: there are no bundles at a switch that is elsewhere.
func (u *upstream) atomic(func() error) error { return of13.BundleFailedMsgUnsup }

// greet settles the version.
func (u *upstream) greet() error {
	if err := u.send(0, &of13.Hello{Bitmap: 1 << of13.Version}); err != nil {
		return err
	}
	h, err := u.next(0)
	if err != nil {
		return err
	}
	if _, is := h.m.(*of13.Hello); !is {
		return fmt.Errorf("it greets with a message of type %d: it speaks no OpenFlow 1.3", h.m.Type())
	}
	return nil
}
