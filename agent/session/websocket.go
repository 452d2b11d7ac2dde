package session

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// Subprotocol is the name of the protocol over WebSocket (RFC 6455). A binary
// message is a frame without its length: one byte of type, then the payload. A
// text message is a spec. Beyond that it is the same protocol.
const Subprotocol = "sublet.session"

// acceptSocket answers a WebSocket's handshake. Of which site a page is was
// looked at by the server: only it reaches an agent.
func acceptSocket(w http.ResponseWriter, r *http.Request) (*framer, error) {
	upgrader := websocket.Upgrader{
		Subprotocols: []string{Subprotocol},
		CheckOrigin:  func(*http.Request) bool { return true },
	}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil, fmt.Errorf("accept session: %w", err) // answered
	}
	socket.SetReadLimit(1 + maxPayload)
	c := &socketConn{Conn: socket}
	return newFramer(c, bufio.NewReaderSize(c, chunk)), nil
}

// socketConn is a WebSocket as a connection that carries frames. As of a
// framer, one goroutine may read and one at a time write.
type socketConn struct {
	*websocket.Conn
	in  []byte // of a message that was received, as a frame
	out []byte // a frame that is being written
	why string // what was in the last frame, for the close message
	bad bool   // it was a failure
}

// Read gives frames; io.EOF when the other side has closed.
func (c *socketConn) Read(p []byte) (int, error) {
	for len(c.in) == 0 {
		kind, message, err := c.ReadMessage()
		if closed := new(websocket.CloseError); errors.As(err, &closed) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		if kind == websocket.TextMessage {
			message = append([]byte{byte(frameSpec)}, message...)
		}
		if len(message) == 0 {
			return 0, errors.New("read frame: a message without a type")
		}
		c.in = binary.BigEndian.AppendUint32(append(c.in[:0], message[0]), uint32(len(message)-1))
		c.in = append(c.in, message[1:]...)
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	return n, nil
}

// Write takes frames in pieces and sends each as a message.
func (c *socketConn) Write(p []byte) (int, error) {
	c.out = append(c.out, p...)
	for len(c.out) >= headerSize {
		end := headerSize + int(binary.BigEndian.Uint32(c.out[1:]))
		if len(c.out) < end {
			break
		}
		message := c.out[headerSize-1 : end]
		message[0] = c.out[0]
		c.note(message)
		if err := c.WriteMessage(websocket.BinaryMessage, message); err != nil {
			return 0, err
		}
		c.out = append(c.out[:0], c.out[end:]...)
	}
	return len(p), nil
}

// note remembers how the session ended.
func (c *socketConn) note(message []byte) {
	switch payload := message[1:]; frameType(message[0]) {
	case frameExit:
		c.why = fmt.Sprintf("exit %d", binary.BigEndian.Uint32(payload))
	case frameFailure:
		c.why, c.bad = string(payload), true
	}
}

// CloseWrite says that no message follows, and how the session ended, as far as a
// close message has room for it (RFC 6455, section 5.5).
func (c *socketConn) CloseWrite() error {
	const room = 123
	code := websocket.CloseNormalClosure
	if c.bad {
		code = websocket.CloseInternalServerErr
	}
	why := strings.ToValidUTF8(c.why[:min(len(c.why), room)], "")
	return c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(time.Second))
}

// SetDeadline bounds reading and writing.
func (c *socketConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
