package overlay

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
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

// inside gives both nodes a device with an address of its own, and runs f with
// that device's addresses in the place of the nodes'.
func (l *lab) inside(make func(node string, i int) (device string)) {
	l.t.Helper()
	for i, h := range l.hosts {
		device := make(h.node, i)
		l.ip(h.node, "addr", "del", inner(i)+"/24", "dev", "eth0")
		l.ip(h.node, "addr", "add", inner(i)+"/24", "dev", device)
		l.ip(h.node, "link", "set", device, "up")
	}
}

// Tags, which the kernel keeps beside a packet, travel inside the tunnel, two
// at most; more are counted.
func TestTagsTravelInside(t *testing.T) {
	l := newLab(t)
	l.tunnel("", under4)
	l.ping(inner(1))
	for tags := range 4 {
		frame := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
		for i := range tags {
			frame = append(frame, 0x81, 0, 0, byte(5+i))
		}
		frame = append(append(frame, 0x88, 0xb5), make([]byte, 60)...) // IEEE local experimental
		if tags == 3 {
			before := l.drops(overlayDropDROP_NOT_CARRIED)
			l.raw(frame, nil)
			for end := time.Now().Add(5 * time.Second); l.drops(overlayDropDROP_NOT_CARRIED) == before && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if l.drops(overlayDropDROP_NOT_CARRIED) != before+1 {
				t.Error("three tags are not counted")
			}
			continue
		}
		if got := l.raw(frame, frame[:12]); !bytes.Equal(got, frame) {
			t.Errorf("of %d tags, in\n%x\narrives\n%x", tags, frame, got)
		}
	}
}

// raw sends a frame from host 0's node and returns what arrives in host 1's
// with the same beginning, the tag that the kernel took out put back.
func (l *lab) raw(frame, begins []byte) []byte {
	l.t.Helper()
	const all = 0x0300 // ETH_P_ALL in network order
	sockets := [2]int{}
	for i, h := range l.hosts {
		ns, err := kernel.OpenNamespace(h.node)
		check1(l.t, err)
		defer ns.Close()
		check1(l.t, kernel.In(ns, func() (err error) {
			if sockets[i], err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, all); err != nil {
				return err
			}
			device, err := net.InterfaceByName("eth0")
			if err != nil {
				return err
			}
			_ = unix.SetsockoptInt(sockets[i], unix.SOL_PACKET, unix.PACKET_AUXDATA, 1)
			_ = unix.SetsockoptTimeval(sockets[i], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
			return unix.Bind(sockets[i], &unix.SockaddrLinklayer{Protocol: all, Ifindex: device.Index})
		}))
		defer unix.Close(sockets[i])
	}
	_, err := unix.Write(sockets[0], frame)
	check1(l.t, err)
	for begins != nil {
		data, side := make([]byte, 2048), make([]byte, 256)
		n, m, _, _, err := unix.Recvmsg(sockets[1], data, side, 0)
		if err != nil {
			return nil
		}
		if bytes.HasPrefix(data[:n], begins) {
			return untag(data[:n], side[:m])
		}
	}
	return nil
}

// untag puts back a tag from struct tpacket_auxdata (linux/if_packet.h).
func untag(frame, side []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(side)
	if err != nil || len(messages) == 0 || len(messages[0].Data) < 20 || messages[0].Data[0]&unix.TP_STATUS_VLAN_VALID == 0 {
		return frame
	}
	d := messages[0].Data
	tag := []byte{d[19], d[18], d[17], d[16]}
	return append(append(append([]byte(nil), frame[:12]...), tag...), frame[12:]...)
}

// onBothWires tries something on wires that cut large packets, and on ones that
// bring them whole.
func onBothWires(t *testing.T, try func(t *testing.T, l *lab)) {
	for name, uncut := range map[string]bool{"cutting": false, "uncut": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			for _, h := range l.hosts {
				h.part.WiresCarryGSO = uncut
			}
			try(t, l)
		})
	}
}

// A tenant's own tunnel, with packets to be cut inside it, passes.
func TestTunnelsInTunnels(t *testing.T) { onBothWires(t, tunnelsInTunnels) }

func tunnelsInTunnels(t *testing.T, l *lab) {
	l.tunnel("", under4)
	l.inside(func(node string, i int) string {
		l.ip(node, "addr", "add", fmt.Sprintf("10.7.0.%d/24", i+1), "dev", "eth0")
		l.ip(node, "link", "add", "own", "type", "vxlan", "id", "3", "dstport", "4789",
			"local", fmt.Sprintf("10.7.0.%d", i+1), "remote", fmt.Sprintf("10.7.0.%d", 2-i))
		return "own"
	})
	l.ping(inner(1))
	l.transfer(4 << 20)
}

