package vnode

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// A ring of packets that takes 1 MiB, with its list of one block.
const oneRing = 1<<20 + 8

// takeRings takes rings until one is refused, says why and how many it has, and keeps them.
const takeRings = `import os, socket, struct, sys
def ring(blocks):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(263, (5, 13)[blocks % 2], struct.pack("IIII", 1 << 20, blocks, 2048, blocks << 9))
    return s
held = []
try:
    while len(held) < 100: held.append(ring(1))
except OSError as e: print(e.strerror, len(held), flush=True)
`

// ringsIn is what rings take in a node's network, as seen from outside. Its thread
// comes back: sessions end with the one that started them (PR_SET_PDEATHSIG).
func ringsIn(t *testing.T, h *kernel.Host, key string) uint64 {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	outside, err := os.Open("/proc/thread-self/ns/net")
	check(t, err)
	defer outside.Close()
	network, err := os.Open(h.Path(key))
	check(t, err)
	defer network.Close()
	check(t, unix.Setns(int(network.Fd()), unix.CLONE_NEWNET))
	book, err := kernel.FindRings()
	check(t, errors.Join(err, unix.Setns(int(outside.Fd()), unix.CLONE_NEWNET)))
	defer book.Close()
	held, err := book.Held()
	check(t, err)
	return held
}

// noRings skips where the kernel does not let them be bounded.
func noRings(t *testing.T) {
	t.Helper()
	for _, f := range kernel.Features() {
		if f.Name == "rings of packet sockets" && f.Lacks() {
			t.Skip(f.Err)
		}
	}
}

// All rings of a node are within a share of its memory, whoever of its sessions asks; its
// neighbour has its own, and they come back when they are let go.
func TestRingsOfANodeAreBounded(t *testing.T) {
	noRings(t)
	p, h := newPart(t)
	greedy := plan.VNode{Lease: demo, Node: "n0", Owner: 4242, Memory: 256 * vnet.MiB} // with room for what the race detector takes
	do(t, p, plan.Add, names(), greedy, node("n1", 4243))
	const most = 256 << 20 / ringShare / oneRing
	sum, sessions, last := 0, []*Command{}, []*os.File{}
	var said []*bufio.Scanner
	for range 3 {
		c, err := p.Command(greedy.Key(), []string{"python3", "-c", takeRings + "sys.stdin.read()"}, Options{})
		check(t, err)
		defer c.Done()
		in, ours, err := os.Pipe()
		check(t, err)
		defer ours.Close()
		c.Stdin = in
		out, err := c.StdoutPipe()
		check(t, err)
		c.Stderr = os.Stderr
		check(t, c.Start())
		in.Close()
		sessions, last, said = append(sessions, c), append(last, ours), append(said, bufio.NewScanner(out))
	}
	for _, s := range said {
		s.Scan()
		count, known := strings.CutPrefix(s.Text(), unix.ENOMEM.Error()+" ")
		if !known {
			count, known = strings.CutPrefix(s.Text(), "Cannot allocate memory ")
		}
		n, err := strconv.Atoi(count)
		if !known || err != nil {
			t.Fatalf("a session ended by %q", s.Text())
		}
		sum += n
	}
	if held := ringsIn(t, h, greedy.Key()); sum != most || held != most*oneRing {
		t.Errorf("%d rings of %d bytes in all, want %d", sum, held, most)
	}
	if out, code := run(t, p, node("n1", 4243), "python3", "-c", takeRings); code != 0 || out != "Cannot allocate memory "+strconv.Itoa(unlimitedRings/oneRing) {
		t.Errorf("neighbour: %d, %q", code, out)
	}
	closeAll(last)
	for _, c := range sessions {
		check(t, c.Wait())
	}
	if held := ringsIn(t, h, greedy.Key()); held != 0 {
		t.Errorf("%d bytes of rings are left", held)
	}
}

