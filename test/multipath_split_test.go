package test

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vnet"
)

// unlikeSpines has two paths between its leaves that hold a link of 36 Mbit/s
// only together, and only in parts of 27 and 9.
//
//	                    -27M- spine1 -27M-
//	                  /                    \
//	x: h1 -40M- leaf1                        leaf2 -40M- h2: y
//	                  \                    /
//	                    - 9M- spine2 - 9M-
const unlikeSpines = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
switches: [leaf1, leaf2, spine1, spine2]
links:
  - {ends: [h1, leaf1], capacity: 40Mbit}
  - {ends: [h2, leaf2], capacity: 40Mbit}
  - {ends: [leaf1, spine1], capacity: 27Mbit}
  - {ends: [leaf2, spine1], capacity: 27Mbit}
  - {ends: [leaf1, spine2], capacity: 9Mbit}
  - {ends: [leaf2, spine2], capacity: 9Mbit}
`

// TestLinkOverTwoRelayedPaths: a link over two leased paths, each pinned to its
// own spine, keeps the minimum that only both together hold; each path gets
// its share of the flows, in packets through its spine; and none is lost, those
// sent in large pieces neither.
func TestLinkOverTwoRelayedPaths(t *testing.T) {
	needFabric(t)
	l := newLab(t, unlikeSpines)
	l.up("network: wide\nnodes: [{name: x, host: h1}, {name: y, host: h2}]\nlinks: [{ends: [x, y], rate: 36Mbit, paths: 2}]\n")
	l.settled()
	spines := l.spinesOf("wide", "x-y")
	if spines["spine1"] != 3*vnet.ShareUnits/4 || spines["spine2"] != vnet.ShareUnits/4 {
		t.Fatalf("shares by spine: %v", spines)
	}
	flows := l.newDatagrams()
	flows.sharesAreKept(spines)
	flows.piecesArrive()
	flows.close()
	l.checked("wide", broken, "--duration", "3s")
	l.must("down", "wide")
}

// spinesOf is a link's shares by the switch that its paths go by.
func (l *lab) spinesOf(network, link string) map[string]int {
	l.t.Helper()
	spines := make(map[string]int)
	for _, share := range l.sharesOf(network, link) {
		for _, name := range share.Path {
			if spine, ok := strings.CutPrefix(name, "leaf1-"); ok {
				spines[spine] += share.Units
			}
		}
	}
	return spines
}

// datagrams are sent from node x of network wide, and counted at y by size.
type datagrams struct {
	*lab
	in   *net.UDPConn
	to   string
	seen [1 << 11]atomic.Int64
}

func (l *lab) newDatagrams() *datagrams {
	l.t.Helper()
	d := &datagrams{lab: l, to: strings.Fields(l.must("exec", "wide/x", "--", "getent", "hosts", "y"))[0] + ":9"}
	within(l.t, l.ofWide("h2", "y"), func() (err error) {
		d.in, err = net.ListenUDP("udp", &net.UDPAddr{Port: 9})
		return err
	})
	const all = 32 << 20 // so that nothing is lost while the reader waits for a processor
	if err := socket(d.in, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, all) }); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(d.close)
	go func() {
		for b := make([]byte, len(d.seen)); ; {
			n, err := d.in.Read(b)
			if err != nil {
				return // closed
			}
			d.seen[n].Add(1)
		}
	}()
	return d
}

func (d *datagrams) close() { _ = d.in.Close() }

// ofWide is the file of a node's namespace.
func (l *lab) ofWide(host, node string) string {
	return filepath.Join(l.run, "netns", host, "root.wide."+node)
}

// send gives each of so many flows, a new socket each, to write; slowly, so
// that no queue fills.
func (d *datagrams) send(flows int, write func(*net.UDPConn) error) {
	d.t.Helper()
	within(d.t, d.ofWide("h1", "x"), func() error {
		for range flows {
			c, err := net.Dial("udp", d.to)
			if err != nil {
				return err
			}
			if err := write(c.(*net.UDPConn)); err != nil {
				return err
			}
			c.Close()
		}
		return nil
	})
}

// arrive waits for so many datagrams of a size, and no more.
func (d *datagrams) arrive(size, want int) {
	d.t.Helper()
	eventually(d.t, 20*time.Second, func() error {
		if n := int(d.seen[size].Load()); n != want {
			return fmt.Errorf("%d of %d datagrams of %d bytes have arrived", n, want, size)
		}
		return nil
	})
}

// sharesAreKept sends a thousand flows and counts what goes by which spine.
// Flows are dealt by a hash: of n, a share p gets n*p, give or take
// sqrt(n*p*(1-p)), here 1.4 % of n; a sixteenth is more than four times that.
func (d *datagrams) sharesAreKept(spines map[string]int) {
	d.t.Helper()
	const flows, each, size = 1000, 5, 100
	passed := make(map[string]int)
	for spine := range spines {
		passed[spine] = d.arrived(spine)
	}
	d.send(flows, func(c *net.UDPConn) error {
		for range each {
			if _, err := c.Write(make([]byte, size)); err != nil {
				return err
			}
		}
		time.Sleep(time.Millisecond) // 6 Mbit/s
		return nil
	})
	d.arrive(size, flows*each)
	for spine, units := range spines {
		n, want := d.arrived(spine)-passed[spine], flows*each*units/vnet.ShareUnits
		if off := n - want; off < -flows*each/16 || off > flows*each/16 {
			d.t.Errorf("%d packets by %s, want about %d", n, spine, want)
		}
	}
}

// piecesArrive sends datagrams ten at a time, which relays and receivers take
// whole, and which are cut for y's socket.
func (d *datagrams) piecesArrive() {
	d.t.Helper()
	const flows, each, size = 50, 10, 1000
	whole := d.received("h2", "slopen")
	d.send(flows, func(c *net.UDPConn) error {
		if err := socket(c, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, size) }); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond) // 8 Mbit/s, which either path holds
		_, err := c.Write(make([]byte, each*size))
		return err
	})
	d.arrive(size, flows*each)
	if n := d.received("h2", "slopen") - whole; n < flows {
		d.t.Errorf("%d of %d packets came whole through the relays", n, flows)
	}
}

// socket sets an option of a connection's.
func socket(c *net.UDPConn, set func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = set(int(fd)) })
	return errors.Join(failed, err)
}
