package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hop is a device by which frames come, and one by which they leave.
type hop struct {
	in, out int
	drops   int // percent
}

// node passes frames on: FROM:TO[:PERCENT], for each hop.
func node(args []string) error {
	sockets, hops := make(map[string]int), []hop(nil)
	for _, word := range args {
		names := strings.Split(word, ":")
		w := hop{}
		for i, at := range []*int{&w.in, &w.out} {
			fd, known := sockets[names[i]]
			if !known {
				var err error
				if fd, err = frames(names[i]); err != nil {
					return fmt.Errorf("%s: %w", names[i], err)
				}
				sockets[names[i]] = fd
			}
			*at = fd
		}
		if len(names) > 2 {
			w.drops, _ = strconv.Atoi(names[2])
		}
		hops = append(hops, w)
	}
	polled := make([]unix.PollFd, len(hops))
	for i, w := range hops {
		polled[i] = unix.PollFd{Fd: int32(w.in), Events: unix.POLLIN}
	}
	frame := make([]byte, 2048)
	for {
		if _, err := unix.Poll(polled, -1); err != nil && err != unix.EINTR {
			return err
		}
		for i, w := range hops {
			if polled[i].Revents != 0 {
				w.pass(frame)
			}
		}
	}
}

// pass passes on what has come, a few frames at most.
func (w hop) pass(frame []byte) {
	for range 32 {
		n, from, err := unix.Recvfrom(w.in, frame, unix.MSG_DONTWAIT)
		if err != nil {
			return
		}
		if at, ok := from.(*unix.SockaddrLinklayer); ok && at.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if w.drops > 0 && rand.IntN(100) < w.drops {
			continue
		}
		_, _ = unix.Write(w.out, frame[:n]) // a full queue drops
	}
}

// frames is a socket for all of a device.
func frames(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all & 0xffff, Ifindex: i.Index})
}

// load sends frames of a size into the first link for a while and prints what came out of
// the last one, in Mbit/s. Without a rate there are as many on their hop as a window of TCP
// has; what is lost is not waited for.
func load(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: %s BYTES MBIT WINDOW", loadCommand)
	}
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	mbit, err := strconv.ParseFloat(args[1], 64)
	if err != nil {
		return err
	}
	length, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	in, err := frames("in")
	if err != nil {
		return err
	}
	out, err := frames("out-")
	if err != nil {
		return err
	}
	const most, patience = 64, 2 * time.Millisecond
	frame, sent, came, last := make([]byte, size), 0, 0, time.Now()
	copy(frame, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5})
	received := make([]byte, 2048)
	begin := time.Now()
	for time.Since(begin) < length {
		may := sent-came < most
		if mbit > 0 {
			may = float64(sent) < mbit*1e6/8/float64(size)*time.Since(begin).Seconds()
		}
		if may {
			if _, err := unix.Write(in, frame); err == nil {
				sent++
			}
		}
		for {
			if _, _, err := unix.Recvfrom(out, received, unix.MSG_DONTWAIT); err != nil {
				break
			}
			came, last = came+1, time.Now()
		}
		if !may {
			time.Sleep(20 * time.Microsecond)
		}
		if mbit == 0 && time.Since(last) > patience {
			sent, last = came, time.Now() // those are lost
		}
	}
	fmt.Println(8 * float64(size) * float64(came) / time.Since(begin).Seconds() / 1e6)
	return nil
}
