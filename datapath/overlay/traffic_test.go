package overlay

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// transfer sends bytes by TCP from host 0's node to host 1's, and compares.
func (l *lab) transfer(size int64) {
	l.t.Helper()
	listener := l.listen(l.hosts[1].node, inner(1))
	defer listener.Close()
	got := make(chan [32]byte, 1)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			got <- [32]byte{}
			return
		}
		defer c.Close()
		h := sha256.New()
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		_, _ = io.Copy(h, c)
		got <- [32]byte(h.Sum(nil))
	}()
	c := l.dial(l.hosts[0].node, listener.Addr().String())
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	h := sha256.New()
	source := io.LimitReader(rand.NewChaCha8([32]byte{1}), size)
	if _, err := io.Copy(io.MultiWriter(c, h), source); err != nil {
		l.t.Errorf("send %d bytes: %v\n%s", size, err, l.tell())
	}
	c.Close()
	if <-got != [32]byte(h.Sum(nil)) {
		l.t.Errorf("other bytes arrive than were sent\n%s", l.tell())
	}
}

func (l *lab) listen(namespace, at string) (listener net.Listener) {
	l.t.Helper()
	ns, err := kernel.OpenNamespace(namespace)
	check1(l.t, err)
	defer ns.Close()
	check1(l.t, kernel.In(ns, func() (err error) {
		listener, err = net.Listen("tcp", at+":0")
		return err
	}))
	return listener
}

func (l *lab) dial(namespace, to string) (c net.Conn) {
	l.t.Helper()
	ns, err := kernel.OpenNamespace(namespace)
	check1(l.t, err)
	defer ns.Close()
	check1(l.t, kernel.In(ns, func() (err error) {
		c, err = net.DialTimeout("tcp", to, 5*time.Second)
		return err
	}))
	return c
}

// Old commands of SIOCETHTOOL (linux/ethtool.h) that set a feature.
const (
	setTXChecksum, setTSO, setGSO = 0x17, 0x1f, 0x24
)

// offload switches a feature of a device.
func (l *lab) offload(namespace, device string, command uint32, on bool) {
	l.t.Helper()
	value := struct{ command, data uint32 }{command, 0}
	if on {
		value.data = 1
	}
	ns, err := kernel.OpenNamespace(namespace)
	check1(l.t, err)
	defer ns.Close()
	check1(l.t, kernel.In(ns, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var request struct {
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte
		}
		copy(request.name[:], device)
		request.data = unsafe.Pointer(&value)
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
			return fmt.Errorf("feature %#x of %s: %w", command, device, errno)
		}
		return nil
	}))
}

// Large packets arrive whole whether the wire cuts them or the kernel before
// it, with checksums by the device or not.
func TestSegmentsAndChecksums(t *testing.T) {
	l := newLab(t)
	for i, h := range l.hosts {
		l.ip(h.node, "neigh", "replace", inner(1-i), "lladdr", mac(1-i), "dev", "eth0", "nud", "permanent")
	}
	for _, wireDoes := range []struct {
		name      string
		tso, csum bool
	}{{"all", true, true}, {"checksums", false, true}, {"nothing", false, false}} {
		for _, h := range l.hosts {
			l.offload(h.Namespace, wire, setTXChecksum, wireDoes.csum)
			l.offload(h.Namespace, wire, setTSO, wireDoes.tso)
			l.offload(h.Namespace, wire, setGSO, wireDoes.tso)
		}
		for _, p := range protocols {
			for v, under := range map[int]func(int) netip.Addr{4: under4, 6: under6} {
				t.Run(fmt.Sprintf("%s over IPv%d, the wire does %s", p.name, v, wireDoes.name), func(t *testing.T) {
					l.t = t
					l.tunnel(p.name, under)
					l.ping(inner(1))
					l.transfer(8 << 20)
				})
			}
		}
	}
}

// The kernel's own VXLAN device and an entry understand each other.
func TestKernelVXLANBothWays(t *testing.T) {
	l := newLab(t)
	check1(t, l.hosts[0].part.Do(t.Context(), plan.Step{Op: plan.Add, Item: item(0, "", under4)}))
	far := l.hosts[1]
	// The device in place of host 1's node, which lends its address.
	l.ip(far.node, "link", "del", "eth0")
	l.ip(far.Namespace, strings.Fields(fmt.Sprintf("link add vx type vxlan id %d local %s remote %s dev %s dstport 4789 srcport 768 832 noudpcsum",
		number, under4(1), under4(0), wire))...)
	l.ip(far.Namespace, "link", "set", "vx", "address", mac(1), "mtu", "1450", "netns", far.node)
	l.ip(far.node, "addr", "add", inner(1)+"/24", "dev", "vx")
	l.ip(far.node, "link", "set", "vx", "up")
	l.ping(inner(1))
	l.transfer(8 << 20)
	back := l.hosts[0].node
	l.hosts[0].node, far.node = far.node, back // and the other way
	defer func() { l.hosts[0].node, far.node = back, l.hosts[0].node }()
	l.reverse(8 << 20)
}

// reverse is transfer with exchanged nodes, whose addresses stay theirs.
func (l *lab) reverse(size int64) {
	l.t.Helper()
	listener := l.listen(l.hosts[1].node, inner(0))
	defer listener.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		n, _ := io.Copy(io.Discard, c)
		got <- n
	}()
	c := l.dial(l.hosts[0].node, listener.Addr().String())
	_, err := io.Copy(c, io.LimitReader(rand.NewChaCha8([32]byte{2}), size))
	c.Close()
	if n := <-got; n != size || err != nil {
		l.t.Errorf("%d of %d bytes arrive: %v", n, size, err)
	}
}
