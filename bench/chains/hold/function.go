package main

import (
	"os"
	"os/signal"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// copier is this program as a function: what comes by eth0 leaves by eth1, after some
// additions for each frame. SIGUSR1 and SIGUSR2 make it slower by half, and as it was.
func copier() error {
	var additions atomic.Int64
	additions.Store(20_000)
	told := make(chan os.Signal, 4)
	signal.Notify(told, unix.SIGUSR1, unix.SIGUSR2)
	go func() {
		for s := range told {
			additions.Store(map[os.Signal]int64{unix.SIGUSR1: 30_000, unix.SIGUSR2: 20_000}[s])
		}
	}()
	in, err := frames("eth0", unix.ETH_P_ALL)
	if err != nil {
		return err
	}
	out, err := frames("eth1", 0)
	if err != nil {
		return err
	}
	frame := make([]byte, 2048)
	for sum := int64(0); ; {
		n, from, err := unix.Recvfrom(in, frame, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if at, ok := from.(*unix.SockaddrLinklayer); ok && at.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		for k := range additions.Load() {
			sum += k ^ sum
		}
		frame[n-1] ^= byte(sum & 1)
		_, _ = unix.Write(out, frame[:n]) // a full queue drops, as a wire does
	}
}

// frames is a socket for all of an interface.
func frames(name string, protocol uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	index, err := interfaceIndex(name)
	if err != nil {
		return 0, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8, Ifindex: index})
}
