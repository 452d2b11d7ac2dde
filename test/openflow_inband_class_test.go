package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/internal/stall"
)

// pacedFlood sends datagrams to a port of a node, 13 Mbit/s of frames of 1242 bytes.
const pacedFlood = `
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], int(sys.argv[2])))
at = time.time()
while True:
    for _ in range(13):
        try: s.send(b"x" * 1200)
        except OSError: pass
    at = max(at + 0.01, time.time() - 0.1)
    time.sleep(max(at - time.time(), 0))
`

// countedDatagrams says what arrives at a port for two seconds, bit/s of frames.
const countedDatagrams = `
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.bind(("", 9)); s.settimeout(5)
s.recv(2000)
n, begin, end = 0, time.time(), 0
while end - begin < 2:
    n += len(s.recv(2000)) + 42
    end = time.time()
print(n * 8 / (end - begin))
`

// echoing is the request of the learning controller without it, and it as a program
// that asks each switch for an echo twenty times a second, and says how long that took.
func echoing(text string) (request, program string) {
	before, rest, _ := strings.Cut(text, "    run:\n")
	program, after, _ := strings.Cut(rest, "        restart: always\n")
	_, program, _ = strings.Cut(program, "- |\n")
	return before + after, strings.NewReplacer(
		"import os, socket\n", `import os, socket, threading, time
def ask(s):
  while True: s.sendall(msg(2, pack("!d", time.time()))); time.sleep(0.05)
`, `flow(0, b"", 0xfffffffd))`, `flow(0, b"", 0xfffffffd)); threading.Thread(target=ask, args=(s,), daemon=True).start()`, // a hello is first
		"if kind == 2: s.sendall(msg(3, b, xid))\n", `if kind == 2: s.sendall(msg(3, b, xid))
    if kind == 3: print("echo", os.getpid(), 1000 * (time.time() - unpack_from("!d", b)[0]), flush=True)
`,
	).Replace(strings.ReplaceAll("\n"+program, "\n            ", "\n"))
}

// While data floods a link at its rate in both directions, control that shares it does
// not wait: its class is before data where the rate is enforced, and at a port with
// queues.
//
//	h1:  a - s1 - s2 - b  :h2
//	         |
//	        ctl
func TestControlInBandHasAClass(t *testing.T) {
	l := newLab(t, "demo")
	request, controller := echoing(inBand(t))
	l.up(strings.NewReplacer("name: c, ends: [s1, ctl]", "name: c, ends: [s1, ctl], rate: 10Mbit",
		"datapath: kernel}", "datapath: kernel, queues: [{link: trunk, queue: 1, min: 4Mbit}]}").Replace(request))
	l.must("exec", "band/ctl", "-d", "--", "python3", "-c", controller)
	eventually(t, 30*time.Second, func() error { return l.crosses("band/a", "b") })
	idle := l.echoes(0)
	l.must("exec", "band/a", "-d", "--", "python3", "-c", pacedFlood, "b", "9")
	l.must("exec", "band/b", "-d", "--", "python3", "-c", pacedFlood, "a", "9")
	time.Sleep(time.Second) // until queues are full
	stall.Try(t, func() (float64, error) {
		from := len(l.must("logs", "band/ctl"))
		var had float64
		if out := l.must("exec", "band/b", "--", "python3", "-c", countedDatagrams); true {
			if _, err := fmt.Sscan(out, &had); err != nil {
				t.Fatalf("%q: %v", out, err)
			}
		}
		waited := 0.0
		all := l.echoes(from)
		if len(all) != 2 {
			return 0, fmt.Errorf("echoes on %d connections", len(all))
		}
		for pid, list := range all {
			if len(idle[pid]) == 0 {
				t.Fatal("a connection is not the one that it was")
			}
			t.Logf("echo: median %.2f ms of %d, longest %.2f; idle %.2f", middle(list), len(list), slices.Max(list), middle(idle[pid]))
			waited = max(waited, middle(list))
		}
		t.Logf("data had %.4f of the rate", had/10e6)
		if waited > 12 {
			return waited, fmt.Errorf("an echo took %.1f ms", waited)
		}
		if had < 0.99*10e6 {
			return 1 - had/10e6, fmt.Errorf("data had %.4f of the rate", had/10e6)
		}
		return 0, nil
	})
	l.must("down", "band")
}

// echoes are how long echoes took, ms, by connection, as the controller's log has them
// from a byte on.
func (l *lab) echoes(from int) map[string][]float64 {
	l.t.Helper()
	all := make(map[string][]float64)
	for line := range strings.Lines(l.must("logs", "band/ctl")[from:]) {
		var pid string
		var ms float64
		if n, _ := fmt.Sscanf(line, "echo %s %g", &pid, &ms); n == 2 {
			all[pid] = append(all[pid], ms)
		}
	}
	return all
}

func middle(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
