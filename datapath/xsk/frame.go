package xsk

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// The virtio network header of 10 bytes (VIRTIO 1.2, 5.1.6, the legacy form), which
// says of frames what offload leaves undone.
const (
	HeaderLen = 10

	flagNeedsCsum = 1
	gsoNone       = 0
	gsoTCPv4      = 1
	gsoTCPv6      = 4
	gsoUDP        = 5 // of datagrams (USO), not of fragments
	gsoECN        = 0x80
)

// ErrBusy says that there is no room for a frame.
var ErrBusy = errors.New("device busy")

// Describe writes the virtio header of a frame that a socket gave.
func Describe(header, b []byte) {
	clear(header)
	if start, offset, is := unfinished(b); is {
		header[0] = flagNeedsCsum
		binary.NativeEndian.PutUint16(header[6:], uint16(start))
		binary.NativeEndian.PutUint16(header[8:], uint16(offset))
	}
}

// Put puts a frame behind those to send, finished by its virtio header: in parts
// if offload left it whole.
func (s *Socket) Put(header, b []byte) error {
	if header[1]&^gsoECN != gsoNone {
		return s.parts(header, b)
	}
	n := len(b)
	switch {
	case n > s.chunk:
		return unix.EMSGSIZE
	case s.vacant() == 0:
		return ErrBusy
	}
	start, offset := int(binary.NativeEndian.Uint16(header[6:])), int(binary.NativeEndian.Uint16(header[8:]))
	needs := header[0]&flagNeedsCsum != 0
	if needs && start+offset+2 > n {
		return unix.EINVAL
	}
	at := s.put(n)
	copy(at, b)
	if needs {
		finish(at, start, offset)
	}
	return nil
}

func (s *Socket) parts(header, b []byte) error {
	c, ok := cut(header, b)
	switch {
	case !ok:
		return unix.EINVAL
	case c.size() > s.chunk:
		return unix.EMSGSIZE
	case s.vacant() < c.frames():
		if s.Send(); s.vacant() < c.frames() {
			return ErrBusy
		}
	}
	for n := c.next(); n > 0; n = c.next() {
		c.write(s.put(n))
	}
	return nil
}
