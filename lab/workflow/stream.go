package workflow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/lab/testbed"
	"sublet/plan"
	"sublet/vnet"
)

// port is where sources listen.
const port = 5001

// pair is a source and a worker with a TCP connection that lasts for a whole run: a
// stage that broke it would end the run.
type pair struct{ source, worker net.Conn }

func (p pair) close() {
	for _, c := range []net.Conn{p.source, p.worker} {
		if c != nil {
			c.Close()
		}
	}
}

// move sends bytes from one end to the other and returns when all are there.
func move(ctx context.Context, from, to net.Conn, bytes int64) error {
	for _, c := range []net.Conn{from, to} {
		stop := context.AfterFunc(ctx, func() { c.Close() })
		defer stop()
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.CopyN(from, zeros{}, bytes)
		sent <- err
	}()
	_, err := io.CopyN(io.Discard, to, bytes)
	return errors.Join(err, <-sent, ctx.Err())
}

// zeros are as many as are read.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// connect opens a connection between two nodes of a lease. Sockets stay in the
// namespaces they are made in.
func connect(ctx context.Context, g *testbed.Testbed, l vnet.Lease, from, to string) (p pair, err error) {
	var listener net.Listener
	err = within(g, l, from, func() (err error) {
		listener, err = cubic.Listen(ctx, "tcp4", netip.AddrPortFrom(l.Addresses[from], port).String())
		return err
	})
	if err != nil {
		return p, err
	}
	defer listener.Close()
	err = within(g, l, to, func() (err error) {
		d := net.Dialer{Control: cubic.Control, Timeout: 10 * time.Second}
		p.worker, err = d.DialContext(ctx, "tcp4", listener.Addr().String())
		return err
	})
	if err != nil {
		return p, fmt.Errorf("from %s to %s: %w", to, from, err)
	}
	p.source, err = listener.Accept()
	return p, err
}

// cubic makes sockets that do not depend on the machine's congestion control.
var cubic = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
	failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
	})
	return errors.Join(failed, err)
}}

// within does something in a node's namespace.
func within(g *testbed.Testbed, l vnet.Lease, node string, do func() error) error {
	ns, err := kernel.OpenNamespace(filepath.Join(g.Run, "netns", string(l.Mapping.Nodes[node]), plan.Namespace(l.ID(), node)))
	if err != nil {
		return fmt.Errorf("node %s: %w", node, err)
	}
	defer ns.Close()
	return kernel.In(ns, do)
}

// flood sends by several connections until stop is called.
func flood(ctx context.Context, g *testbed.Testbed, l vnet.Lease) (stop func(), err error) {
	var pairs []pair
	stop = func() {
		for _, p := range pairs {
			p.close()
		}
	}
	for range 4 {
		p, err := connect(ctx, g, l, source(0), worker(0))
		pairs = append(pairs, p)
		if err != nil {
			stop()
			return nil, err
		}
		go func() { _, _ = io.Copy(p.source, zeros{}) }() // until it is closed
		go func() { _, _ = io.Copy(io.Discard, p.worker) }()
	}
	return stop, nil
}

// root says whether labs can be made.
func root() error {
	if os.Geteuid() != 0 {
		return errors.New("an application runs in a lab of network namespaces: run it as root")
	}
	return nil
}
