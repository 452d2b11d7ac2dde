package channel

import (
	"bufio"
	"fmt"
	"io"
	"net"

	"sublet/openflow/of13"
)

// mostAnswer bounds the answer to one question, in bytes: what is in it is up to
// the switch's controllers.
const mostAnswer = 16 << 20

// Client asks a switch at its socket for management: see Hub.Manage.
type Client struct {
	conn net.Conn
	r    *bufio.Reader
	xid  uint32
	got  int // bytes, since the last question
}

// NewClient greets the switch. The caller sets deadlines on conn and closes it.
func NewClient(conn net.Conn) (*Client, error) {
	c := &Client{conn: conn, r: bufio.NewReaderSize(conn, of13.MaxLen+1)}
	if err := c.write(&of13.Hello{Bitmap: 1 << of13.Version}); err != nil {
		return nil, err
	}
	_, m, err := c.read()
	if _, ok := m.(*of13.Hello); err == nil && !ok {
		err = fmt.Errorf("the switch greets with a message of type %d", m.Type())
	}
	return c, err
}

// Ask sends a request and gives its reply, of several parts if it is long. What
// the switch refuses is an error, and an answer of more than 16 MiB.
func (c *Client) Ask(request of13.Message) (parts []of13.Message, err error) {
	return parts, c.Each(request, func(m of13.Message) error {
		if parts = append(parts, m); c.got > mostAnswer {
			return fmt.Errorf("its answer is longer than %d MiB", mostAnswer>>20)
		}
		return nil
	})
}

// Each sends a request and hands on the parts of its reply as they come, until one is
// not taken. What the switch refuses is an error.
func (c *Client) Each(request of13.Message, take func(part of13.Message) error) error {
	if err := c.write(request); err != nil {
		return err
	}
	for c.got = 0; ; {
		xid, m, err := c.read()
		if err != nil {
			return err
		}
		if xid != c.xid {
			continue // an echo request, or something that nobody asked for
		}
		if e, refused := m.(*of13.ErrorMessage); refused {
			return fmt.Errorf("the switch refuses: %w", of13.Error(uint32(e.Kind)<<16|uint32(e.Code)))
		}
		if err := take(m); err != nil {
			return err
		}
		if r, long := m.(*of13.MultipartReply); !long || r.Flags&of13.MultipartMore == 0 {
			return nil
		}
	}
}

// Got is how many bytes have come since the last question.
func (c *Client) Got() int { return c.got }

func (c *Client) write(m of13.Message) error {
	c.xid++
	b, err := of13.Append(nil, c.xid, m)
	if err == nil {
		_, err = c.conn.Write(b)
	}
	return err
}

// read gives a message that stays valid.
func (c *Client) read() (xid uint32, m of13.Message, err error) {
	head, err := c.r.Peek(of13.HeaderLen)
	if err != nil {
		return 0, nil, err
	}
	raw := make([]byte, max(int(of13.ReadHeader(head).Length), of13.HeaderLen))
	if _, err := io.ReadFull(c.r, raw); err != nil {
		return 0, nil, err
	}
	c.got += len(raw)
	h, m, err := new(of13.Decoder).Decode(raw)
	return h.XID, m, err
}
