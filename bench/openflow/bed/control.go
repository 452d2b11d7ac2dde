package bed

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/report"
)

// settling is what Open vSwitch's cache takes behind its tables, with a margin.
const settling = time.Second

// patience is how long a switch may take to listen, and to answer.
const patience = 60 * time.Second

// Control is a controller's connection to a switch.
type Control struct {
	conn net.Conn
	r    *bufio.Reader
	out  []byte
	raw  []byte
	xid  uint32
}

// Dial connects to a switch as a further controller.
func (s *Switch) Dial(ctx context.Context) (*Control, error) {
	ns, err := kernel.OpenNamespace(s.bed.host.Path(s.Key))
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	c := &Control{}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err = kernel.In(ns, func() (err error) {
			c.conn, err = new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:6654")
			return err
		})
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if err := c.conn.SetDeadline(time.Now().Add(time.Hour)); err != nil {
		return nil, err
	}
	c.r, c.raw = bufio.NewReaderSize(c.conn, 1<<17), make([]byte, of13.MaxLen+1)
	if err := c.send(&of13.Hello{Bitmap: 1 << of13.Version}); err != nil {
		return nil, err
	}
	return c, c.Do() // the first message of a switch is its greeting
}

func (s *Switch) connect(ctx context.Context, pid int) (err error) {
	if s.Control, err = s.Dial(ctx); err == nil {
		s.bed.later(func() { s.Control.Close() })
	}
	for i := range s.Stations {
		s.Stations[i].Processes = []int{pid}
	}
	return err
}

// Close ends it.
func (c *Control) Close() { c.conn.Close() }

// send writes messages at once.
func (c *Control) send(list ...of13.Message) (err error) {
	if c.out, err = c.encode(c.out[:0], list...); err != nil {
		return err
	}
	_, err = c.conn.Write(c.out)
	return err
}

func (c *Control) encode(b []byte, list ...of13.Message) (_ []byte, err error) {
	for _, m := range list {
		c.xid++
		if b, err = of13.Append(b, c.xid, m); err != nil {
			return nil, err
		}
	}
	return b, nil
}

var barrier = &of13.Plain{Kind: of13.TypeBarrierRequest}

// Ready is messages and a barrier as they are sent, so that their making is not
// measured.
func (c *Control) Ready(list ...of13.Message) ([]byte, error) {
	return c.encode(nil, append(slices.Clip(list), barrier)...)
}

// next reads a message without decoding it.
func (c *Control) next() (h of13.Header, m []byte, err error) {
	head, err := c.r.Peek(of13.HeaderLen)
	if err != nil {
		return h, nil, err
	}
	h = of13.ReadHeader(head)
	_, err = io.ReadFull(c.r, c.raw[:h.Length])
	if err == nil && h.Type == of13.TypeError {
		err = fmt.Errorf("the switch refuses: % x", c.raw[:h.Length])
	}
	return h, c.raw[:h.Length], err
}

// Ask sends a request and gives its reply, undecoded, one part after another.
// Decoding would measure this program.
func (c *Control) Ask(m of13.Message, part func([]byte)) error {
	if err := c.send(m); err != nil {
		return err
	}
	for {
		h, m, err := c.next()
		if err != nil {
			return err
		}
		if h.XID != c.xid || h.Type == of13.TypeEchoRequest {
			continue
		}
		if part != nil {
			part(m)
		}
		if h.Type != of13.TypeMultipartReply || binary.BigEndian.Uint16(m[10:])&of13.MultipartMore == 0 {
			return nil
		}
	}
}

// Do sends messages and a barrier, and waits for the barrier's reply.
func (c *Control) Do(list ...of13.Message) error {
	b, err := c.Ready(list...)
	if err != nil {
		return err
	}
	return c.DoReady(b)
}

// DoReady is Do for what Ready has made.
func (c *Control) DoReady(b []byte) error {
	if _, err := c.conn.Write(b); err != nil {
		return err
	}
	for {
		if h, _, err := c.next(); err != nil || h.Type == of13.TypeBarrierReply {
			return err
		}
	}
}

