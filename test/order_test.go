package test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/internal/stall"
)

// unlikeWays are two paths between h1 and h2, of unlike length.
const unlikeWays = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
  - {name: h3, cpu: 4, memory: 4GiB}
links:
  - {name: direct, ends: [h1, h2], capacity: 20Mbit, latency: 1ms}
  - {name: left, ends: [h1, h3], capacity: 20Mbit, latency: 3ms}
  - {name: right, ends: [h3, h2], capacity: 20Mbit, latency: 3ms}
`

// wideInOrder needs both of them.
const wideInOrder = "network: wide\nnodes: [{name: x, host: h1}, {name: y, host: h2}]\nlinks: [{ends: [x, y], rate: 36Mbit, paths: {count: 2, order: kept}}]\n"

// TestOrderOverTwoPaths: packets of one flow go by both paths of a link and arrive in
// order, also after the agent began anew and the process that puts them into order was
// killed. Nothing of that is left once flows are to be spread instead.
func TestOrderOverTwoPaths(t *testing.T) {
	t.Parallel()
	l := newSupervisor(t, unlikeWays, "--delays")
	l.up(wideInOrder)
	if shares := l.sharesOf("wide", "x-y"); len(shares) != 2 {
		t.Fatalf("it is carried by %v", shares)
	}
	l.settled()
	l.arriveInOrder()
	if err := l.bothCarry("h1"); err != nil {
		t.Error(err)
	}
	before := l.repairs("wide")
	l.restart(agentOf("h2"), 0)
	l.settled()
	if now := l.repairs("wide"); now != before {
		t.Errorf("the agent that began anew repaired %d things", now-before)
	}
	for _, pid := range wires(t, l.lab) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	eventually(t, 20*time.Second, func() error { return l.pinged("wide", "x", "y") })
	l.settled()
	l.arriveInOrder()
	l.must("apply", l.file("wide.yaml", "network: wide\nnodes: [{name: x, host: h1}, {name: y, host: h2}]\nlinks: [{ends: [x, y], rate: 36Mbit, paths: 2}]\n"))
	l.settled()
	if err := l.pinged("wide", "x", "y"); err != nil {
		t.Error(err)
	}
	if left := wires(t, l.lab); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// TestSoakOneFlowGetsAllPaths: it has the rate of both together.
func TestSoakOneFlowGetsAllPaths(t *testing.T) {
	l := newLab(t, unlikeWays, "--delays")
	l.up(wideInOrder)
	l.settled()
	if _, err := exec.LookPath("iperf3"); err != nil {
		t.Skip("needs iperf3")
	}
	l.must("exec", "-d", "wide/y", "--", "iperf3", "-s")
	stall.Try(t, func() (lacked float64, wrong error) {
		r := l.sublet("exec", "wide/x", "--", "iperf3", "-c", "y", "-t", "4", "-O", "1", "-J")
		var said struct {
			End struct {
				Received struct {
					Rate float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			}
		}
		if err := json.Unmarshal([]byte(r.out), &said); err != nil {
			return 1, fmt.Errorf("iperf3: %w: %s%s", err, r.out, r.err)
		}
		const payload = 1448.0 / 1514
		if whole := 36e6 * payload; said.End.Received.Rate < 0.9*whole {
			return 1 - said.End.Received.Rate/whole, fmt.Errorf("one flow gets %.1f Mbit/s, of %.1f", said.End.Received.Rate/1e6, whole/1e6)
		}
		return 0, nil
	})
}

// arriveInOrder sends numbered datagrams of several sizes, slowly, and wants none of
// them behind a later one. A busy machine may keep one path so long that it is not
// waited for: what comes then is lost, but of half of them.
func (s *supervisor) arriveInOrder() {
	s.t.Helper()
	const all, ends = 2000, 50
	var in *net.UDPConn
	within(s.t, s.ofWide("h2", "y"), func() (err error) {
		in, err = net.ListenUDP("udp", nil)
		return err
	})
	defer in.Close()
	address := strings.Fields(s.must("exec", "wide/x", "--", "getent", "hosts", "y"))[0]
	within(s.t, s.ofWide("h1", "x"), func() error {
		out, err := net.Dial("udp", net.JoinHostPort(address, strconv.Itoa(in.LocalAddr().(*net.UDPAddr).Port)))
		if err != nil {
			return err
		}
		go func() {
			defer out.Close()
			for i := range all + ends {
				text := make([]byte, 100+i*37%1200)
				binary.BigEndian.PutUint32(text, uint32(i))
				_, _ = out.Write(text)
				time.Sleep(500 * time.Microsecond)
			}
		}()
		return nil
	})
	came, b := 0, make([]byte, 2048)
	for last := -1; last < all; came++ {
		_ = in.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := in.Read(b); err != nil {
			s.t.Fatalf("after datagram %d: %v", last, err)
		}
		n := int(binary.BigEndian.Uint32(b))
		if n <= last {
			s.t.Fatalf("datagram %d comes after %d", n, last)
		}
		last = n
	}
	if came < all/2 {
		s.t.Errorf("%d of %d datagrams came", came, all)
	}
}
