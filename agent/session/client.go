package session

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
)

// client is the near end of a session that runs a command.
type client struct {
	*framer
	credit *credit
	stop   func() bool
}

// open asks for a command. The connection is the session's from then on.
func open(ctx context.Context, conn net.Conn, path string, spec Spec) (*client, error) {
	f, stop, err := upgrade(ctx, conn, http.MethodPost, path)
	if err != nil {
		return nil, err
	}
	c := &client{framer: f, credit: newCredit(), stop: stop}
	text, err := json.Marshal(spec)
	if err == nil && len(text) > maxPayload {
		err = fmt.Errorf("start %s: the command is %d bytes long, at most %d go", spec.Argv[0], len(text), maxPayload)
	}
	if err == nil {
		err = f.write(frameSpec, text)
	}
	if err != nil {
		c.close()
		return nil, cause(ctx, err)
	}
	return c, nil
}

func (c *client) close() {
	c.stop()
	c.credit.close()
	c.conn.Close()
}

// receive hands out the output until the command has ended; a connection that
// ends before that is an error.
func (c *client) receive(stdout, stderr io.Writer) (exit int, err error) {
	for {
		t, payload, err := c.read()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return -1, fmt.Errorf("session broke off before the command ended: %w", err)
		}
		switch t {
		case frameStdout:
			_, err = stdout.Write(payload)
		case frameStderr:
			_, err = stderr.Write(payload)
		case frameExit:
			code, err := parseUint32(t, payload)
			return int(code), err
		default:
			err = c.control(t, payload)
		}
		if err != nil {
			return -1, err
		}
	}
}

func (c *client) control(t frameType, payload []byte) error {
	switch t {
	case frameCredit:
		n, err := parseUint32(t, payload)
		if err != nil {
			return err
		}
		return c.credit.give(n)
	case frameFailure:
		return &Failure{Message: string(payload[:min(len(payload), maxMessage)])}
	}
	return unexpected(t)
}

// send writes standard input as far as there is credit, waiting for more.
func (c *client) send(data []byte) (sent int, err error) {
	for sent < len(data) {
		n := c.credit.take(min(len(data)-sent, chunk))
		if n == 0 {
			return sent, io.ErrClosedPipe
		}
		if err := c.write(frameStdin, data[sent:sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

func (c *client) endInput() error { return c.write(frameStdin, nil) }

func (c *client) signal(s syscall.Signal) error { return c.write(frameSignal, []byte{byte(s)}) }

func (c *client) resize(rows, cols int) error {
	payload := binary.BigEndian.AppendUint16(nil, uint16(rows))
	return c.write(frameResize, binary.BigEndian.AppendUint16(payload, uint16(cols)))
}
