package test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/internal/stall"
)

// churnInside fills a device with addresses and then adds and takes some all
// the time: whoever reads the list sees it change under their eyes.
func churnInside([]string) error {
	device, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	address := func(i int) kernel.Address {
		ip := netip.AddrFrom4([4]byte{10, byte(100 + i>>16), byte(i >> 8), byte(i)})
		return kernel.Address{Index: device.Index, Local: ip, Reach: netip.PrefixFrom(ip, ip.BitLen())}
	}
	c, err := kernel.Dial()
	if err != nil {
		return err
	}
	for i := range 4000 {
		if err := c.AddAddress(address(i)); err != nil && !kernel.Exists(err) {
			return fmt.Errorf("after %d: %w", i, err)
		}
	}
	fmt.Fprintln(os.Stderr, "churning")
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			c, err := kernel.Dial()
			if err != nil {
				return
			}
			for end := time.Now().Add(time.Minute); time.Now().Before(end); {
				_ = c.AddAddress(address(1<<16 + w))
				_ = c.DeleteAddress(address(1<<16 + w))
			}
		})
	}
	workers.Wait()
	return nil
}

// lines is a writer that says when a word was written.
type lines struct {
	word string
	once sync.Once
	seen chan struct{}
}

func awaiting(word string) *lines { return &lines{word: word, seen: make(chan struct{})} }

func (l *lines) Write(p []byte) (int, error) {
	if strings.Contains(string(p), l.word) {
		l.once.Do(func() { close(l.seen) })
	}
	return len(p), nil
}

// background starts an attack and waits until it says word; it ends with the
// test, or earlier by stop.
func (c *tenant) background(word, node string, args ...string) (stop func()) {
	c.t.Helper()
	self := c.attackProgram()
	cmd := c.command(c.t.Context(), append([]string{"exec", node, "--", self, insideCommand}, args...)...)
	said := awaiting(word)
	cmd.Stderr = said
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c.t.Cleanup(stop)
	select {
	case <-said.seen:
	case <-time.After(30 * time.Second):
		c.t.Fatalf("%s: %v does not say %s", c.name(), args, word)
	}
	return stop
}

// A tenant who changes their namespace without a pause, so that it can never be
// read as a whole, holds nobody else up on the same hosts.
func TestRestlessTenantHoldsNobodyUp(t *testing.T) {
	l := newLab(t, "demo")
	both := l.tenants(alice, bob)
	both[0].up(pair("net", "max: 100Mbit"))
	both[0].background("churning", "net/a", "churn")
	for range 3 {
		watch := stall.Start()
		both[1].up(pair("net", "max: 100Mbit"))
		if r := both[1].shell("net/a", "ping -qc1 -W2 b"); r.code != 0 {
			t.Errorf("own peer does not answer: %s", r.out)
		}
		both[1].must("down", "net")
		watch.InTime(t, 10*time.Second, "a lease from request to release")
	}
	both[0].must("down", "net")
}

// A tenant can break their own network in every way that root of a node has.
// The agent mends it, and the other tenant, on the same hosts and wires,
// notices nothing: not one of their packets is lost.
func TestSabotageHurtsOnlyItself(t *testing.T) {
	l := newLab(t, "demo")
	both := l.tenants(alice, bob)
	for _, c := range both {
		c.up(pair("net", "max: 100Mbit"))
	}
	stream := make(chan result, 1)
	go func() { stream <- both[1].shell("net/a", "ping -q -i0.02 -c500 -W2 b") }()
	for _, script := range []string{
		"ip link del eth0",
		"ip link set eth0 down; ip address flush dev eth0; ip link set eth0 up",
		"ip link set eth0 down; ip link set eth0 name eth9; ip link set eth9 up",
		"ip link del eth0; ip link set lo down; ip link set lo name eth0",
		"ip link set eth0 netns $$; unshare -n sleep 1 & sleep 0.2; ip link set eth0 netns $!; wait",
		"ip link set eth0 mtu 68; ip link set eth0 mtu 9000; ip address flush dev eth0; ip route flush table main",
		"ip link del eth0; ip link add eth0 type veth peer name l0a",
		"for i in 1 2 3 4 5; do ip link del eth0; sleep 0.1; done",
	} {
		both[0].shell("net/a", script)
		eventually(t, 15*time.Second, func() error {
			if r := both[0].shell("net/a", "ping -qc1 -W1 b"); r.code != 0 {
				return fmt.Errorf("after %q: %s%s%s", script, r.out, r.err, both[0].must("leases"))
			}
			return nil
		})
	}
	if r := <-stream; !strings.Contains(r.out, "500 received") {
		t.Errorf("the other tenant's packets: %s%s", r.out, r.err)
	}
	l.settled()
}
