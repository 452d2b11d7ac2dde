package reach

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// ask sends echo requests from a node to some others, in an order that differs
// each time, and returns those that have not answered in time.
func (p *Part) ask(ctx context.Context, w *watch, from int, targets []int, wait time.Duration) (silent []int) {
	f, err := p.socket(plan.Namespace(w.item.Lease, w.item.Nodes[from].Name))
	if err != nil {
		time.Sleep(wait) // the node is not there yet
		return targets
	}
	defer f.Close()
	e := exchange{socket: f, id: uint16(rand.Uint32()), waiting: make(map[netip.Addr]int, window)}
	targets = slices.Clone(targets)
	rand.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	for len(targets) > 0 {
		some := targets[:min(window, len(targets))]
		targets = targets[len(some):]
		p.spend(w, len(some))
		e.exchange(ctx, w.item, some, wait)
		for _, to := range e.waiting {
			silent = append(silent, to)
		}
		if len(e.waiting) == len(some) { // nobody at all: the rest has its turn in the next round
			return append(silent, targets...)
		}
	}
	return silent
}

// window is how many requests of a node are under way at once: the queue of a
// slow link holds few frames.
const window = 4

// exchange asks some targets; waiting are then those that have not answered.
func (e *exchange) exchange(ctx context.Context, item plan.Reach, targets []int, wait time.Duration) {
	clear(e.waiting)
	for _, to := range targets {
		address := item.Nodes[to].Address
		e.waiting[address] = to
		e.send(address)
	}
	e.receive(ctx, time.Now().Add(wait))
}

// socket opens one for echo replies in a node. Before that it makes the node's
// kernel ask anew for neighbours that have not answered: by itself it does so
// every second.
func (p *Part) socket(namespace string) (*os.File, error) {
	ns, err := p.host.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	var fd int
	err = kernel.In(ns, func() (err error) {
		forgetSilent()
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_ICMP)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a socket in %s: %w", namespace, err)
	}
	const icmpFilter = 1 // ICMP_FILTER of linux/icmp.h: bits of types that are not wanted
	_ = unix.SetsockoptInt(fd, unix.SOL_RAW, icmpFilter, ^(1 << echoReply))
	return os.NewFile(uintptr(fd), "echo"), nil
}

// forgetSilent removes the unresolved neighbours of the calling thread's
// namespace.
func forgetSilent() {
	c, err := kernel.Dial()
	if err != nil {
		return
	}
	defer c.Close()
	c.Foreign = true
	for _, n := range neighbours(c, unresolved) {
		_ = c.Do(n.remove()) // answered meanwhile is fine
	}
}

// Types of ICMP messages.
const (
	echoReply   = 0
	echoRequest = 8
)

// exchange is one socket's requests and answers.
type exchange struct {
	socket  *os.File
	id      uint16
	waiting map[netip.Addr]int
}

func (e *exchange) send(to netip.Addr) {
	m := make([]byte, 16)
	m[0] = echoRequest
	binary.BigEndian.PutUint16(m[4:], e.id)
	binary.BigEndian.PutUint16(m[6:], 1)
	binary.BigEndian.PutUint16(m[2:], checksum(m))
	raw, err := e.socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.Sendto(int(fd), m, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Addr: to.As4()}) // unsent is unanswered
	})
}

// receive waits until all have answered or the time is over.
func (e *exchange) receive(ctx context.Context, until time.Time) {
	_ = e.socket.SetReadDeadline(until)
	defer context.AfterFunc(ctx, func() { _ = e.socket.SetReadDeadline(time.Unix(1, 0)) })()
	b := make([]byte, 2048)
	for len(e.waiting) > 0 {
		n, err := e.socket.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil && !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.ECONNREFUSED) {
			return
		}
		if from, ok := e.answer(b[:n]); ok {
			delete(e.waiting, from)
		}
	}
}

// answer reads an IPv4 packet; ok: it is a reply to this exchange.
func (e *exchange) answer(b []byte) (from netip.Addr, ok bool) {
	if len(b) < 20 {
		return from, false
	}
	header := int(b[0]&15) * 4
	if header < 20 || len(b) < header+8 || b[header] != echoReply || binary.BigEndian.Uint16(b[header+4:]) != e.id {
		return from, false
	}
	return netip.AddrFrom4([4]byte(b[12:16])), true
}

// checksum is the Internet's (RFC 1071), of an even number of bytes.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
