package test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// leaver sends frames of its own making from a node to the router with the way out:
// what must not leave says EVIL, what may says GOOD. Its arguments are the router's
// outer address, and that of another lease.
const leaver = `
import socket, struct, subprocess, sys, time
mine, others = sys.argv[1:]
route = next(f for f in map(str.split, open("/proc/net/route")) if f[1] == "00000000")
device, router = route[0], socket.inet_ntoa(struct.pack("<I", int(route[2], 16)))
subprocess.run(["ping", "-c1", "-W2", router], stdout=subprocess.DEVNULL)
to = bytes.fromhex(next(f[3] for f in map(str.split, open("/proc/net/arp")) if f[0] == router).replace(":", ""))
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); raw.bind((device, 0))
own = raw.getsockname()[4]
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(("198.51.100.1", 9999))
me, port = u.getsockname()
def total(b):
    b += b"\0" * (len(b) % 2)
    n = sum(struct.unpack("!%dH" % (len(b) // 2), b))
    while n >> 16: n = (n & 0xffff) + (n >> 16)
    return ~n & 0xffff
def ip(dst, protocol, payload, src=me, options=b"", fragment=0, id=1):
    h = lambda c: struct.pack("!BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, 20 + len(options) + len(payload), id, fragment, 64, protocol, c,
                              socket.inet_aton(src), socket.inet_aton(dst)) + options
    return h(total(h(0))) + payload
def udp(dst, text, port=9999, source=4444, **more):
    return ip(dst, 17, struct.pack("!HHHH", source, port, 8 + len(text), 0) + text, **more)
def icmp(kind, code, rest, **more):
    b = struct.pack("!BBH", kind, code, 0) + rest
    return ip("198.51.100.1", 1, b[:2] + struct.pack("!H", total(b)) + b[4:], **more)
def send(packet, kind=0x0800, to=to): raw.send(to + own + struct.pack("!H", kind) + packet)
def parts(dst, text, id):
    whole = udp(dst, text)[20:]
    send(ip(dst, 17, whole[:64], fragment=0x2000, id=id)); send(ip(dst, 17, whole[64:], fragment=8, id=id))
evil = b"EVIL" * 30
for i in range(3):
    try: u.send(b"GOOD plain")
    except OSError: pass # nobody listens there, and says so
    parts("198.51.100.1", b"GOOD parts" * 12, 100 + i)
    for dst in ("192.0.2.2", "10.99.0.1", "203.0.113.1", "127.0.0.1", "192.0.2.255", "255.255.255.255", "224.0.0.251", "169.254.169.254", "0.0.0.0", mine, others):
        parts(dst, evil, 200 + i); send(udp(dst, evil)); send(udp(dst, evil, port=8080)); send(udp(dst, evil, port=14789))
        u2 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u2.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        try: u2.sendto(evil, (dst, 7777))
        except OSError: pass
    for src in (mine, others, "192.0.2.1", "192.0.2.2", "127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "198.51.100.1"):
        send(udp("198.51.100.1", evil, src=src))
    for option in (131, 137):
        send(udp("198.51.100.1", evil, options=bytes([option, 7, 4]) + socket.inet_aton("192.0.2.2") + b"\0"))
    inner = udp(me, evil, port=port, source=9999, src="198.51.100.1")
    send(icmp(5, 1, socket.inet_aton("192.0.2.1") + inner))
    strange = udp(me, evil, port=1, source=1, src="198.51.100.1")
    for kind, code in ((3, 1), (3, 4), (11, 0), (5, 0), (9, 0), (10, 0), (4, 0), (12, 0)): send(icmp(kind, code, b"\0" * 4 + strange))
    six = struct.pack("!IHBB", 6 << 28, 8 + len(evil), 17, 64) + socket.inet_pton(socket.AF_INET6, "fe80::1")
    for dst in ("ff02::1", "2001:db8::1"):
        send(six + socket.inet_pton(socket.AF_INET6, dst) + struct.pack("!HHHH", 1, 2, 8 + len(evil), 0) + evil, 0x86dd)
    arp = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + own + socket.inet_aton("192.0.2.1") + b"\0" * 6 + socket.inet_aton("192.0.2.1") + evil
    for target in (to, b"\xff" * 6): send(arp, 0x0806, target)
    for protocol in (2, 47, 50, 4, 41, 132): send(ip("192.0.2.2", protocol, evil))
    time.sleep(0.05)
print("sent")`

// flooder opens as many connections as it can.
const flooder = `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 17)
s.connect(("198.51.100.1", 0))
for i in range(20000):
    try: s.send((10000 + i % 50000).to_bytes(2, "big") + (9000).to_bytes(2, "big") + (13).to_bytes(2, "big") + b"\0\0FLOOD")
    except OSError: pass
print("sent")`

