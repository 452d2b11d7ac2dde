package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// copierCommand is the argument with which this program is a function.
const copierCommand = "copier"

// course is a number over time: values from times on, in seconds.
type course []struct{ from, value float64 }

// String is as Set reads it.
func (c *course) String() string { return fmt.Sprint(*c) }

// Set reads VALUE@SECONDS,...
func (c *course) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		value, from, ok := strings.Cut(word, "@")
		v, err := strconv.ParseFloat(value, 64)
		at, bad := strconv.ParseFloat(from, 64)
		if !ok || err != nil || bad != nil {
			return fmt.Errorf("%q is not VALUE@SECONDS", word)
		}
		*c = append(*c, struct{ from, value float64 }{at, v})
	}
	return nil
}

// at is the value at a time; 1 before the first.
func (c course) at(seconds float64) float64 {
	value := 1.0
	for _, step := range c {
		if seconds >= step.from {
			value = step.value
		}
	}
	return value
}

// copier is this program as a function: what comes by eth0 leaves by eth1, after some
// additions for each frame. Times count from the first frame.
func copier(args []string) error {
	flags := flag.NewFlagSet(copierCommand, flag.ContinueOnError)
	additions := flags.Int("additions", 0, "for each frame")
	polls := flags.Bool("polls", false, "never sleep")
	var slower, lets course
	flags.Var(&slower, "slower", "times as many additions, as VALUE@SECONDS,...")
	flags.Var(&lets, "lets", "part of the frames that pass, as VALUE@SECONDS,...")
	if err := flags.Parse(args); err != nil {
		return err
	}
	in, err := frames("eth0", unix.ETH_P_ALL)
	if err != nil {
		return err
	}
	out, err := frames("eth1", 0)
	if err != nil {
		return err
	}
	wait := 0
	if *polls {
		wait = unix.MSG_DONTWAIT
	}
	frame := make([]byte, 1<<17)
	var began time.Time
	for sum := 0; ; {
		n, from, err := unix.Recvfrom(in, frame, wait)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil {
			return err
		}
		if at, ok := from.(*unix.SockaddrLinklayer); ok && at.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if began.IsZero() {
			began = time.Now()
		}
		now := time.Since(began).Seconds()
		for k := range int(float64(*additions) * slower.at(now)) {
			sum += k ^ sum
		}
		runtime.KeepAlive(sum) // so that they are made
		if part := lets.at(now); part < 1 && rand.Float64() >= part {
			continue
		}
		_, _ = unix.Write(out, frame[:n]) // a full queue drops, as a wire does
	}
}

// frames is a socket for all of an interface. Frames have what the kernel knows of
// their segments and checksums in front, with which they are sent on.
func frames(name string, protocol uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return 0, err
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8, Ifindex: i.Index})
}