// Entry is an entry of table 0.
func Entry(priority uint16, match []of13.Field, actions ...of13.Action) *of13.FlowMod {
	return &of13.FlowMod{
		Priority: priority, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Match: of13.Match{Fields: match},
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: actions}},
	}
}

// Clear deletes all entries.
func (c *Control) Clear() error {
	return c.Do(&of13.FlowMod{Command: of13.FlowDelete, Table: of13.TableAll, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny})
}

// Renew connects anew: nobody answers echoes while something else is measured.
func (s *Switch) Renew(ctx context.Context) error {
	c, err := s.Dial(ctx)
	if err != nil {
		return err
	}
	s.Control.Close()
	s.Control = c
	return nil
}

// Replace has a switch have these entries and no others, by a new connection.
func (s *Switch) Replace(ctx context.Context, entries []of13.Message) error {
	if err := s.Renew(ctx); err != nil {
		return err
	}
	c := s.Control
	if err := errors.Join(c.Clear(), c.Do(entries...)); err != nil {
		return err
	}
	if s.Kind.Theirs() { // its cache follows behind the barrier's reply
		time.Sleep(settling)
	}
	n, err := c.Count()
	if err == nil && n != len(entries) {
		err = fmt.Errorf("has %d entries of %d", n, len(entries))
	}
	return err
}

// flowsAt is where the number of entries is in a reply about all of them: header,
// kind of multipart, packets, bytes.
const flowsAt = 8 + 8 + 16

// Count is how many entries there are in table 0.
func (c *Control) Count() (n int, err error) {
	err = c.Ask(&of13.MultipartRequest{Kind: of13.MultipartAggregate, Flow: of13.FlowRequest{Table: 0, OutPort: of13.PortAny, OutGroup: of13.GroupAny}}, func(m []byte) {
		n = int(binary.BigEndian.Uint32(m[flowsAt:]))
	})
	return n, err
}

// Entries asks for all entries and says how many came.
func (c *Control) Entries() (n int, err error) {
	all := &of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}}
	err = c.Ask(all, func(m []byte) {
		for m = m[16:]; len(m) >= 2; n++ {
			m = m[binary.BigEndian.Uint16(m):]
		}
	})
	return n, err
}

// Stages asks one of Sublet's switches where the time of its thread has gone.
func (c *Control) Stages() (t report.StageTimes, err error) {
	var status report.OpenFlowStatus
	ask := &of13.MultipartRequest{Kind: of13.MultipartExperimenter, Experimenter: channel.Experimenter, ExpType: channel.KindStatus}
	wrong := c.Ask(ask, func(m []byte) { err = json.Unmarshal(m[statusAt:], &status) })
	return status.Stages, errors.Join(err, wrong)
}

// statusAt is where the text of a status is in a reply: header, kind of multipart,
// experimenter and type.
const statusAt = 8 + 8 + 8

// Answer sends what the switch asks about by an action, until the connection ends.
func (c *Control) Answer(decide func() of13.Action) error {
	d := new(of13.Decoder)
	for {
		_, m, err := c.next()
		if err != nil {
			return err
		}
		h, message, err := d.Decode(m)
		if err != nil {
			return err
		}
		var answer of13.Message
		switch in := message.(type) {
		case *of13.PacketIn:
			answer = &of13.PacketOut{Buffer: of13.NoBuffer, InPort: of13.PortController, Actions: []of13.Action{decide()}, Data: in.Data}
		case *of13.Echo:
			answer = &of13.Echo{Reply: true, Data: in.Data}
		default:
			continue
		}
		if c.out, err = of13.Append(c.out[:0], h.XID, answer); err != nil {
			return err
		}
		if _, err := c.conn.Write(c.out); err != nil {
			return err
		}
	}
}

// Time is the processor time that the switch's processes have used.
func (s *Switch) Time() (total time.Duration) {
	for _, pid := range s.Stations[0].Processes {
		var t unix.Timespec
		if unix.ClockGettime(int32(^pid<<3|2), &t) == nil { // of a process, as scheduled (linux/posix-timers.h)
			total += time.Duration(t.Nano())
		}
	}
	return total
}
