package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/lab/guest"
)

// A function of chains that is a virtual machine: packets pass the bridge that its own
// kernel has between its interfaces, in both directions. While it is switched off they
// go past it, and the lease says so.
func TestSoakFunctionIsAMachine(t *testing.T) {
	t.Parallel()
	images := t.TempDir()
	guest.Disk(t, filepath.Join(images, "small.raw"))
	l := newLab(t, examples+"substrate/two-hosts.yaml", "--images", images)
	l.up(`network: boxed
nodes:
  - {name: a}
  - {name: b}
functions:
  - {name: box, kind: vm, image: small.raw, memory: 256MiB, restart: "no", probe: true}
links:
  - {ends: [a, b], rate: 50Mbit}
chains:
  - {name: web, from: a, to: b, match: {proto: tcp, dst_port: 80}, via: [box], rate: 10Mbit, reverse: mirror, on-failure: bypass}
`)
	l.must("exec", "-d", "boxed/b", "--", "python3", "-c", `
import socket
s = socket.create_server(("", 80))
while True: c, _ = s.accept(); c.sendall(bytes(100000)); c.close()`)
	address := addressOfNode(l, "boxed", "b")
	fetches := func() error {
		return l.runs("exec", "boxed/a", "--", "python3", "-c", fmt.Sprintf(
			"import socket; s = socket.create_connection((%q, 80), timeout=3); assert len(s.makefile('rb').read()) == 100000", address))
	}
	passed := func() (packets uint64, dead bool) {
		for _, h := range l.hops("boxed") {
			if h.Hop == "box" {
				packets, dead = packets+h.Packets-h.Drops["dead"], dead || h.Dead
			}
		}
		return packets, dead
	}
	eventually(t, 2*time.Minute, func() error { // in software it takes some seconds to start
		if r := l.sublet("logs", "boxed/box"); !strings.Contains(r.out, "machine login") {
			return fmt.Errorf("the machine has not started: %q", r.out)
		}
		return nil
	})
	l.typesAt("boxed/box", "brctl addbr br0; brctl addif br0 eth0; brctl addif br0 eth1; ip link set br0 up")
	eventually(t, time.Minute, func() error {
		before, _ := passed()
		if err := fetches(); err != nil {
			return err
		}
		if after, dead := passed(); dead || after < before+70 {
			return fmt.Errorf("%d packets passed the machine, dead: %t", after-before, dead)
		}
		return nil
	})
	l.typesAt("boxed/box", "{ sleep 1; poweroff -f; } & true")
	eventually(t, time.Minute, func() error {
		if err := fetches(); err != nil {
			return err
		}
		if _, dead := passed(); !dead {
			return fmt.Errorf("the hop of the machine that is off is not dead: %+v", l.hops("boxed"))
		}
		return nil
	})
	l.must("down", "boxed")
}
