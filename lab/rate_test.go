package lab

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"sublet/internal/stall"
	"sublet/plan"
	"sublet/vnet"
)

// result is the part of iperf3's report that we read.
type result struct {
	End struct {
		Received struct {
			Bytes   float64 `json:"bytes"`
			Seconds float64 `json:"seconds"`
		} `json:"sum_received"`
	} `json:"end"`
}

// iperf sends from one host to an address of another and returns the payload
// that arrived, in bit/s.
func iperf(t testing.TB, spec Spec, port int, from, to, address string, args ...string) float64 {
	t.Helper()
	server := exec.CommandContext(t.Context(), "ip", "netns", "exec", spec.Name+"-"+to, "iperf3", "-s", "-1", "-p", strconv.Itoa(port))
	if err := server.Start(); err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = server.Wait() }()
	args = append([]string{"iperf3", "-J", "-p", strconv.Itoa(port), "-c", address}, args...)
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var r result
		out, err := in(t, spec, from, args...)
		if err == nil {
			err = json.Unmarshal([]byte(out), &r)
		}
		if err == nil && r.End.Received.Seconds > 0 {
			return r.End.Received.Bytes * 8 / r.End.Received.Seconds
		}
		if time.Now().After(end) {
			_ = server.Process.Kill()
			t.Errorf("iperf3: %v: %s", err, out)
			return 0
		}
	}
}

// frames converts TCP payload to frames: 1448 bytes of it in a frame of 1514.
func frames(payload float64) float64 { return payload * 1514 / 1448 }

const cubic = "cubic"

// The wires enforce plan.Outer(capacity), in both directions at once, to 2 %.
func TestCapacity(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, capacity := range []vnet.Rate{100 * vnet.Mbit, 1 * vnet.Gbit} {
		t.Run(capacity.String(), func(t *testing.T) {
			l, spec := up(t, twoSwitches(capacity))
			stall.Try(t, func() (lacked float64, wrong error) { // TCP also needs the CPU, which others use too
				there, back := bothWays(t, l, spec)
				t.Logf("%.4f and %.4f of the wire", there, back)
				if max(there, back) > 1.02 {
					t.Errorf("%.4f and %.4f of the wire got through", there, back)
				}
				if least := min(there, back); least < 0.98 {
					return 1 - least, fmt.Errorf("only %.4f of the wire got through", least)
				}
				return 0, nil
			})
		})
	}
}

// bothWays fills the wires between h1 and h2 and returns the frames that
// arrive, as a share of the capacity. Each direction also carries the other's
// acknowledgements.
func bothWays(t *testing.T, l *Lab, spec Spec) (there, back float64) {
	t.Helper()
	a1, _ := l.Substrate.LinkOf("a1")
	a2, _ := l.Substrate.LinkOf("a2")
	h1, h2 := a1.Ports[0].Address.String(), a2.Ports[1].Address.String()
	var both sync.WaitGroup
	both.Go(func() { there = iperf(t, spec, 5201, "h1", "h2", h2, "-t", "3", "-O", "1", "-C", cubic) })
	both.Go(func() { back = iperf(t, spec, 5202, "h2", "h1", h1, "-t", "3", "-O", "1", "-C", cubic) })
	both.Wait()
	wire := float64(plan.Outer(a1.Capacity))
	return frames(there) / wire, frames(back) / wire
}

// Leased packets lose nothing to a flood of others, and the others get exactly
// what is left.
func TestStrictPriority(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const capacity = 200 * vnet.Mbit
	l, spec := up(t, twoSwitches(capacity))
	a2, _ := l.Substrate.LinkOf("a2")
	h2 := a2.Ports[1].Address.String()
	stall.Try(t, func() (lacked float64, wrong error) {
		var leased, rest float64
		var both sync.WaitGroup
		both.Go(func() {
			rest = iperf(t, spec, 5201, "h3", "h2", h2, "-u", "-b", "400M", "-l", "1400", "-t", "4")
		})
		both.Go(func() {
			time.Sleep(time.Second) // the flood is there before
			leased = iperf(t, spec, 5202, "h1", "h2", h2, "-t", "2", "-O", "1", "-C", cubic, "-S", "0xa0")
		})
		both.Wait()
		share := frames(leased) / float64(plan.Outer(capacity))
		t.Logf("leased %.1f Mbit/s (%.3f of the wire), rest %.1f Mbit/s", leased/1e6, share, rest/1e6)
		if share < 0.97 {
			return 1 - share, fmt.Errorf("leased packets got %.3f of the wire beside a flood", share)
		}
		return 0, nil
	})
}

// BenchmarkWire reports what host - switch - host carries when the wire does
// not limit it.
func BenchmarkWire(b *testing.B) {
	l, spec := up(b, starOf(2, 100*vnet.Gbit))
	h2 := l.Substrate.Links[1].Ports[0].Address.String()
	var rate float64
	for b.Loop() {
		rate = iperf(b, spec, 5201, "h1", "h2", h2, "-t", "3", "-O", "1", "-C", cubic)
	}
	b.ReportMetric(frames(rate)/1e9, "Gbit/s")
	b.ReportMetric(0, "ns/op")
}

func starOf(n int, capacity vnet.Rate) vnet.Substrate {
	sub := star(n)
	for i := range sub.Links {
		sub.Links[i].Capacity = capacity
	}
	return sub
}
