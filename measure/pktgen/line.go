package pktgen

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// Line sends single frames from one place and waits for them at another one.
type Line struct {
	to       Place
	from     Place
	next     hop
	size     int
	out, in  int
	received []byte
}

// OpenLine finds the way; frames have size bytes.
func OpenLine(from, to Place, size int) (*Line, error) {
	next, err := from.hopTo(to)
	if err != nil {
		return nil, err
	}
	l := &Line{from: from, to: to, next: next, size: size, received: make([]byte, 2048)}
	if l.out, err = packetSocket(from); err != nil {
		return nil, err
	}
	if l.in, err = packetSocket(to); err != nil {
		unix.Close(l.out)
		return nil, err
	}
	if err := l.listen(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Line) listen() error {
	link, err := l.to.Link()
	if err != nil {
		return err
	}
	protocol := binary.BigEndian.AppendUint16(nil, unix.ETH_P_IP)
	wait := unix.NsecToTimeval(int64(time.Second))
	if err := unix.SetsockoptTimeval(l.in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return err
	}
	return unix.Bind(l.in, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(protocol), Ifindex: link.Attrs().Index})
}

// Close ends it.
func (l *Line) Close() { unix.Close(l.out); unix.Close(l.in) }

// Frame is the one of a flow (Flow) to a port.
func (l *Line) Frame(flow, port int) []byte {
	p := l.to
	p.Addr = Flow(flow)
	return frame(l.from, p, l.next, l.size, firstPort, port)
}

// Send sends a frame.
func (l *Line) Send(frame []byte) error {
	_, err := unix.Write(l.out, frame)
	return err
}

// Travel is how long a frame of a flow is on its way. Others that come are passed
// over; one that does not come within a second is an error.
func (l *Line) Travel(flow int) (time.Duration, error) {
	f := l.Frame(flow, Discard)
	begin := time.Now()
	if err := l.Send(f); err != nil {
		return 0, err
	}
	for {
		var n int
		if err := again(func() (err error) { n, err = unix.Read(l.in, l.received); return err }); err != nil {
			return 0, err
		}
		if n >= headers && [4]byte(l.received[30:34]) == Flow(flow).As4() && binary.BigEndian.Uint16(l.received[36:]) == Discard {
			return time.Since(begin), nil
		}
	}
}

// OnProcessor runs f in a thread of its own on one processor, before all other
// processes where the machine lets it.
func OnProcessor(cpu int, f func() error) error {
	return pinned(cpu, func(chan struct{}) error { first(); return f() }).Wait()
}
