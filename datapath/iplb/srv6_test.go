package iplb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
	"sublet/plan"
)

var segments = []netip.Addr{netip.MustParseAddr("fc00:1::1"), netip.MustParseAddr("fc00:2::1"), netip.MustParseAddr("fc00:3::1")}

// Segments are as RFC 8754 has them: the last one first, as many left as there
// are to visit, and behind them the packet as it was.
func TestSegments(t *testing.T) {
	tab := table(t)
	tab.Source6 = netip.MustParseAddr("fc00::1")
	labels := map[uint32]bool{}
	for n := 1; n <= len(segments); n++ {
		set(t, tab, plan.Spread{By: plan.BySRv6, Paths: []plan.RelayPath{{Relays: segments[:n]}}})
		for port := uint16(1); port <= 20; port++ {
			in := packet(port, 100)
			in[15] = 0xb8
			in = resum(in)
			verdict, b := run(t, tab.Transmit(), in)
			room := 48 + 16*n
			if verdict != next || len(b) != len(in)+room {
				t.Fatalf("%d segments: verdict %d, %d bytes more", n, verdict, len(b)-len(in))
			}
			word := binary.BigEndian.Uint32(b[14:])
			labels[word&0xfffff] = true
			if binary.BigEndian.Uint16(b[12:]) != 0x86dd || word>>20 != 0x6b8 || int(binary.BigEndian.Uint16(b[18:])) != len(b)-54 ||
				!bytes.Equal(b[20:22], []byte{43, 64}) || !bytes.Equal(b[22:38], tab.Source6.AsSlice()) || !bytes.Equal(b[38:54], segments[0].AsSlice()) {
				t.Fatalf("the IPv6 header is % x", b[12:54])
			}
			want := []byte{4, byte(2 * n), 4, byte(n - 1), byte(n - 1), 0, 0, 0}
			for i := n - 1; i >= 0; i-- {
				want = append(want, segments[i].AsSlice()...)
			}
			if !bytes.Equal(b[54:54+len(want)], want) || !bytes.Equal(b[14+room:], in[14:]) {
				t.Fatalf("behind it is % x", b[54:])
			}
		}
	}
	if len(labels) < 15 {
		t.Errorf("20 flows have %d labels", len(labels))
	}
	again, err := open(tab.c, host)
	if err != nil {
		t.Fatal(err)
	}
	again.Source6 = tab.Source6
	set(t, again, plan.Spread{By: plan.BySRv6, Paths: []plan.RelayPath{{Relays: segments}}}) // the path is known again
	if len(again.taken) != 1 {
		t.Errorf("%d paths", len(again.taken))
	}
	for name, r := range map[string]plan.Spread{
		"IPv4":           {Prefix: prefix, By: plan.BySRv6, Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}}}},
		"IPv6 elsewhere": {Prefix: prefix, By: plan.ByIPIP, Paths: []plan.RelayPath{{Relays: segments}}},
	} {
		if tab.Set(r) == nil {
			t.Errorf("%s is taken", name)
		}
	}
	tab.Source6 = netip.Addr{}
	if tab.Set(plan.Spread{Prefix: prefix, By: plan.BySRv6, Paths: []plan.RelayPath{{Relays: segments}}}) == nil {
		t.Error("no source is taken")
	}
}

// The kernel's own segment routing takes the packets: End at the first router,
// End.DX4 at the second, streams in large segments among them.
func TestKernelsTakeSegments(t *testing.T) {
	l := newLine(t, 1700)
	sender := table(t)
	sender.Source, sender.Source6 = netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("fc00::1")
	for i := range 4 {
		if err := kernel.In(l.ns[i], func() error {
			for _, name := range []string{"ipv6/conf/all/forwarding", "ipv6/conf/all/seg6_enabled", "ipv6/conf/left/seg6_enabled", "ipv6/conf/right/seg6_enabled"} {
				if i == 0 && strings.Contains(name, "left") || i == 3 && strings.Contains(name, "right") {
					continue
				}
				if err := kernel.Sysctl(name, "1"); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Skipf("segment routing: %v", err)
		}
	}
	for i := range 3 {
		for side, device := range []string{"right", "left"} {
			l.run(i+side, fmt.Sprintf("ip -6 addr add fc00:%d00::%d/64 dev %s nodad", i+1, side+1, device))
		}
	}
	l.run(0, "ip -6 route add fc00:1::/32 via fc00:100::2")
	l.run(0, "ip -6 route add fc00:2::/32 via fc00:100::2")
	l.run(1, "ip -6 route add fc00:2::/32 via fc00:200::2")
	l.run(1, "ip -6 route add fc00:1::1/128 encap seg6local action End dev right")
	l.run(2, "ip -6 route add fc00:2::1/128 encap seg6local action End.DX4 nh4 10.3.0.2 dev right")
	l.attach(0, "right", ebpf.AttachTCXEgress, sender.Transmit())
	l.run(0, "ip route replace 10.3.0.0/24 via 10.1.0.2 mtu 1500")
	for _, relays := range [][]netip.Addr{segments[1:2], segments[:2]} {
		stream(t, l, sender, plan.BySRv6, relays, "10.3.0.2")
		l.run(0, "ping -c 1 -W 2 -s 1472 -M do 10.3.0.2")
	}
	if counts, err := sender.Counts(); err != nil || counts["refused"]+counts["too-big"]+counts["native"] != 0 {
		t.Errorf("sender: %v, %v", counts, err)
	}
}
