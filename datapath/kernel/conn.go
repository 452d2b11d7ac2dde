package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Conn is a route netlink socket in one network namespace. The kernel answers
// within the call, so reads do not wait. It is safe for concurrent use.
type Conn struct {
	// Foreign says that the namespace is a tenant's, who can change it all the
	// time: a dump that they never let finish is taken as it was read last, so
	// that nobody else waits for them.
	Foreign bool

	mu  sync.Mutex
	fd  int
	seq uint32
}

// receiveSize holds the largest part of a dump the kernel sends at once.
const receiveSize = 64 << 10

var receiveBuffers = sync.Pool{New: func() any { b := make([]byte, receiveSize); return &b }}

// Dial opens a socket in the network namespace of the calling thread.
func Dial() (*Conn, error) { return dial(unix.NETLINK_ROUTE) }

func dial(protocol int) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	// Both options only improve messages and filters; old kernels lack them.
	unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<20)
	return &Conn{fd: fd}, nil
}

// Close closes the socket.
func (c *Conn) Close() error { return unix.Close(c.fd) }

// Do sends requests one by one until one fails, and waits for each
// acknowledgement.
func (c *Conn) Do(messages ...*Message) error {
	for _, m := range messages {
		if _, err := c.exchange(m.flags|unix.NLM_F_ACK, m); err != nil {
			return err
		}
	}
	return nil
}

// Batch sends all requests in few system calls and returns the first error;
// the rest are carried out all the same.
func (c *Conn) Batch(messages []*Message) error {
	const window = 64 // acknowledgements must fit the socket's buffer
	var first error
	for len(messages) > 0 {
		n := min(window, len(messages))
		if _, err := c.exchange(unix.NLM_F_ACK, messages[:n]...); err != nil && first == nil {
			first = err
		}
		messages = messages[n:]
	}
	return first
}

// Get returns the payload of the single answer to a request.
func (c *Conn) Get(m *Message) ([]byte, error) {
	answers, err := c.exchange(unix.NLM_F_ACK, m)
	if err != nil {
		return nil, err
	}
	if len(answers) == 0 {
		return nil, unix.ENOENT
	}
	return answers[0], nil
}

// dumpRetries bounds how often a dump that changed under the reader is
// repeated; one retry nearly always suffices.
const (
	dumpRetries    = 30
	foreignRetries = 3
)

var errInterrupted = errors.New("dump interrupted by a change")

// Dump returns the payloads of all answers, of one consistent reading unless
// the namespace is foreign.
func (c *Conn) Dump(m *Message) ([][]byte, error) {
	retries := dumpRetries
	if c.Foreign {
		retries = foreignRetries
	}
	for try := 0; ; try++ {
		answers, err := c.exchange(unix.NLM_F_DUMP, m)
		switch {
		case !errors.Is(err, errInterrupted):
			return answers, err
		case try == retries && c.Foreign:
			return answers, nil
		case try == retries:
			return nil, err
		}
	}
}

// exchange sends messages and reads until each is acknowledged or its dump is
// done. It returns the payloads and the first error.
func (c *Conn) exchange(flags uint16, messages ...*Message) ([][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.seq + 1
	var out []byte
	for _, m := range messages {
		c.seq++
		out = append(out, m.bytes(c.seq, flags)...)
		out = append(out, make([]byte, -len(out)&3)...)
	}
	// Without an address, which is the kernel's: so the rights count that the socket
	// was opened with, too (netlink_ns_capable).
	if err := unix.Sendto(c.fd, out, 0, nil); err != nil {
		return nil, fmt.Errorf("send to the kernel: %w", err)
	}
	return c.receive(first, len(messages))
}

// receive reads the answers to count requests numbered from first.
func (c *Conn) receive(first uint32, count int) (answers [][]byte, failed error) {
	buffer := receiveBuffers.Get().(*[]byte)
	defer receiveBuffers.Put(buffer)
	note := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	for count > 0 {
		n, _, err := unix.Recvfrom(c.fd, *buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the kernel's answer: %w", err)
		}
		for b := (*buffer)[:n]; len(b) >= unix.NLMSG_HDRLEN; {
			h := headerOf(b)
			if h.size < unix.NLMSG_HDRLEN || h.size > len(b) {
				return nil, errors.New("malformed netlink answer")
			}
			payload := b[unix.NLMSG_HDRLEN:h.size]
			b = b[min((h.size+3)&^3, len(b)):]
			if h.seq-first >= 1<<31 {
				continue // a late answer to an earlier request that failed
			}
			if h.flags&unix.NLM_F_DUMP_INTR != 0 {
				note(errInterrupted)
			}
			switch h.kind {
			case unix.NLMSG_DONE, unix.NLMSG_ERROR:
				count--
				if err := errorOf(h, payload); err != nil {
					note(err)
				}
			default:
				answers = append(answers, append([]byte(nil), payload...))
			}
		}
	}
	return answers, failed
}

type header struct {
	size        int
	kind, flags uint16
	seq         uint32
}

func headerOf(b []byte) header {
	return header{
		size: int(binary.NativeEndian.Uint32(b)),
		kind: binary.NativeEndian.Uint16(b[4:]), flags: binary.NativeEndian.Uint16(b[6:]),
		seq: binary.NativeEndian.Uint32(b[8:]),
	}
}

// errorOf reads an acknowledgement: nil, or the error with the kernel's words.
func errorOf(h header, payload []byte) error {
	if len(payload) < 4 {
		return nil
	}
	code := int32(binary.NativeEndian.Uint32(payload))
	if code >= 0 {
		return nil
	}
	if text := ackText(h, payload); text != "" {
		return fmt.Errorf("%w (%s)", unix.Errno(-code), text)
	}
	return unix.Errno(-code)
}

// ackText finds NLMSGERR_ATTR_MSG (1) behind the request that is echoed.
func ackText(h header, payload []byte) string {
	if h.kind != unix.NLMSG_ERROR || h.flags&unix.NLM_F_ACK_TLVS == 0 || len(payload) < 4+unix.NLMSG_HDRLEN {
		return ""
	}
	rest := 4 + unix.NLMSG_HDRLEN
	if h.flags&unix.NLM_F_CAPPED == 0 {
		rest = 4 + (headerOf(payload[4:]).size+3)&^3
	}
	if rest > len(payload) {
		return ""
	}
	return stringOf(attr(payload[rest:], 1))
}
