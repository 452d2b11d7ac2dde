package test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// dialInside tries to open TCP connections, all at once, and says which it got;
// it sends a datagram to each as well.
func dialInside(targets []string) error {
	var all sync.WaitGroup
	for _, target := range targets {
		all.Go(func() {
			if udp, err := net.Dial("udp", target); err == nil {
				_, _ = udp.Write([]byte("hello"))
			}
			if tcp, err := net.DialTimeout("tcp", target, time.Second); err == nil {
				fmt.Println(target)
				tcp.Close()
			}
		})
	}
	all.Wait()
	return nil
}

// segmentsInside sends packets of 60 kB for the stack to cut (virtio_net_hdr),
// with segments larger than the link allows and of all sizes: what does not
// fit must not come out elsewhere. Every segment ends in the signature.
func segmentsInside(args []string) error {
	device, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: device.Index}); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return err
	}
	mark := signed(alice, 0)
	payload := slices.Repeat(mark[:], 7400)
	sent := 0
	for i := range 2000 {
		segment := 8 * (1 + i%1000*8) // up to 64 kB
		header := []byte{1, 1, 54, 0, byte(segment), byte(segment >> 8), 34, 0, 16, 0}
		ip := []byte{0x45, 0, 0xe8, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2}
		frame := append(slices.Repeat([]byte{0xff}, 6), device.HardwareAddr...)
		frame = append(append(frame, 8, 0), ip...)
		frame = append(frame, 0, 99, 0, 99, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0)
		if _, err := unix.Write(fd, append(header, append(frame, payload...)...)); err == nil {
			sent++
		}
	}
	if sent == 0 {
		return fmt.Errorf("no packet was taken")
	}
	return nil
}

// listen counts callers of a port in a namespace, by TCP and UDP.
func listen(t *testing.T, namespace string, port int, callers *atomic.Int32) {
	t.Helper()
	within(t, namespace, func() error {
		tcp, err := net.Listen("tcp4", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		udp, err := net.ListenPacket("udp4", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		t.Cleanup(func() { tcp.Close(); udp.Close() })
		go func() {
			for {
				conn, err := tcp.Accept()
				if err != nil {
					return
				}
				callers.Add(1)
				conn.Close()
			}
		}()
		go func() {
			for {
				if _, _, err := udp.ReadFrom(make([]byte, 100)); err != nil {
					return
				}
				callers.Add(1)
			}
		}()
		return nil
	})
}

// A tenant who is root of their nodes makes routers of them, takes the
// addresses of hosts and of the underlay, and routes everything to their peer:
// still they reach their peer only. No server of a host, of the machine or of
// the other tenant hears from them.
func TestRootOfANodeReachesNoHost(t *testing.T) {
	t.Parallel()
	l := newLab(t, threeHosts)
	both := l.tenants(alice, bob)
	for _, c := range both {
		c.up(sameNetwork)
	}
	a := both[0]
	const port = 17099
	var peer, strangers atomic.Int32
	listen(t, a.node("h2", "net", "b"), port, &peer)
	for _, space := range []string{l.host("h1"), l.host("h2"), l.host("h3"), here, both[1].node("h2", "net", "b"), both[1].node("h1", "net", "a")} {
		listen(t, space, port, &strangers)
	}
	var targets []string
	p := l.targets(both, both[1])
	for _, ip := range p.IPs {
		if at := net.IP(ip[:]); at.IsGlobalUnicast() && !strings.HasPrefix(at.String(), "10.9.0.") {
			targets = append(targets, fmt.Sprintf("%s:%d", at, port))
		}
	}
	if len(targets) < 6 {
		t.Fatalf("only %v to try", targets)
	}
	for node := range places {
		a.must("exec", "net/"+node, "--", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv4/conf/all/proxy_arp; echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter")
	}
	a.must("exec", "net/a", "--", "ip", "route", "add", "default", "via", "10.9.0.2", "dev", "eth0", "onlink")
	a.must("exec", "net/b", "--", "ip", "route", "add", "default", "via", "10.9.0.1", "dev", "eth0", "onlink")
	try := func(what string) {
		r := a.attack("net/a", append([]string{"dial", fmt.Sprintf("10.9.0.2:%d", port)}, targets...)...)
		if got := strings.TrimSpace(r.out); r.code != 0 || got != fmt.Sprintf("10.9.0.2:%d", port) {
			t.Errorf("%s: reached %q\n%s", what, got, r.err)
		}
	}
	try("with routes to everywhere")
	for _, ip := range p.IPs { // an own address must not be a way in either
		if at := net.IP(ip[:]).String(); strings.HasPrefix(at, "198.18.") {
			a.must("exec", "net/a", "--", "ip", "address", "add", at+"/32", "dev", "eth1")
		}
	}
	a.must("exec", "net/a", "--", "ip", "neighbour", "flush", "all")
	try("with the hosts' addresses")
	if n := strangers.Load(); n != 0 {
		t.Errorf("%d callers at strangers' servers", n)
	}
	if n := peer.Load(); n < 2 {
		t.Errorf("%d callers at the peer's: the test shows nothing", n)
	}
}

// Packets that the sender's stack has not cut yet, with segments of wrong
// sizes, come out at the link's other end or nowhere.
func TestOversizedSegmentsStayInTheLink(t *testing.T) {
	t.Parallel()
	l := newLab(t, threeHosts)
	both := l.tenants(alice, bob)
	for _, c := range both {
		c.up(sameNetwork)
	}
	silent, _ := l.wiretaps(both)
	arrive := tap(t, both[0].node("h2", "net", "b"), "b", exactly(signed(alice, 0)))
	if r := both[0].attack("net/a", "segments"); r.code != 0 {
		t.Fatal(r.err)
	}
	for _, w := range silent {
		// Below the tunnel, packets that were not cut yet, or were cut into
		// fragments, do not look like the tunnel's.
		if !strings.Contains(w.what, "outside of their tunnel") || strings.Contains(w.what, "h3") {
			w.silent()
		}
	}
	if arrive.count() == 0 {
		t.Error("nothing arrived: the test shows nothing")
	}
	if r := both[1].shell("net/a", "ping -qc1 -W2 b"); r.code != 0 {
		t.Errorf("the other tenant's peer does not answer: %s", r.out)
	}
}
