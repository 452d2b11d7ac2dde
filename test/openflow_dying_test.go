package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/internal/stall"
	product "sublet/lab"
	"sublet/vnet"
)

// dyingSwitch never has a process that answers.
//
//	h1:  a -1M- s1 -control- a
const dyingSwitch = `network: dying
nodes:
  - {name: a, host: h1}
switches:
  - {name: s1, host: h1, kind: openflow, controller: ["ptcp:6653"]}
links:
  - {ends: [a, s1], rate: 1Mbit}
  - {name: c, ends: [s1, a], control: true}
`

// signals sends a signal to every process that a switch of a host has, as soon as it is
// there, until it is ended.
func (l *lab) signals(host, key string, s unix.Signal) (end func()) {
	group := filepath.Join(product.Cgroup(l.run), host, key, "cgroup.procs")
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			for _, file := range matches("/sys/fs/cgroup/pids/"+group, "/sys/fs/cgroup/"+group) {
				text, _ := os.ReadFile(file) // of one that is gone: none
				for _, word := range strings.Fields(string(text)) {
					if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
						_ = unix.Kill(pid, s)
					}
				}
			}
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() { close(done); <-ended }
}

// A switch whose process stands still, or ends, whenever it is started holds up nobody: a
// neighbour on its host gets and loses a network, and has one repaired, as before. Its
// lease says why, and works again once the switch may live.
func TestSwitchesThatDieHoldUpNobody(t *testing.T) {
	l := newLab(t, "demo")
	both := l.tenants(alice, bob)
	both[0].up(dyingSwitch)
	key := both[0].name() + ".dying.s1.openflow"
	for _, s := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		end := l.signals("h1", key, s)
		eventually(t, 60*time.Second, func() error {
			if state, why, _ := l.stateOf("dying"); state != vnet.Degraded || !strings.Contains(why, "switch s1: its process ") {
				return fmt.Errorf("%s: %s", state, why)
			}
			return nil
		})
		for range 2 {
			watch := stall.Start()
			both[1].up(pair("net", "rate: 1Mbit"))
			both[1].must("exec", "net/a", "--", "ip", "link", "del", "eth0")
			eventually(t, 60*time.Second, func() error { return both[1].crosses("net/a", "b") })
			both[1].must("down", "net")
			watch.InTime(t, 10*time.Second, "a neighbour's network, its repair and its end")
		}
		end()
		eventually(t, 180*time.Second, func() error {
			if state, why, _ := l.stateOf("dying"); state != vnet.Running {
				return fmt.Errorf("%s: %s", state, why)
			}
			return nil
		})
	}
	both[0].must("down", "dying")
}
