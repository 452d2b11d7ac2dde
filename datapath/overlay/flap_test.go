package overlay

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Routes and neighbours that change a hundred times a second under load send
// no packet to a wrong next hop or in a wrong network: what leaves goes to one
// of the addresses that were told to be a next hop while it was sent.
func TestFlapsUnderLoad(t *testing.T) {
	l := newLab(t)
	l.tunnel("", under4)
	h := l.hosts[0]
	l.ip(h.node, "neigh", "replace", inner(1), "lladdr", mac(1), "dev", "eth0", "nud", "permanent")
	l.until("resolved", func(e overlayEntry) bool { return e.Device != 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var work sync.WaitGroup
	var seen atomic.Int64
	allowed := map[string]bool{destination(l.entryNow()): true}
	hops := make([]net.HardwareAddr, 4)
	for i := range hops {
		hops[i] = net.HardwareAddr{2, 0x77, 0, 0, 0, byte(i)}
		allowed[hops[i].String()] = true
	}
	fd := l.tap(l.hosts[1].Namespace, wire)
	work.Go(func() {
		defer unix.Close(fd)
		buffer := make([]byte, 4096)
		for ctx.Err() == nil {
			n, from, err := unix.Recvfrom(fd, buffer, 0)
			if ll, ok := from.(*unix.SockaddrLinklayer); !ok || ll.Pkttype == unix.PACKET_OUTGOING {
				continue // an answer
			}
			if err != nil || n < 50 || buffer[12] != 8 || buffer[23] != 17 {
				continue
			}
			seen.Add(1)
			if to := net.HardwareAddr(buffer[:6]).String(); !allowed[to] {
				t.Errorf("a packet went to %s, which was never a next hop", to)
			}
			if id := binary.BigEndian.Uint32(buffer[46:]) >> 8; id != number {
				t.Errorf("a packet went out in network %d", id)
			}
		}
	})
	c := l.socket(h.node, inner(0)+":5000", inner(1)+":6000")
	work.Go(func() {
		defer c.Close()
		for ctx.Err() == nil {
			_, _ = c.Write(make([]byte, 100))
		}
	})
	l.flap(ctx, hops)
	work.Wait()
	if seen.Load() == 0 {
		t.Error("no packet left")
	}
	l.until("the last change", func(e overlayEntry) bool { return destination(e) == hops[0].String() })
}

// flap changes next hops by turns, a hundred times a second, and ends with the first.
func (l *lab) flap(ctx context.Context, hops []net.HardwareAddr) {
	l.t.Helper()
	for i := 0; ctx.Err() == nil; i++ {
		l.route(i%len(hops), hops)
		time.Sleep(5 * time.Millisecond)
	}
	l.route(0, hops)
}

func (l *lab) route(i int, hops []net.HardwareAddr) {
	via := fmt.Sprintf("10.99.0.%d", 70+i)
	_, _ = l.try(l.hosts[0].Namespace, "ip", "neigh", "replace", via, "lladdr", hops[i].String(), "dev", wire, "nud", "permanent")
	_, _ = l.try(l.hosts[0].Namespace, "ip", "route", "replace", under4(1).String()+"/32", "via", via, "dev", wire)
}

// tap opens a socket for all that comes in by a device.
func (l *lab) tap(namespace, device string) (fd int) {
	l.t.Helper()
	const all = 0x0300 // ETH_P_ALL in network order
	ns, err := kernel.OpenNamespace(namespace)
	check1(l.t, err)
	defer ns.Close()
	check1(l.t, kernel.In(ns, func() (err error) {
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, all); err != nil {
			return err
		}
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: d.Index})
	}))
	return fd
}
