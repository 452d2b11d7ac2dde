package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Arguments with which this program sends and counts inside nodes.
const (
	sendCommand  = "send"
	countCommand = "count"
)

// Bytes of frames in front of what UDP carries.
const headers = 14 + 20 + 8

// burst is what a sender does for a while: frames of a size, at a rate between two.
type burst struct {
	bytes     int // 0: nothing
	low, high float64
	seconds   float64
}

func (b burst) String() string { return fmt.Sprintf("%d:%g:%g:%g", b.bytes, b.low, b.high, b.seconds) }

func parseBurst(word string) (b burst, err error) {
	_, err = fmt.Sscanf(strings.ReplaceAll(word, ":", " "), "%d %g %g %g", &b.bytes, &b.low, &b.high, &b.seconds)
	return b, err
}

// send sends bursts to a port of UDP, and says when it began.
func send(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%s needs HOST:PORT and bursts", sendCommand)
	}
	conn, err := net.Dial("udp", args[0])
	if err != nil {
		return err
	}
	began := time.Now()
	fmt.Println(began.UnixNano())
	begin := 0.0
	for _, word := range args[1:] {
		b, err := parseBurst(word)
		if err != nil {
			return err
		}
		b.send(conn, began, begin)
		begin += b.seconds
	}
	return nil
}

// send sends from some seconds after the beginning on. What it is late with for longer than
// most is left out. The rate is another one in each tenth of a second.
func (b burst) send(conn net.Conn, began time.Time, begin float64) {
	const tick, most, tenth = time.Millisecond, 0.02, 0.1
	payload := make([]byte, max(0, b.bytes-headers))
	due, last, until, rate := 0.0, begin, begin, 0.0
	for {
		now := time.Since(began).Seconds()
		if now >= begin+b.seconds {
			return
		}
		if now >= until {
			rate, until = b.low+(b.high-b.low)*rand.Float64(), now+tenth
		}
		if b.bytes > 0 {
			perSecond := rate / 8 / float64(b.bytes)
			due = min(due+(now-last)*perSecond, most*perSecond+1)
			for ; due >= 1; due-- {
				_, _ = conn.Write(payload) // a full queue is what is measured
			}
		}
		last = now
		time.Sleep(tick)
	}
}

// counted is what came to a node up to an instant.
type counted struct {
	at             time.Time
	packets, bytes float64
	sent           float64 // bytes that the node sent
}

// count prints what came to the node ten times a second, and takes in what comes to a
// port of UDP without reading it.
func count(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: %s PORT", countCommand)
	}
	conn, err := net.ListenPacket("udp", ":"+args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	for tick := time.NewTicker(interval); ; <-tick.C {
		c, err := received()
		if err != nil {
			return err
		}
		if _, err := fmt.Println(c.at.UnixNano(), c.packets, c.bytes, c.sent); err != nil {
			return err
		}
	}
}

// received is what came and left by all interfaces but the loopback.
func received() (c counted, err error) {
	text, err := os.ReadFile("/proc/net/dev")
	c.at = time.Now()
	for line := range bytes.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(string(line)), ":")
		words := strings.Fields(rest)
		if !ok || name == "lo" || len(words) < 9 {
			continue
		}
		b, _ := strconv.ParseFloat(words[0], 64)
		p, _ := strconv.ParseFloat(words[1], 64)
		t, _ := strconv.ParseFloat(words[8], 64)
		c.bytes, c.packets, c.sent = c.bytes+b, c.packets+p, c.sent+t
	}
	return c, err
}

// parseCounted reads what count printed.
func parseCounted(text []byte) (list []counted) {
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		var at int64
		var c counted
		if n, _ := fmt.Sscan(s.Text(), &at, &c.packets, &c.bytes, &c.sent); n == 4 {
			c.at = time.Unix(0, at)
			list = append(list, c)
		}
	}
	return list
}

// rateAt is the rate of what was counted between two instants, in bit/s of frames with
// their headers.
func rateAt(list []counted, of func(counted) float64, from, to time.Time) float64 {
	a, b := nearest(list, from), nearest(list, to)
	if seconds := b.at.Sub(a.at).Seconds(); seconds > 0 {
		return 8 * (of(b) - of(a)) / seconds
	}
	return math.NaN()
}

// nearest is what was counted nearest to an instant.
func nearest(list []counted, t time.Time) (best counted) {
	off := time.Duration(math.MaxInt64)
	for _, c := range list {
		if d := c.at.Sub(t).Abs(); d < off {
			best, off = c, d
		}
	}
	return best
}
