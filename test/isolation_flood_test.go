package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// sameNetwork is the network that both tenants ask for, to the last address: a on
// h1 has one link to b on h2 and one to c beside it.
//
//	h1:  c ---800M--- a       h2
//	                  |
//	                  +---800M--- b
const sameNetwork = `network: net
nodes:
  - {name: a, host: h1, address: 10.9.0.1}
  - {name: b, host: h2, address: 10.9.0.2}
  - {name: c, host: h1, address: 10.9.0.3}
links:
  - {ends: [a, b], max: 800Mbit}
  - {ends: [a, c], max: 800Mbit}
`

var places = map[string]string{"a": "h1", "b": "h2", "c": "h1"}

// threeHosts has a host that carries neither network.
//
//	h1 -2G- s1 -2G- h2
//	        |2G
//	        h3
const threeHosts = `hosts:
  - {name: h1, site: lab, cpu: 4, memory: 4GiB}
  - {name: h2, site: lab, cpu: 4, memory: 4GiB}
  - {name: h3, site: lab, cpu: 4, memory: 4GiB}
switches: [s1]
links:
  - {ends: [h1, s1], capacity: 2Gbit}
  - {ends: [h2, s1], capacity: 2Gbit}
  - {ends: [h3, s1], capacity: 2Gbit}
`

// floodInside sends a plan's frames as fast as it can.
func floodInside(args []string) error {
	var p floodPlan
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return err
	}
	device, err := net.InterfaceByName(p.Device)
	if err != nil {
		return err
	}
	copy(p.Own[:], device.HardwareAddr)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: device.Index}); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(uint64(p.Own[5]), 1))
	frames := make([][]byte, 16384)
	for i := range frames {
		frames[i] = p.forge(r)
	}
	sent := 0
	for i := range p.Frames {
		if _, err := unix.Write(fd, frames[i%len(frames)]); err == nil {
			sent++
		}
	}
	fmt.Println(sent)
	return nil
}

// floodFrames per tenant and link make a million.
const floodFrames = 250_000

func TestSoakMillionFramesOfEqualNetworks(t *testing.T) { equalNetworksShareNothing(t, floodFrames) }

// A tenth of a million frames: every kind of them comes many times.
func TestEqualNetworksShareNothing(t *testing.T) { equalNetworksShareNothing(t, floodFrames/10) }

// Two tenants have networks that are equal in every name and address, on the
// same hosts. Both send frames to everybody's
// addresses, with tags, tunnels, lies and fragments of all kinds. Each link's
// other end gets what was sent by it; nobody else sees a single frame: no node
// of the other tenant, no other node of the same, no fabric of the other, no
// host, no switch, nor the machine; and no IP stack outside the nodes receives
// one.
func equalNetworksShareNothing(t *testing.T, frames int) {
	t.Helper()
	l := newLab(t, threeHosts)
	both := l.tenants(alice, bob)
	for _, c := range both {
		c.up(sameNetwork)
	}
	for _, c := range both {
		if r := c.shell("net/a", "ping -qc1 -W2 b && ping -qc1 -W2 c"); r.code != 0 {
			t.Fatalf("%s: own peers do not answer: %s%s", c.name(), r.out, r.err)
		}
	}
	silent, arrive := l.wiretaps(both)
	// Control: the taps work. Below the tunnel they hear the frames, when these
	// are taken for another network's.
	arrive = append(arrive, tap(t, l.host("h2"), "control on h2", outside(alice, 0, both[0].vni("h1")+1)))
	before := l.quiet(both)
	var senders sync.WaitGroup
	for i, c := range both {
		p := l.targets(both, both[1-i])
		p.Frames = frames
		for link := range 2 {
			p.Device, p.Signature = fmt.Sprintf("eth%d", link), signed(c.uid, byte(link))
			text, _ := json.Marshal(p)
			senders.Go(func() {
				if r := c.attack("net/a", "flood", string(text)); r.code != 0 || strings.TrimSpace(r.out) == "0" {
					t.Errorf("%s: flood by eth%d: %s%s", c.name(), link, r.out, r.err)
				}
			})
		}
	}
	senders.Wait()
	for _, w := range silent {
		w.silent()
	}
	for _, w := range arrive {
		n := w.count()
		t.Logf("%s: %d of %d frames", w.what, n, frames)
		if int(n) < frames/2 {
			t.Errorf("%s: only %d of %d frames: the test shows nothing", w.what, n, frames)
		}
	}
	for where, now := range l.stacks(both) {
		for name, value := range now {
			if value != before[where][name] {
				t.Errorf("%s: %s grew from %d to %d", where, name, before[where][name], value)
			}
		}
	}
	for _, c := range both {
		for node := range places { // each has poisoned their own network with false ARP
			c.must("exec", "net/"+node, "--", "ip", "neighbour", "flush", "all")
		}
		if r := c.shell("net/a", "ping -qc1 -W2 b && ping -qc1 -W2 c"); r.code != 0 {
			t.Errorf("%s: own peers do not answer after the floods: %s%s", c.name(), r.out, r.err)
		}
	}
	l.settled()
}
