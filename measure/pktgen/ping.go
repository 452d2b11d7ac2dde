package pktgen

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// echoPort answers pings.
const echoPort = 7

// Ping is the median and the 99th percentile of the round-trip time of
// datagrams, in microseconds, both ends on one processor and blocking. They
// run before all other processes (SCHED_FIFO), where the machine lets them: of
// a processor that is busy, what counts is how long packets wait in the kernel,
// not how long a process does.
func Ping(from, to Place, cpu, count int) (p50, p99 float64, err error) {
	server, err := to.socket(unix.SOCK_DGRAM)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(server)
	if err := unix.Bind(server, sockaddr(to.Addr, echoPort)); err != nil {
		return 0, 0, err
	}
	client, err := from.socket(unix.SOCK_DGRAM)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(client)
	if err := unix.Connect(client, sockaddr(to.Addr, echoPort)); err != nil {
		return 0, 0, err
	}
	answers := pinned(cpu, func(chan struct{}) error { first(); return echo(server) })
	times := make([]time.Duration, 0, count)
	asks := pinned(cpu, func(chan struct{}) (err error) { first(); times, err = roundTrips(client, times); return err })
	if err := errors.Join(asks.Wait(), answers.Wait()); err != nil {
		return 0, 0, fmt.Errorf("ping %s: %w", to.Addr, err)
	}
	slices.Sort(times)
	at := func(q float64) float64 {
		return float64(times[int(q*float64(len(times)-1))]) / float64(time.Microsecond)
	}
	return at(0.5), at(0.99), nil
}

// first lets the calling thread run before others. Without the right to, it
// waits for its turn.
func first() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
}

// echo answers until it has nothing to do (the socket's receive timeout).
func echo(fd int) error {
	buffer := make([]byte, 64)
	for {
		var n int
		var from unix.Sockaddr
		if err := again(func() (err error) { n, from, err = unix.Recvfrom(fd, buffer, 0); return err }); err != nil {
			return err
		}
		if buffer[0] == 'q' {
			return nil
		}
		if err := unix.Sendto(fd, buffer[:n], 0, from); err != nil {
			return err
		}
	}
}

// roundTrips fills times; a lost datagram is sent again and not counted.
func roundTrips(fd int, times []time.Duration) ([]time.Duration, error) {
	buffer := make([]byte, 18)
	warm, lost := 200, 0
	for len(times) < cap(times) {
		begin := time.Now()
		if _, err := unix.Write(fd, buffer); err != nil {
			return times, err
		}
		if err := again(func() error { _, err := unix.Read(fd, buffer); return err }); err != nil {
			if lost++; lost > 3 {
				return times, err
			}
			continue
		}
		if warm--; warm < 0 {
			times = append(times, time.Since(begin))
		}
	}
	buffer[0] = 'q'
	_, err := unix.Write(fd, buffer)
	return times, err
}
