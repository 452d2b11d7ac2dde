package nsh

import (
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sublet/datapath/kernel"
	"sublet/datapath/nsh/header"
)

// frame is a datagram from a to b.
func frame() []byte {
	f := []byte{2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a, 8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 7, 1, 192, 168, 7, 2, 1, 2, 3, 4, 0, 12, 0, 0, 'a', 'b', 'c', 'd'}
	s := ^sum(f[14:34])
	f[24], f[25] = byte(s), byte(s>>8)
	return f
}

// send sends datagrams from a host's namespace.
func (g *testGround) send(ns string, from, to string, payloads ...[]byte) {
	g.t.Helper()
	home, err := kernel.OpenNamespace(ns)
	check(g.t, err)
	defer home.Close()
	check(g.t, kernel.In(home, func() error {
		c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from)), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
		if err != nil {
			return err
		}
		defer c.Close()
		for _, p := range payloads {
			_, err := c.Write(p)
			for errors.Is(err, syscall.ECONNREFUSED) { // tells of an earlier datagram, and sends none
				_, err = c.Write(p)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

func nshOf(t *testing.T, h header.Header, rest []byte) []byte {
	b, err := h.Append(nil)
	check(t, err)
	return append(b, rest...)
}

// What comes over the wire and should not is dropped and counted by its cause; what
// is right passes.
func TestHostileWire(t *testing.T) {
	g := newGround(t)
	p1, p2 := g.planes(Function{Name: "nothing", Kind: None})
	g.set(p1, p2)
	right := header.Header{TTL: 9, MD: 2, Next: header.Ethernet, Path: there, Index: 254}
	change := func(do func(*header.Header)) []byte {
		h := right
		do(&h)
		return nshOf(t, h, frame())
	}
	raw := func(at int, value byte) []byte {
		b := nshOf(t, right, frame())
		b[at] = value
		return b
	}
	const port = "10.9.0.1:770"
	for _, c := range []struct {
		name, from, cause string
		packet            []byte
	}{
		{"no plane's path", port, "unknown-path", change(func(h *header.Header) { h.Path = 99 })},
		{"index without a row", port, "wrong-index", change(func(h *header.Header) { h.Index = 77 })},
		{"index 0", port, "wrong-index", change(func(h *header.Header) { h.Index = 0 })},
		{"last hop", port, "ttl", change(func(h *header.Header) { h.TTL = 1 })},
		{"OAM", port, "oam", change(func(h *header.Header) { h.OAM = true })},
		{"version 1", port, "malformed", raw(0, 0x42)},
		{"length 1", port, "malformed", raw(1, 0x41)},
		{"length beyond the packet", port, "malformed", raw(1, 0x7f)},
		{"metadata of type 3", port, "malformed", raw(2, 3)},
		{"metadata of type 1, too short", port, "malformed", raw(2, 1)},
		{"IPv4 inside", port, "malformed", raw(3, 1)},
		{"no frame inside", port, "refused", nshOf(t, right, frame()[:9])},
		{"cut header", port, "malformed", nshOf(t, right, nil)[:5]},
		{"any user's port", "10.9.0.1:7700", "sender", nshOf(t, right, frame())},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := g.allDrops(g.h2)[c.cause]
			g.send(g.h1.home, c.from, "10.9.0.2:61440", c.packet)
			eventually(t, c.cause, func() bool { return g.allDrops(g.h2)[c.cause] > before })
		})
	}
	egress := g.h2.hop(t, there, 253).Packets
	g.send(g.h1.home, port, "10.9.0.2:61440", nshOf(t, right, frame()), change(func(h *header.Header) { h.Metadata = make([]byte, 244) }),
		change(func(h *header.Header) { h.MD, h.Metadata = 1, make([]byte, 16) }), change(func(h *header.Header) { h.TTL = 0 }))
	eventually(t, "what is right reaches the egress", func() bool { return g.h2.hop(t, there, 253).Packets == egress+4 })
}

// allDrops are a host's, at hops and elsewhere.
func (g *testGround) allDrops(h testHost) map[string]uint64 {
	g.t.Helper()
	all, err := h.part.Drops()
	check(g.t, err)
	add := func(more map[string]uint64) {
		for cause, n := range more {
			all[cause] += n
		}
	}
	r := g.report(h)
	add(r.Drops)
	for _, hop := range r.Hops {
		add(hop.Drops)
	}
	return all
}

// typedMetadata is of class 0xfff6 (RFC 8300, section 9.1.4: for experiments): type 5 with
// six bytes, and type 6 with three.
var typedMetadata = []byte{0xff, 0xf6, 5, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0xff, 0xf6, 6, 3, 7, 8, 9, 0}

// tshark finds nothing to say against what is on the wire, by either transport.
func TestWireIsDecoded(t *testing.T) {
	for _, program := range []string{"tshark", "tcpdump"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	g := newGround(t)
	p1, p2 := g.planes()
	for _, c := range []struct {
		name, port string
		change     func(*Plane)
		want       string // of a packet from a to b
	}{
		{"udp", "61440", func(*Plane) {}, ";;458753;254;0x003d;2;2;10.9.0.1,192.168.7.1"},
		{"metadata", "61440", func(p *Plane) { p.Metadata = []Metadata{{there, 1, []byte("0123456789abcdef")}} }, ";;458753;254;0x003d;1;6;10.9.0.1,192.168.7.1"},
		{"metadata of type 2", "61440", func(p *Plane) { p.Metadata = []Metadata{{there, 2, typedMetadata}} }, ";;458753;254;0x003d;2;7;10.9.0.1,192.168.7.1"},
		{"gpe", "4790", func(p *Plane) { p.Remotes[0].Transport, p.Remotes[0].VNI = GPE, 77 }, ";;458753;254;0x003d;2;7;10.9.0.1,192.168.7.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.change(&p1)
			g.set(p1, p2)
			capture := filepath.Join(t.TempDir(), "wire.pcap")
			dump := g.command(g.h2.home, "tcpdump -i up0 --immediate-mode -U -c 3 -w "+capture+" udp dst port "+c.port+" and src host 10.9.0.1")
			check(t, dump.Start())
			done := make(chan error, 1)
			go func() { done <- dump.Wait() }()
			eventually(t, "three packets", func() bool {
				if !g.pings(g.a, "192.168.7.2") {
					t.Fatal("no answer")
				}
				select {
				case <-done:
					return true
				default:
					return false
				}
			})
			out, err := exec.Command("tshark", "-r", capture, "-X", "lua_script:testdata/nsh-udp.lua", "-T", "fields", "-E", "separator=;",
				"-e", "_ws.expert.message", "-e", "_ws.malformed", "-e", "nsh.spi", "-e", "nsh.si", "-e", "nsh.ttl", "-e", "nsh.mdtype", "-e", "nsh.length", "-e", "ip.src").Output()
			lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			own := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l == c.want })
			unlike := slices.DeleteFunc(slices.Clone(own), func(l string) bool { return l == strings.TrimSuffix(c.want, ",192.168.7.1") }) // of a itself, IPv6
			if err != nil || len(lines) != 3 || len(own) == 3 || len(unlike) > 0 {
				t.Errorf("tshark says %v:\n%snot 3 times:\n%s", err, out, c.want)
			}
		})
	}
}
