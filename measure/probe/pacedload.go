package probe

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"sublet/measure"
)

// solUDP is the level of UDP's socket options, which x/sys does not name.
const solUDP = unix.IPPROTO_UDP

// lateGrace is how late a burst may be without a hole in the load: a shaper's
// queue under overload holds as much.
const lateGrace = 5 * time.Millisecond

// pacedLoad sends full-sized datagrams at a frame rate, numbered from 0, and
// returns how many the socket took. Segmentation is left to the kernel
// (UDP_SEGMENT), so that gigabits cost little processor time.
type pacedLoad struct {
	fd       int
	header   header
	payload  int // of one datagram
	segments int // in one burst
	buffer   []byte
	frame    bool // that is what buffer has
	link     int  // bytes in front of its IP header
	pacer    *pacer
	late     time.Duration // slept too long, in all: kept off the processor
}

// newPacedLoad prepares to send by a connected socket.
func newPacedLoad(fd int, run uint64, epoch uint32, f flow) (*pacedLoad, error) {
	payload := measure.UDPPayload(f.MTU)
	if payload < headerSize || f.Rate <= 0 {
		return nil, fmt.Errorf("send UDP on %s: cannot send at %s with an MTU of %d", f.Interface, f.Rate, f.MTU)
	}
	frame := payload + measure.UDPOverhead
	segments := burst(f.Rate, frame, payload)
	if f.Frames != 0 || unix.SetsockoptInt(fd, solUDP, unix.UDP_SEGMENT, payload) != nil {
		segments = 1 // frames, and a kernel without it, go one by one
	}
	return &pacedLoad{
		fd: fd, header: header{run: run, flow: uint32(f.ID), epoch: epoch}, payload: payload, segments: segments,
		buffer: make([]byte, segments*payload),
		pacer:  newPacer(f.Rate, 8*segments*frame, f.Lag, monotonic()),
	}, nil
}

// run sends for a length of time; header.seq is then the number of datagrams
// sent.
func (b *pacedLoad) run(ctx context.Context, length time.Duration) error {
	precise()
	now := monotonic()
	for end := now + int64(length); ctx.Err() == nil; now = monotonic() {
		due := b.pacer.next(now)
		if due >= end {
			return nil
		}
		if due > now {
			sleepUntil(due)
			b.late += max(0, time.Duration(monotonic()-due)-lateGrace)
		}
		if err := b.send(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// frames makes it send frames such as one, with a header of the link in front.
func (b *pacedLoad) frames(link, one []byte) {
	b.buffer, b.frame, b.link = append(link, one...), true, len(link)
}

// fill numbers what is sent next, and returns the header of what comes then.
func (b *pacedLoad) fill() header {
	h := b.header
	if b.frame {
		packet := b.buffer[b.link:]
		h.put(packet[frameHeader(packet):])
		spoil(packet)
		h.seq++
		return h
	}
	for at := 0; at < len(b.buffer); at += b.payload {
		h.put(b.buffer[at:])
		h.seq++
	}
	return h
}

// send writes one burst. What the socket did not take was not sent: its
// numbers are used again.
func (b *pacedLoad) send() error {
	h := b.fill()
	_, err := unix.Write(b.fd, b.buffer)
	switch {
	case err == nil:
		b.header = h
	case err == unix.EIO && b.segments > 1: // the device cannot checksum segments
		b.pacer.interval /= float64(b.segments)
		b.segments, b.buffer = 1, b.buffer[:b.payload]
	case !transient(err):
		return fmt.Errorf("send UDP burst of %d datagrams: %w", b.segments, err)
	}
	return nil
}
