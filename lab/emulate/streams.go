package emulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/fabric/spread"
)

// streamPort is where a host takes connections; subflows come to it and the
// ports after it.
const streamPort = 7000

// MaxSubflows of a connection (MPTCP_SUBFLOWS_MAX of the kernel).
const MaxSubflows = 8

// Subflows prepares hosts for connections of n subflows by the kernel's own
// MPTCP and CUBIC: a host announces its address with n-1 more ports, and who
// connects takes them all up. Segments leave one by one: what a slow wire's
// buffer holds is packets.
func (f *Fabric) Subflows(n int) error {
	if n < 1 || n > MaxSubflows {
		return fmt.Errorf("%d subflows: the kernel has 1 to %d", n, MaxSubflows)
	}
	for _, h := range f.hosts {
		if err := kernel.In(h.at.Home(), func() error { return h.announce(n) }); err != nil {
			return fmt.Errorf("set up MPTCP of %s: %w", h.name, err)
		}
	}
	return nil
}

// announce is iproute2's work, in the namespace of the caller's thread.
func (h *host) announce(n int) error {
	var batch strings.Builder
	fmt.Fprintf(&batch, "mptcp endpoint flush\nmptcp limits set subflows %d add_addr_accepted %d\n", n-1, n-1)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&batch, "mptcp endpoint add %s port %d signal\n", h.loop, streamPort+i)
	}
	fmt.Fprintf(&batch, "link set dev %s gso_max_segs 1\n", h.device)
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(batch.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip -batch: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Streams runs a pattern: every host has one connection to its target, whose
// subflows a method spreads. The result is bytes received, of everybody.
func (f *Fabric) Streams(ctx context.Context, targets []int, m spread.Method, t Timing) (received uint64, r Result, err error) {
	if err := f.spread(targets, m); err != nil {
		return 0, r, err
	}
	var total atomic.Uint64
	var open []io.Closer
	var work sync.WaitGroup
	defer func() {
		for _, c := range open {
			c.Close()
		}
		work.Wait()
	}()
	for from, to := range targets {
		more, err := f.stream(ctx, from, to, &total, &work)
		open = append(open, more...)
		if err != nil {
			return 0, r, fmt.Errorf("connect %s to %s: %w", f.hosts[from].name, f.hosts[to].name, err)
		}
	}
	if err := sleep(ctx, t.Settle); err != nil {
		return 0, r, err
	}
	before, first := total.Load(), time.Now()
	times, _ := readJiffies()
	if err := sleep(ctx, t.Measure); err != nil {
		return 0, r, err
	}
	r.Late = time.Since(first) - t.Measure
	r.Idle, err = idleSince(times)
	return total.Load() - before, r, err
}

// stream is one connection, and what reads and writes it.
func (f *Fabric) stream(ctx context.Context, from, to int, total *atomic.Uint64, work *sync.WaitGroup) ([]io.Closer, error) {
	source, target := f.hosts[from], f.hosts[to]
	listener, err := target.listen(ctx)
	if err != nil {
		return nil, err
	}
	work.Go(func() { take(listener, total) })
	conn, err := source.connect(ctx, listener.Addr().(*net.TCPAddr).AddrPort())
	if err != nil {
		return []io.Closer{listener}, err
	}
	work.Go(func() { fill(conn) })
	return []io.Closer{listener, conn}, nil
}

func (h *host) listen(ctx context.Context) (l *net.TCPListener, err error) {
	var config net.ListenConfig
	config.SetMultipathTCP(true)
	err = kernel.In(h.at.Home(), func() error {
		any, err := config.Listen(ctx, "tcp4", netip.AddrPortFrom(h.loop, 0).String())
		if err == nil {
			l = any.(*net.TCPListener)
		}
		return err
	})
	return l, err
}

// patience of a connection that is set up over full wires.
const patience = 10 * time.Second

func (h *host) connect(ctx context.Context, to netip.AddrPort) (c *net.TCPConn, err error) {
	dialer := net.Dialer{Timeout: patience, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.loop, 0))}
	dialer.SetMultipathTCP(true)
	dialer.Control = func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic") // subflows' too
		})
		return errors.Join(failed, err)
	}
	err = kernel.In(h.at.Home(), func() error {
		any, err := dialer.DialContext(ctx, "tcp4", to.String())
		if err == nil {
			c = any.(*net.TCPConn)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if multi, err := c.MultipathTCP(); err != nil || !multi {
		c.Close()
		return nil, errors.Join(errors.New("the connection is no MPTCP's"), err)
	}
	return c, nil
}

// take reads the one connection of a listener.
func take(l *net.TCPListener, total *atomic.Uint64) {
	c, err := l.AcceptTCP()
	if err != nil {
		return // closed
	}
	l.Close()
	defer c.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		total.Add(uint64(n))
		if err != nil {
			return
		}
	}
}

// fill writes until the connection is closed; a reset spares the fabric what
// is still to be sent.
func fill(c *net.TCPConn) {
	_ = c.SetLinger(0)
	b := make([]byte, 64<<10)
	for {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}
