package vnode

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/creack/pty"

	"sublet/plan"
)

// Control groups of the host are not seen by mounting them: neither where the node is,
// nor in namespaces of its own.
func TestControlGroupsAreNotMounted(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the numbers of calls are those of amd64")
	}
	p, _ := newPart(t)
	do(t, p, plan.Add, names(), node("n0", 4242))
	python := `import ctypes, os; c = ctypes.CDLL(None, use_errno=True)
def call(*args):
    ctypes.set_errno(0)
    return "done" if c.syscall(*args) >= 0 else os.strerror(ctypes.get_errno())
new, mounts, users = 0x02000000, 0x00020000, 0x10000000
print(call(272, new), call(272, new | users), call(272 | 0x40000000, new), call(56, new | 17, 0, 0, 0, 0), call(435, ctypes.create_string_buffer(88), 88), sep=", ")
print(call(272, users | mounts))
kinds = [(b"cgroup2", None)] + [(b"cgroup", l.split()[0].encode()) for l in open("/proc/cgroups") if l[0] != "#"] + [(b"cgroup", b"none,name=systemd")]
print(len(kinds) > 5, [k for k in kinds if c.mount(b"none", b"/mnt", k[0], 0, k[1]) == 0])
print(c.mount(b"none", b"/mnt", b"tmpfs", 0, None))`
	out, code := run(t, p, node("n0", 4242), "python3", "-c", python)
	want := "Operation not permitted, Operation not permitted, Operation not permitted, Operation not permitted, Function not implemented\ndone\nTrue []\n0"
	if code != 0 || out != want {
		t.Errorf("%d, %q, want %q", code, out, want)
	}
}

// A node has as many pseudo-terminals as are its own, however many it asks for, and its
// neighbour and the host have theirs meanwhile.
func TestTerminalsOfANode(t *testing.T) {
	p, _ := newPart(t)
	do(t, p, plan.Add, names(), node("n0", 4242), node("n1", 4243))
	const all = `import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
held = []
try:
    while len(held) < 300: held.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError as e: print(e.strerror)
print(len(held), flush=True)
`
	greedy, err := p.Command(node("n0", 4242).Key(), []string{"python3", "-c", all + "sys.stdin.read()"}, Options{})
	check(t, err)
	defer greedy.Done()
	in, err := greedy.StdinPipe()
	check(t, err)
	out, err := greedy.StdoutPipe()
	check(t, err)
	check(t, greedy.Start())
	said := make([]byte, 100)
	n := 0
	for n < len(said) && strings.Count(string(said[:n]), "\n") < 2 {
		more, err := out.Read(said[n:])
		n += more
		if err != nil {
			break
		}
	}
	if got, want := string(said[:n]), "No space left on device\n256\n"; got != want {
		t.Errorf("greedy: %q, want %q", got, want)
	}
	if got, code := run(t, p, node("n1", 4243), "python3", "-c", `import os; print(len(os.openpty()))`); code != 0 || got != "2" {
		t.Errorf("neighbour: %d, %q", code, got)
	}
	ptmx, tty, err := pty.Open()
	check(t, err)
	closeAll([]*os.File{ptmx, tty})
	check(t, in.Close())
	check(t, greedy.Wait())
}
