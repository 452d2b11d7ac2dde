package lab

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/internal/proc"
	"sublet/internal/stall"
	"sublet/vnet"
)

// rate of late wires: what a processor carries beside other work.
const rate = 200 * vnet.Mbit

// late is twoSwitches, whose links have latencies.
func late(capacity vnet.Rate) vnet.Substrate {
	sub := twoSwitches(capacity)
	for i := range sub.Links {
		sub.Links[i].Latency = map[string]time.Duration{"a1": time.Millisecond, "core": 10 * time.Millisecond}[sub.Links[i].Name]
	}
	return sub
}

func lateSpec(t *testing.T) Spec {
	needRoot(t)
	spec := specOf(t, late(rate))
	spec.Delays = true
	return spec
}

var pingTime = regexp.MustCompile(`time=([0-9.]+) ms`)

// roundTrip is the median of pings between two hosts.
func roundTrip(t *testing.T, l *Lab, spec Spec, from, to vnet.HostID) (time.Duration, error) {
	t.Helper()
	out, err := in(t, spec, string(from), "ping", "-c", "40", "-i", "0.01", "-W", "2", addressIn(l, to))
	if err != nil {
		return 0, fmt.Errorf("ping: %w: %s", err, out)
	}
	var all []float64
	for _, m := range pingTime.FindAllStringSubmatch(out, -1) {
		ms, _ := strconv.ParseFloat(m[1], 64)
		all = append(all, ms)
	}
	slices.Sort(all)
	return time.Duration(all[len(all)/2] * float64(time.Millisecond)), nil
}

// addressIn is the address of a host's first port.
func addressIn(l *Lab, host vnet.HostID) string {
	for _, link := range l.Substrate.Links {
		if end := slices.Index(link.Ends[:], string(host)); end >= 0 {
			return link.Ports[end].Address.String()
		}
	}
	return ""
}

// TestWiresAreLate by what the substrate says, also after the process that
// delays them was killed.
func TestWiresAreLate(t *testing.T) {
	spec := lateSpec(t)
	l := upAs(t, spec)
	check := func() {
		t.Helper()
		stall.Try(t, func() (float64, error) {
			took, err := roundTrip(t, l, spec, "h1", "h2")
			if err != nil {
				return 1, err
			}
			const stated = 22 * time.Millisecond
			t.Logf("round trip %s", took)
			if took < stated {
				t.Fatalf("the round trip takes %s, less than the wires' %s", took, stated)
			}
			if took > stated+stated/20 {
				return stall.Late(took, stated+stated/20), fmt.Errorf("the round trip takes %s, the wires %s", took, stated)
			}
			return 0, nil
		})
	}
	check()
	killed := killCarrier(t, spec)
	if !killed {
		t.Skip("the kernel delays wires itself")
	}
	stall.Wait(t, 10*time.Second, 20*time.Millisecond, func() error {
		_, err := in(t, spec, "h1", "ping", "-c", "1", "-W", "1", addressIn(l, "h2"))
		return err
	})
	check()
}

// killCarrier kills the process that delays wires, if there is one, and waits
// for its end.
func killCarrier(t *testing.T, spec Spec) bool {
	s, err := readState(spec.Run)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.marked() {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if !strings.Contains(string(command), "\x00"+carryNow+"\x00") {
			continue
		}
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		stall.Wait(t, 10*time.Second, time.Millisecond, func() error {
			if (proc.Process{PID: p.PID, Started: p.Started}).Alive() {
				return fmt.Errorf("process %d lives", p.PID)
			}
			return nil
		})
		return true
	}
	return false
}

// TestLateWiresCarry what they are to: one flow of TCP in each direction.
func TestLateWiresCarry(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	spec := lateSpec(t)
	l := upAs(t, spec)
	stall.Try(t, func() (float64, error) {
		got := frames(iperf(t, spec, 5201, "h1", "h2", addressIn(l, "h2"), "-t", "2", "-O", "1", "-C", cubic)) / float64(rate)
		t.Logf("%.3f of the wire", got)
		if got < 0.9 {
			return 0.9 - got, fmt.Errorf("%.3f of the wire got through", got)
		}
		return 0, nil
	})
}

// TestDamagedWireStaysDamaged when the process that delays it is made again,
// and is late again when it is mended.
func TestDamagedWireStaysDamaged(t *testing.T) {
	spec := lateSpec(t)
	l := upAs(t, spec)
	if err := SetWire(spec.Run, l.Substrate, "core", Silent); err != nil {
		t.Fatal(err)
	}
	if !killCarrier(t, spec) {
		t.Skip("the kernel delays wires itself")
	}
	ns, c, err := openNamespace(spec.Name + ".wires")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	defer c.Close()
	stall.Wait(t, 10*time.Second, 5*time.Millisecond, func() error {
		return (&layout{carried: []carried{{Link: 0}, {Link: 1}}}).carries(c)
	})
	if out, err := in(t, spec, "h1", "ping", "-c", "1", "-W", "1", addressIn(l, "h2")); err == nil {
		t.Errorf("a silent wire carries: %s", out)
	}
	if err := SetWire(spec.Run, l.Substrate, "core", Whole); err != nil {
		t.Fatal(err)
	}
	took, err := roundTrip(t, l, spec, "h1", "h2")
	if err != nil || took < 22*time.Millisecond {
		t.Errorf("the mended wire takes %s: %v", took, err)
	}
}