// What is asked for cannot be changed after it was judged, rings of other sizes and
// places are the kernel's to refuse, and networks of a tenant's own have none.
func TestRingsAreMadeAsJudged(t *testing.T) {
	noRings(t)
	p, h := newPart(t)
	n := plan.VNode{Lease: demo, Node: "n0", Owner: 4242, Memory: 64 * vnet.MiB}
	do(t, p, plan.Add, names(), n)
	python := `import ctypes, os, socket, struct, sys, threading
c = ctypes.CDLL(None, use_errno=True)
value = (ctypes.c_uint32 * 4)(1 << 20, 1, 2048, 512)
def ask(value, size):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    done = c.setsockopt(s.fileno(), 263, 5, value, size) == 0
    return s, "done" if done else os.strerror(ctypes.get_errno())
print(ask(value, 12)[1], ask(ctypes.c_void_p(16), 16)[1], ask((ctypes.c_uint32 * 4)(1, 1, 1, 1), 16)[1], sep=", ")
first, _ = ask(value, 16)
print(c.setsockopt(first.fileno(), 263, 5, (ctypes.c_uint32 * 4)(), 16), c.setsockopt(99, 263, 5, value, 16), os.strerror(ctypes.get_errno()))
stop = False
def change():
    while not stop: value[1] = 64; value[3] = 1 << 15; value[1] = 1; value[3] = 512
t = threading.Thread(target=change); t.start()
held = [s for s, _ in (ask(value, 16) for _ in range(300))]
stop = True; t.join()
print(c.unshare(0x40000000), ask((ctypes.c_uint32 * 4)(1 << 20, 1, 2048, 512), 16)[1], flush=True)
sys.stdin.read()`
	c, err := p.Command(n.Key(), []string{"python3", "-c", python}, Options{})
	check(t, err)
	defer c.Done()
	in, err := c.StdinPipe()
	check(t, err)
	out, err := c.StdoutPipe()
	check(t, err)
	c.Stderr = os.Stderr
	check(t, c.Start())
	s := bufio.NewScanner(out)
	for _, want := range []string{"Invalid argument, Bad address, Invalid argument", "0 -1 Bad file descriptor", "0 Operation not permitted"} {
		if s.Scan(); s.Text() != want {
			t.Errorf("%q, want %q", s.Text(), want)
		}
	}
	if held := ringsIn(t, h, n.Key()); held == 0 || held > 64<<20/ringShare {
		t.Errorf("rings take %d bytes", held)
	}
	check(t, in.Close())
	check(t, c.Wait())
}

// Programs that capture do so by rings, also when what started them has ended.
func TestCaptureInANode(t *testing.T) {
	noRings(t)
	p, h := newPart(t)
	n := plan.VNode{Lease: demo, Node: "n0", Owner: 4242, Memory: 512 * vnet.MiB}
	do(t, p, plan.Add, names(), n)
	for _, capture := range []string{"tcpdump -Z root -i lo -c 1 -w /tmp/seen", "tshark -i lo -c 1 -w /tmp/seen"} {
		program, _, _ := strings.Cut(capture, " ")
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("%s is not installed", program)
			continue
		}
		// The session has ended before it begins.
		c, err := p.Command(n.Key(), []string{"sh", "-c", "ip link set lo up; sleep 1; touch /tmp/seen; exec " + capture}, Options{Detach: true})
		check(t, err)
		check(t, c.Run())
		c.Done()
		for end := time.Now().Add(60 * time.Second); ringsIn(t, h, n.Key()) == 0; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				log, _ := os.ReadFile(p.logPath(n.Key()))
				t.Fatalf("%s has no ring: %s", program, log)
			}
		}
		out, code := run(t, p, n, "python3", "-c", `import os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.time() + 60
while os.stat("/tmp/seen").st_size < 100 and time.time() < end: s.sendto(b"x" * 100, ("127.0.0.1", 9)); time.sleep(.05)
print(os.stat("/tmp/seen").st_size > 100)`)
		if code != 0 || out != "True" {
			log, _ := os.ReadFile(p.logPath(n.Key()))
			t.Errorf("%s captured nothing: %d, %q, %s", program, code, out, log)
		}
	}
}
