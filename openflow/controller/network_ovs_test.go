package controller_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sublet/openflow/controller"
)

// record is a log that is looked at while it is written.
type record struct {
	mu   sync.Mutex
	text []byte
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, b...)
	return len(b), nil
}

func (r *record) says(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.text, []byte(what))
}

// controlled is a ring whose switches a Network controls.
type controlled struct {
	*ring
	network  *controller.Network
	topology atomic.Pointer[controller.Topology]
	log      record
}

func newControlled(t *testing.T, protocol string, slices map[uint64]controller.Installed) *controlled {
	t.Helper()
	c := &controlled{}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &c.log), nil))
	network := controller.NewNetwork(log)
	c.network = network
	network.Slices = slices
	network.Topology = func(topology controller.Topology) { c.topology.Store(&topology) }
	at, _ := serve(t, controller.Config{
		Listen: netip.MustParseAddrPort("127.0.0.1:0"), App: network.App, Tick: network.Tick, Log: log,
	})
	c.ring = newRing(t, protocol, "tcp:"+at.String())
	return c
}

func (c *controlled) links(want int) {
	c.t.Helper()
	eventually(c.t, func() error {
		topology := c.topology.Load()
		if topology == nil || len(topology.Switches) != 3 || len(topology.Links) != want {
			return fmt.Errorf("%+v, %d links are wanted", topology, want)
		}
		return nil
	})
}

// has waits until bridges have so many entries of paths.
func (c *controlled) has(want [4]int) time.Duration {
	c.t.Helper()
	return eventually(c.t, func() error {
		for n := 1; n <= 3; n++ {
			if got := c.paths(n); len(got) != want[n] {
				return fmt.Errorf("br%d: %q, %d entries are wanted", n, got, want[n])
			}
		}
		return nil
	})
}

// In a ring of real switches, links are discovered, a frame to everybody comes
// once to each, stations reach each other over the shortest path, entries that are
// deleted or altered or went with the switch come back, and a path whose link goes
// takes the other way round.
func TestRingOfOpenVSwitch(t *testing.T) {
	for _, protocol := range []string{"OpenFlow13", "OpenFlow10"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := newControlled(t, protocol, nil)
			c.links(3)
			c.floodsOnce()
			c.repairs()
			c.goesRound()
			c.survivesRestart()
		})
	}
}

func (c *controlled) floodsOnce() {
	c.t.Helper()
	number, came := uint32(0), []uint32(nil)
	eventually(c.t, func() error { // until its port is known to lead to stations
		number++
		c.send(1, everybody, number)
		time.Sleep(50 * time.Millisecond)
		if came = append(came, c.received(3)...); len(came) == 0 {
			return fmt.Errorf("no frame to everybody comes")
		}
		return nil
	})
	c.comes(3, 1, 1000) // what was on its way has come
	came = append(came, c.received(3)...)
	slices.Sort(came)
	if len(slices.Compact(slices.Clone(came))) != len(came) {
		c.t.Errorf("frames to everybody came more than once: %v", came)
	}
}

func (c *controlled) repairs() {
	c.t.Helper()
	c.comes(1, 3, 1001)
	c.has([4]int{0, 2, 0, 2})
	before := c.paths(1)
	c.ofctl("del-flows", 1, "dl_src=02:00:00:00:00:01")
	c.t.Logf("entries were put right after %s", c.has([4]int{0, 2, 0, 2}))
	c.ofctl("mod-flows", 1, "dl_src=02:00:00:00:00:01,actions=drop")
	took := eventually(c.t, func() error {
		if got := c.paths(1); !slices.Equal(sorted(got), sorted(before)) {
			return fmt.Errorf("%q instead of %q", got, before)
		}
		return nil
	})
	c.t.Logf("altered entries were put right after %s", took)
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

func (c *controlled) goesRound() {
	c.t.Helper()
	c.run("ovs-vsctl", c.db(), "del-port", "p13")
	c.links(2)
	c.has([4]int{0, 2, 2, 2})
	c.comes(1, 3, 1002)
	c.comes(3, 1, 1003)
	for _, entry := range c.paths(1) {
		if strings.Contains(entry, "output:2") || strings.Contains(entry, "in_port=2") {
			c.t.Errorf("an entry over the link that is gone is left: %s", entry)
		}
	}
	c.run("ovs-vsctl", c.port([]string{c.db()}, "br1", "p13", 2, "type=patch", "options:peer=p31")...)
	c.links(3)
	c.has([4]int{0, 2, 0, 2})
}

func (c *controlled) survivesRestart() {
	c.t.Helper()
	c.restart()
	eventually(c.t, func() error {
		if topology := c.topology.Load(); len(topology.Stations) > 0 {
			return fmt.Errorf("stations behind a switch that is gone: %v", topology.Stations)
		}
		return nil
	})
	c.links(3)
	eventually(c.t, func() error {
		c.send(3, everybody, 2000)
		if topology := c.topology.Load(); len(topology.Stations) == 0 {
			return fmt.Errorf("nobody is known")
		}
		return nil
	})
	c.comes(1, 3, 2001)
	c.comes(3, 1, 2002)
	c.has([4]int{0, 2, 0, 2})
}
