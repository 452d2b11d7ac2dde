package vnode

import (
	"strconv"
	"testing"

	"sublet/plan"
	"sublet/vnet"
)

// fillSockets queues datagrams at sockets that nobody reads, up to 256 MiB of them,
// and prints how many MiB are held.
const fillSockets = `import os, socket
send, held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), []
os.system("ip link set lo up")
for _ in range(1000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    s.bind(("127.0.0.1", 0))
    for _ in range(256):
        try: send.sendto(bytes(1000), s.getsockname())
        except OSError: pass
    held.append(s)
bytes = 0
for s in held:
    s.setblocking(False)
    while True:
        try: bytes += len(s.recv(2000))
        except BlockingIOError: break
print(bytes >> 20)
`

// Datagrams that nobody reads stay within a node's memory, also on version 1 of control
// groups, where another limit counts them.
func TestSocketsOfANodeAreBounded(t *testing.T) {
	p, h := newPart(t)
	n := plan.VNode{Lease: demo, Node: "n0", Owner: 4242, Memory: 64 * vnet.MiB}
	do(t, p, plan.Add, names(), n)
	if h.Group(n.Key()).Memory() != int64(n.Memory) {
		t.Skip("nobody limits memory here")
	}
	out, _ := run(t, p, n, "python3", "-c", fillSockets)
	// On version 2 the kernel ends the program instead, and nothing is printed.
	if held, err := strconv.Atoi(out); err == nil && (held > int(n.Memory/vnet.MiB) || held == 0) {
		t.Errorf("sockets hold %d MiB under a limit of %v", held, n.Memory)
	}
}
