package pktgen

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// lastPort is that of the newest stream's receiver: several may share an
// address.
var lastPort atomic.Int32

func newPort() int { return 20000 + int(lastPort.Add(1))%20000 }

// Stream is the goodput in bit/s of one TCP connection (CUBIC), its sender
// and its receiver on the processors named.
func Stream(from, to Place, sender, receiver int, window time.Duration) (float64, error) {
	listener, err := to.socket(unix.SOCK_STREAM)
	if err != nil {
		return 0, err
	}
	defer unix.Close(listener)
	if err := unix.SetsockoptInt(listener, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	port := newPort()
	if err := unix.Bind(listener, sockaddr(to.Addr, port)); err != nil {
		return 0, err
	}
	if err := unix.Listen(listener, 1); err != nil {
		return 0, err
	}
	var got atomic.Uint64
	sink := pinned(receiver, func(stop chan struct{}) error { return receive(listener, &got, stop) })
	source := pinned(sender, func(chan struct{}) error { return send(from, to, port) })
	var bytes float64
	if sender == receiver {
		bytes, err = measured(sender, from.Processes, window, got.Load, sink, source)
	} else {
		time.Sleep(window / 5)
		before, begin := got.Load(), time.Now()
		time.Sleep(window)
		bytes = float64(got.Load()-before) / time.Since(begin).Seconds()
	}
	return bytes * 8, errors.Join(err, sink.Stop(), source.Wait())
}

// receive takes one connection and counts what it brings.
func receive(listener int, got *atomic.Uint64, stop chan struct{}) error {
	var fd int
	err := again(func() (err error) { fd, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC); return err })
	if err != nil {
		return fmt.Errorf("nobody connects: %w", err)
	}
	defer unix.Close(fd)
	buffer := make([]byte, 256<<10)
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		var n int
		err := again(func() (err error) { n, err = unix.Read(fd, buffer); return err })
		if err != nil || n == 0 {
			return fmt.Errorf("the stream ended early: %w", err)
		}
		got.Add(uint64(n))
	}
}

// send fills a connection until the receiver closes it.
func send(from, to Place, port int) error {
	fd, err := from.socket(unix.SOCK_STREAM)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic"); err != nil {
		return err
	}
	if err := again(func() error { return unix.Connect(fd, sockaddr(to.Addr, port)) }); err != nil {
		return fmt.Errorf("connect to %s: %w", to.Addr, err)
	}
	data := make([]byte, 128<<10)
	for {
		err := again(func() error { _, err := unix.SendmsgN(fd, data, nil, nil, unix.MSG_NOSIGNAL); return err })
		if err != nil {
			return nil
		}
	}
}