// What came by one tunnel leaves by another, uncut: by TCP, and by UDP sent in
// large pieces.
func TestLargePacketsPassTwoTunnels(t *testing.T) { onBothWires(t, largePacketsPassTwoTunnels) }

func largePacketsPassTwoTunnels(t *testing.T, l *lab) {
	l.tunnel("", under4)
	near, far := l.hosts[0], l.hosts[1]
	for i, h := range l.hosts {
		second := item(i, "", under4)
		second.VNI = number + 1
		check1(t, h.part.Do(t.Context(), plan.Step{Op: plan.Add, Item: second}))
	}
	// Host 1 sends everything back by the second tunnel, to another node of
	// host 0, whose answers take a short cut.
	fabric := near.Path(plan.Fabric(demo))
	l.patch(far.Path(plan.Fabric(demo)), plan.TrunkInside, plan.TrunkInside, number+1)
	third := l.namespace(near.Path(plan.Namespace(demo, "n3")))
	l.ip(third, "link", "add", "eth0", "address", mac(1), "type", "veth", "peer", "name", "l1a", "netns", fabric)
	l.ip(third, "addr", "add", inner(1)+"/24", "dev", "eth0")
	l.ip(third, "link", "set", "eth0", "mtu", "1450", "up")
	l.ip(third, "neigh", "replace", inner(0), "lladdr", mac(0), "dev", "eth0", "nud", "permanent")
	l.ip(near.node, "neigh", "replace", inner(1), "lladdr", mac(1), "dev", "eth0", "nud", "permanent")
	l.ip(fabric, "link", "set", "l1a", "up")
	l.patch(fabric, plan.TrunkInside, "l1a", 0)
	l.patch(fabric, "l1a", "l0a", 0)
	far.node = third
	l.ping(inner(1))
	l.transfer(4 << 20)
	l.segments(20)
	if c := l.drops(overlayDropDROP_REFUSED); c != 0 {
		t.Errorf("%d packets were refused", c)
	}
}

// segments sends datagrams by UDP_SEGMENT, a number at a time, from host 0's
// node to host 1's.
func (l *lab) segments(count int) {
	l.t.Helper()
	const size = 1000
	ns, err := kernel.OpenNamespace(l.hosts[1].node)
	check1(l.t, err)
	defer ns.Close()
	var sink net.PacketConn
	check1(l.t, kernel.In(ns, func() (err error) {
		sink, err = net.ListenPacket("udp", inner(1)+":6000")
		return err
	}))
	defer sink.Close()
	c := l.socket(l.hosts[0].node, inner(0)+":5000", inner(1)+":6000")
	defer c.Close()
	raw, err := c.(*net.UDPConn).SyscallConn()
	check1(l.t, err)
	check1(l.t, raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size) }))
	_, err = c.Write(make([]byte, count*size))
	check1(l.t, err)
	_ = sink.SetReadDeadline(time.Now().Add(5 * time.Second))
	for i := range count {
		if n, _, err := sink.ReadFrom(make([]byte, 65536)); err != nil || n != size {
			l.t.Fatalf("datagram %d of %d: %d bytes, %v\n%s", i, count, n, err, l.tell())
		}
	}
}

// Datagrams sent in large pieces arrive one by one, whether the wire takes them
// as they are or not. If it does, they arrive whole.
func TestDatagramsInLargePackets(t *testing.T) {
	onBothWires(t, func(t *testing.T, l *lab) {
		for _, under := range []func(int) netip.Addr{under4, under6} {
			l.tunnel("", under)
			l.ping(inner(1))
			l.segments(20)
			if took := l.opened(l.hosts[1].Namespace); l.hosts[1].part.WiresCarryGSO != (took > 0) {
				t.Errorf("the decap device took %d packets", took)
			}
		}
	})
}

// opened is how many packets a host's decap device took; 0: there is none.
func (l *lab) opened(namespace string) (count int) {
	l.t.Helper()
	ns, err := kernel.OpenNamespace(namespace)
	check1(l.t, err)
	defer ns.Close()
	check1(l.t, kernel.In(ns, func() error {
		text, err := os.ReadFile("/proc/thread-self/net/dev")
		if _, line, ok := strings.Cut(string(text), decapName+":"); ok {
			_, err = fmt.Sscan(line, new(int), &count)
		}
		return err
	}))
	return count
}
