package test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sublet/internal/stall"
	"sublet/lab/guest"
)

// hostileNode runs all of this at once, for ever: it computes, sends above the rate of
// its link, makes processes and memory until it gets no more, and floods its disk and
// what is kept of its output.
const hostileNode = `B="busybox"; command -v busybox >/dev/null || B=
while :; do :; done &
while :; do $B nc p1 9 </dev/zero >/dev/null 2>&1; done &
while :; do $B cat /dev/zero >/tmp/fill 2>/dev/null; done &
while :; do $B cat /dev/zero | $B tail >/dev/null 2>&1; done &
while :; do for i in 1 2 3 4 5 6 7 8 9; do $B sleep 0 & done 2>/dev/null; done &
while :; do echo "a line of output that nobody reads, again and again"; done`

// hostileMachineDoes is that in a machine, line by line at its console. It resolves no
// names.
var hostileMachineDoes = []string{
	"{ while :; do nc 10.0.0.2 9 </dev/zero >/dev/null 2>&1; done; } & true",
	"{ while :; do cat /dev/zero >/full 2>/dev/null; done; } & true",
	"{ while :; do for i in 1 2 3 4 5 6 7 8 9; do sleep 0 & done; done; } 2>/dev/null & true",
	"{ while :; do cat /bin/busybox; done; } & true", // the serial line, last
}

// hostileRuntimes are what the hostile node is.
var hostileRuntimes = []struct{ name, node string }{
	{"namespace", ""},
	{"container", "image: busybox.tar, "},
	{"machine", "kind: vm, image: small.raw, disk: 64MiB, "},
}

// A tenant whose node does its worst takes nothing of a leased link on its hosts, nor
// of what the hosts send, whatever the node is.
//
//	alice, 400M     a ====== backbone ====== b
//	the hosts      h1 - - - - -200M- - - - - h2
//	bob, 100M       m1 ---------------------- p1
func TestSoakHostileNodes(t *testing.T) {
	if _, err := exec.LookPath("iperf3"); err != nil {
		t.Skip("iperf3 is not installed: tools/install-deps installs it")
	}
	images := busyboxImage(t)
	guest.Disk(t, filepath.Join(images, "small.raw"))
	l := newLab(t, "demo", "--images", images)
	leased := l.tenants(alice)[0]
	l.isMeasured(leased)
	for _, runtime := range hostileRuntimes {
		request := l.file("lan.yaml", fmt.Sprintf(`network: lan
nodes:
  - {name: m1, %scpu: %g, memory: 256MiB, host: h1}
  - {name: p1, host: h2, run: [{cmd: [python3, -c, "import socket\nS = socket.create_server(('', 9))\nwhile 1:\n c = S.accept()[0]\n while c.recv(1 << 16): pass"], ready: 9}]}
links:
  - {ends: [m1, p1], rate: 100Mbit}
`, runtime.node, hostileShare))
		stall.Try(t, func() (lacked float64, wrong error) {
			var idle, attacked [2][]float64
			for range hostileRounds {
				l.rates(leased, &idle)
				l.must("up", request)
				l.attackFrom(runtime.name)
				l.rates(leased, &attacked)
				l.isFlooded() // to the end
				l.must("down", "lan")
			}
			lost, harm := harmed(t, runtime.name, idle, attacked)
			return max(lacked, lost), errors.Join(wrong, harm)
		})
	}
	l.settled()
}

// attackFrom has lan/m1 begin, and returns when its link is loaded.
func (l *lab) attackFrom(runtime string) {
	l.t.Helper()
	if runtime == "machine" {
		for _, line := range hostileMachineDoes {
			l.types(line)
		}
	} else {
		l.must("exec", "-d", "lan/m1", "--", "sh", "-c", hostileNode)
	}
	l.isFlooded()
}

// isFlooded returns when a megabyte more has come to lan/p1.
func (l *lab) isFlooded() {
	l.t.Helper()
	received := func() int { return passed(l.t, l.run+"/netns/h2/root.lan.p1", "eth0").bytesIn }
	begin := received()
	eventually(l.t, 20*time.Second, func() error {
		if now := received(); now < begin+1<<20 {
			return fmt.Errorf("m1 has sent %d bytes", now-begin)
		}
		return nil
	})
}
