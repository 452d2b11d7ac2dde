// Package session carries the streams of one command, or one stream of bytes,
// over one HTTP/1.1 connection upgraded to "sublet-session".
//
//	client                                server
//	spec {argv, tty, rows, cols, term} -> start
//	stdin, resize, signal              ->
//	                                   <- credit, stdout, stderr
//	                                   <- exit | failure
//
// A frame is one byte of type, four bytes of length (big endian) and at most
// 64 KiB of payload. Standard input flows only against credit, so the server
// always reads and learns at once when the client is gone; the other streams
// rely on the connection's own flow control. Neither side trusts the other:
// every length is bounded before memory is taken for it.
package session

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// Protocol is the word in the Upgrade header.
const Protocol = "sublet-session"

type frameType byte

// Frame types. An empty stdin frame is the end of standard input.
const (
	frameSpec    frameType = 1 + iota // JSON of Spec
	frameStdin                        // bytes
	frameStdout                       // bytes
	frameStderr                       // bytes
	frameResize                       // rows, columns: two uint16
	frameSignal                       // one byte: the signal's number
	frameCredit                       // uint32: bytes of stdin consumed
	frameExit                         // uint32: exit code; the last frame
	frameFailure                      // text; the last frame
)

const (
	headerSize = 5
	maxPayload = 64 << 10
	// chunk is what is read from a stream at once; below maxPayload so that
	// two streams share a connection fairly.
	chunk = 32 << 10
	// stdinWindow bounds the standard input a server holds for one command.
	stdinWindow = 256 << 10
)

// framer reads and writes frames. One goroutine may read, any may write.
type framer struct {
	conn    net.Conn
	r       *bufio.Reader
	payload []byte

	mu sync.Mutex // of writes
}

func newFramer(conn net.Conn, r *bufio.Reader) *framer {
	return &framer{conn: conn, r: r}
}

// read returns the next frame; its payload is valid until the next read.
// io.EOF means the peer closed between frames.
func (f *framer) read() (frameType, []byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(f.r, header[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(header[1:])
	if size > maxPayload {
		return 0, nil, fmt.Errorf("read frame: %d bytes, at most %d allowed", size, maxPayload)
	}
	if f.payload == nil {
		f.payload = make([]byte, maxPayload)
	}
	payload := f.payload[:size]
	if _, err := io.ReadFull(f.r, payload); err != nil {
		return 0, nil, fmt.Errorf("read frame: %w", err)
	}
	return frameType(header[0]), payload, nil
}

// write sends one frame; payload is at most maxPayload long.
func (f *framer) write(t frameType, payload []byte) error {
	var header [headerSize]byte
	header[0] = byte(t)
	binary.BigEndian.PutUint32(header[1:], uint32(len(payload)))
	f.mu.Lock()
	defer f.mu.Unlock()
	buffers := net.Buffers{header[:], payload}
	_, err := buffers.WriteTo(f.conn)
	return err
}

func (f *framer) writeUint32(t frameType, n uint32) error {
	return f.write(t, binary.BigEndian.AppendUint32(nil, n))
}

// parseUint32 reads a payload of exactly four bytes.
func parseUint32(t frameType, payload []byte) (uint32, error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("read frame of type %d: %d bytes, want 4", t, len(payload))
	}
	return binary.BigEndian.Uint32(payload), nil
}

func unexpected(t frameType) error {
	return fmt.Errorf("read frame: unexpected type %d", t)
}
