package test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A link does what its request says of it: the delay of each direction, and the
// share of frames that are lost. It is no broken promise, survives the death of
// the process that does it, is changed by command, and nothing of it is left.
func TestImpairedLinks(t *testing.T) {
	l := newLab(t, "demo")
	before := wires(t, l)
	l.up(`network: n
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
  - {name: c, host: h1}
links:
  - {name: ab, ends: [a, b], rate: 20Mbit, latency: 40ms, impair: {delay: 20ms, reverse: {delay: 5ms}}}
  - {name: ac, ends: [a, c], rate: 20Mbit, impair: {loss: 20%, reverse: {}}}
`)
	if got := l.roundTrip("n/a", "b"); got < 25 || got > 25*1.05+3 {
		t.Errorf("25 ms there and back are %.2f ms", got)
	}
	const sent, lost = 1000, 0.2
	r := l.sublet("exec", "n/a", "--", "ping", "-q", "-i", "0.002", "-c", strconv.Itoa(sent), "c")
	received, _ := strconv.Atoi(number(r.out, `(\d+) received`))
	if off := math.Abs(float64(received) - sent*(1-lost)); off > 5*math.Sqrt(sent*lost*(1-lost)) {
		t.Errorf("%d of %d are answered:\n%s", received, sent, r.out)
	}
	l.checked("n", broken, "--duration", "2s")

	pids := wires(t, l)
	if len(pids) <= len(before) {
		t.Fatalf("no process carries the frames: %v", pids)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 20*time.Second, func() error {
		if got := l.roundTrip("n/a", "b"); got < 25 {
			return fmt.Errorf("after its process was killed a round trip takes %.2f ms", got)
		}
		return nil
	})
	l.must("impair", "n/ab", "delay=40ms")
	l.must("impair", "n/ab", "--from", "b", "off")
	eventually(t, 10*time.Second, func() error {
		if got := l.roundTrip("n/a", "b"); got < 40 || got > 40*1.05+3 {
			return fmt.Errorf("40 ms by command are %.2f ms", got)
		}
		return nil
	})
	if out := l.must("impair", "n/ab"); !strings.Contains(out, "from a to b: delay=40ms") || !strings.Contains(out, "from b to a: not impaired") {
		t.Error(out)
	}
	for _, bad := range [][]string{{"n/ab", "delay=1"}, {"n/ab", "late=1ms"}, {"n/nolink", "off"}, {"n", "off"}, {"n/ab", "--from", "c", "off"}} {
		if r := l.sublet(append([]string{"impair"}, bad...)...); r.code != 2 {
			t.Errorf("impair %v: exit code %d", bad, r.code)
		}
	}
	l.must("down", "n")
	eventually(t, 5*time.Second, func() error {
		if left := wires(t, l); len(left) > 0 {
			return fmt.Errorf("processes %v are left", left)
		}
		return nil
	})
}

// roundTrip is the median of some pings, in ms; 0: none was answered.
func (l *lab) roundTrip(from, to string) float64 {
	r := l.sublet("exec", from, "--", "ping", "-i", "0.05", "-W", "1", "-c", "11", to)
	var times []float64
	for _, m := range regexp.MustCompile(`time=([\d.]+) ms`).FindAllStringSubmatch(r.out, -1) {
		ms, _ := strconv.ParseFloat(m[1], 64)
		times = append(times, ms)
	}
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[len(times)/2]
}

func number(text, pattern string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// wires are the lab's processes of impaired links.
func wires(t *testing.T, l *lab) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		text, _ := os.ReadFile(file)
		if words := strings.Split(string(text), "\x00"); len(words) > 2 && words[1] == "__impair" && strings.HasPrefix(words[2], l.run) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}
