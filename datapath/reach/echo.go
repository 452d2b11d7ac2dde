package reach

import (
	"cmp"
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

// ask sends echo requests from a node to some others of one family, in an order that differs
// each time, and returns those that have not answered in time.
func (p *Part) ask(ctx context.Context, w *watch, from int, targets []int, wait time.Duration) (silent []int) {
	is6 := w.item.Nodes[targets[0]].Address.Is6()
	f, err := p.socket(plan.Namespace(w.item.Lease, w.item.Nodes[from].Name), is6)
	if err != nil {
		time.Sleep(wait) // the node is not there yet
		return targets
	}
	defer f.Close()
	e := exchange{socket: f, is6: is6, id: uint16(rand.Uint32()), waiting: make(map[netip.Addr]int, window)}
	targets = slices.Clone(targets)
	rand.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	for len(targets) > 0 {
		some := targets[:min(window, len(targets))]
		targets = targets[len(some):]
		p.spend(w, len(some))
		e.exchange(ctx, w.item, some, wait, p.again(w, wait))
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

// askAgain is how soon those are asked again that have not answered: what was sent
// before there was a way is lost, and how late a network is said to run is up to
// this and a round trip.
const askAgain = 40 * time.Millisecond

// again is askAgain while a lease is built, and then a round's wait.
func (p *Part) again(w *watch, wait time.Duration) time.Duration {
	if time.Since(w.began) > restAfter {
		return wait
	}
	return askAgain
}

// exchange asks some targets, again and again until wait is over; waiting are then
// those that have not answered.
func (e *exchange) exchange(ctx context.Context, item plan.Reach, targets []int, wait, again time.Duration) {
	clear(e.waiting)
	for _, to := range targets {
		e.waiting[item.Nodes[to].Address] = to
	}
	for left := wait; len(e.waiting) > 0 && left > 0 && ctx.Err() == nil; left -= again {
		for address := range e.waiting {
			e.send(address)
		}
		e.receive(ctx, time.Now().Add(min(left, again)))
	}
}

// socket opens one for echo replies in a node. Before that it makes the node's
// kernel ask anew for neighbours that have not answered: by itself it does so
// every second.
func (p *Part) socket(namespace string, is6 bool) (*os.File, error) {
	ns, err := p.host.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	var fd int
	err = kernel.In(ns, func() (err error) {
		forgetSilent()
		family, protocol := unix.AF_INET, unix.IPPROTO_ICMP
		if is6 {
			family, protocol = unix.AF_INET6, unix.IPPROTO_ICMPV6
		}
		fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a socket in %s: %w", namespace, err)
	}
	if is6 {
		filter := &unix.ICMPv6Filter{} // bits of types that are not wanted
		for i := range filter.Data {
			filter.Data[i] = ^uint32(0)
		}
		filter.Data[echoReply6>>5] &^= 1 << (echoReply6 & 31)
		_ = unix.SetsockoptICMPv6Filter(fd, unix.SOL_ICMPV6, unix.ICMPV6_FILTER, filter)
		return os.NewFile(uintptr(fd), "echo"), nil
	}
	const icmpFilter = 1 // ICMP_FILTER of linux/icmp.h: likewise
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

	echoRequest6 = 128 // RFC 4443
	echoReply6   = 129
)

// exchange is one socket's requests and answers.
type exchange struct {
	socket  *os.File
	is6     bool
	id      uint16
	waiting map[netip.Addr]int
}

func (e *exchange) send(to netip.Addr) {
	m := make([]byte, 16)
	m[0] = echoRequest
	if e.is6 {
		m[0] = echoRequest6
	}
	binary.BigEndian.PutUint16(m[4:], e.id)
	binary.BigEndian.PutUint16(m[6:], 1)
	if !e.is6 { // of IPv6 the kernel adds it
		binary.BigEndian.PutUint16(m[2:], checksum(m))
	}
	var at unix.Sockaddr = &unix.SockaddrInet6{Addr: to.As16()}
	if !e.is6 {
		at = &unix.SockaddrInet4{Addr: to.As4()}
	}
	raw, err := e.socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.Sendto(int(fd), m, unix.MSG_DONTWAIT, at) // unsent is unanswered
	})
}

// receive waits until all have answered or the time is over.
func (e *exchange) receive(ctx context.Context, until time.Time) {
	_ = e.socket.SetReadDeadline(until)
	defer context.AfterFunc(ctx, func() { _ = e.socket.SetReadDeadline(time.Unix(1, 0)) })()
	b := make([]byte, 2048)
	for len(e.waiting) > 0 {
		n, sender, err := e.read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil && !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.ECONNREFUSED) {
			return
		}
		if from, ok := e.answer(b[:n], sender); ok {
			delete(e.waiting, from)
		}
	}
}

// read waits for a packet; of IPv6, which comes without its header, sender says
// who sent it.
func (e *exchange) read(b []byte) (n int, sender netip.Addr, err error) {
	raw, err := e.socket.SyscallConn()
	if err != nil {
		return 0, sender, err
	}
	var got error
	err = raw.Read(func(fd uintptr) bool {
		var from unix.Sockaddr
		n, from, got = unix.Recvfrom(int(fd), b, unix.MSG_DONTWAIT)
		if at, ok := from.(*unix.SockaddrInet6); ok {
			sender = netip.AddrFrom16(at.Addr)
		}
		return !errors.Is(got, unix.EAGAIN) && !errors.Is(got, unix.EINTR)
	})
	return max(n, 0), sender, cmp.Or(err, got)
}

// answer reads a packet of IPv4, or a message of a sender of IPv6; ok: it is a
// reply to this exchange.
func (e *exchange) answer(b []byte, sender netip.Addr) (from netip.Addr, ok bool) {
	if e.is6 {
		return sender, len(b) >= 8 && b[0] == echoReply6 && binary.BigEndian.Uint16(b[4:]) == e.id
	}
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
