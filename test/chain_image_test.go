package test

import (
	"fmt"
	"testing"
	"time"
)

// A function of chains that is a container: packets pass what its image runs between
// its interfaces, in both directions, and it sees no files of the host.
func TestFunctionIsAContainer(t *testing.T) {
	t.Parallel()
	l := newLab(t, examples+"substrate/two-hosts.yaml", "--images", busyboxImage(t))
	l.up(`network: boxed
nodes:
  - {name: a}
  - {name: b}
functions:
  - name: box
    image: busybox.tar
    run: [sh, -c, "brctl addbr br0 && brctl addif br0 eth0 && brctl addif br0 eth1 && ip link set br0 up && exec sleep 1000000"]
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: tcp, dst_port: 80}, via: [box], rate: 10Mbit, reverse: mirror}
`)
	address := addressOfNode(l, "boxed", "b")
	l.must("exec", "-d", "boxed/b", "--", "python3", "-c", `
import socket
s = socket.create_server(("", 80))
while True: c, _ = s.accept(); c.sendall(bytes(100000)); c.close()`)
	eventually(t, time.Minute, func() error {
		return l.runs("exec", "boxed/a", "--", "python3", "-c", fmt.Sprintf(
			"import socket; s = socket.create_connection((%q, 80), timeout=3); assert len(s.makefile('rb').read()) == 100000", address))
	})
	if came := l.came("boxed", "box"); came < 70 {
		t.Errorf("%d packets came to the container", came)
	}
	if r := l.sublet("exec", "boxed/box", "--", "ls", "/usr"); r.code == 0 {
		t.Errorf("it sees files of the host: %s", r.out)
	}
	l.must("down", "boxed")
}

// addressOfNode is what a node of a network is known by.
func addressOfNode(l *lab, network, node string) string {
	view := decode[[]struct{ Addresses map[string][]string }](l.t, l.must("leases", network, "-o", "json"))
	if len(view) != 1 || len(view[0].Addresses[node]) == 0 {
		l.t.Fatalf("%s has no address: %+v", node, view)
	}
	return view[0].Addresses[node][0]
}