// Whatever a tenant makes of frames, from a network with a way out comes what the
// rules let out, from its own address: no fragment, source route, ICMP, IPv6 or ARP
// leads to the host, to other leases or to what is refused. Connections are made no
// faster than a table holds, and others have theirs meanwhile.
func TestNothingElseLeavesByAWayOut(t *testing.T) {
	t.Parallel()
	l := newLab(t, natSubstrate)
	outside := l.internet()
	greets(t, outside, 80)
	l.up(natRequest("shop", "20Mbit", `"8080:web:80"`))
	l.up("network: other\nnodes: [{name: web, host: h1}]\ninternet: {rate: 20Mbit, publish: ['8080:web:80']}\n")
	l.settled()
	mine, others := l.outside("shop"), l.outside("other")
	host := hearsUDP(t, "/run/netns/"+labName(l.run)+"-h2", 7777, 8080, 9999)
	seen := watchOut(t, outside, outsideDevice, mine)
	if out := l.must("exec", "shop/web", "--", "python3", "-c", leaver, mine.String(), others.String()); !strings.Contains(out, "sent") {
		t.Fatal(out)
	}
	eventually(t, 10*time.Second, func() error {
		if plain, parts := seen.count("GOOD plain"), seen.count("GOOD parts"); plain < 1 || parts < 1 {
			return fmt.Errorf("%d plain packets and %d in parts came out", plain, parts)
		}
		return nil
	})
	for _, text := range append(seen.wrong(), host()...) {
		t.Error(text)
	}

	before, start := conntracked(t, l.gateway("shop")), time.Now()
	l.must("exec", "shop/web", "--", "python3", "-c", flooder)
	if _, ok := l.heard("other/web", "198.51.100.1", 80); !ok {
		t.Error("a flood of one lease keeps another inside")
	}
	after := conntracked(t, l.gateway("shop"))
	most := 1000 * (time.Since(start).Seconds() + 2)
	if made := after - before; made < 500 || float64(made) > most {
		t.Errorf("a flood made %d connections in %s: want 500 to %.0f", made, time.Since(start), most)
	}
	if n := seen.count("FLOOD"); float64(n) > most {
		t.Errorf("%d packets of a flood came out, more than %.0f", n, most)
	}
	l.must("down", "shop")
	l.must("down", "other")
}

func (l *lab) gateway(network string) string {
	return filepath.Join(l.run, "netns", "h2", "root."+network+".out")
}

// conntracked is how many connections the kernel keeps of a namespace.
func conntracked(t *testing.T, namespace string) (n int) {
	t.Helper()
	within(t, namespace, func() error {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_count")
		if err == nil {
			n, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err
	})
	return n
}

// hearsUDP listens at ports of a namespace; what it gives says what was heard.
func hearsUDP(t *testing.T, namespace string, ports ...int) func() []string {
	t.Helper()
	var lock sync.Mutex
	var heard []string
	for _, port := range ports {
		var c net.PacketConn
		within(t, namespace, func() (err error) {
			c, err = net.ListenPacket("udp4", fmt.Sprintf(":%d", port))
			return err
		})
		t.Cleanup(func() { c.Close() })
		go func() {
			for b := make([]byte, 2048); ; {
				n, from, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				lock.Lock()
				heard = append(heard, fmt.Sprintf("the host heard %q from %s at port %d", b[:min(n, 20)], from, port))
				lock.Unlock()
			}
		}()
	}
	return func() []string {
		lock.Lock()
		defer lock.Unlock()
		return slices.Clone(heard)
	}
}

// sightings are frames that come out of a host.
type sightings struct {
	mu     sync.Mutex
	frames [][]byte
	own    netip.Addr // from which packets may come
}

// watchOut keeps what comes in by a device of a namespace.
func watchOut(t *testing.T, namespace, device string, own netip.Addr) *sightings {
	t.Helper()
	s := &sightings{own: own}
	all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
	var fd int
	within(t, namespace, func() error {
		i, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20); err != nil {
			return err
		}
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index})
	})
	done := make(chan struct{})
	ended := make(chan struct{})
	t.Cleanup(func() { close(done); <-ended; unix.Close(fd) })
	go func() {
		defer close(ended)
		for b := make([]byte, 2048); ; {
			select {
			case <-done:
				return
			default:
			}
			n, from, err := unix.Recvfrom(fd, b, 0)
			if at, ok := from.(*unix.SockaddrLinklayer); err != nil || !ok || at.Pkttype == unix.PACKET_OUTGOING {
				continue
			}
			s.mu.Lock()
			s.frames = append(s.frames, bytes.Clone(b[:n]))
			s.mu.Unlock()
		}
	}()
	return s
}

// count is how many frames had a text.
func (s *sightings) count(text string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.frames {
		if bytes.Contains(f, []byte(text)) {
			n++
		}
	}
	return n
}

// wrong lists what must not have come out.
func (s *sightings) wrong() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.frames {
		switch {
		case bytes.Contains(f, []byte("EVIL")):
			list = append(list, fmt.Sprintf("came out: % x", f[:min(len(f), 60)]))
		case len(f) > 34 && bytes.Contains(f, []byte("GOOD")) && netip.AddrFrom4([4]byte(f[26:30])) != s.own:
			list = append(list, fmt.Sprintf("came from another address than %s: % x", s.own, f[:34]))
		}
	}
	return list[:min(len(list), 10)]
}
