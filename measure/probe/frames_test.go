package probe

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sublet/vnet"
)

// Frames are counted at a port that another program has, and that program gets
// nothing of them. Sockets of the probe find the port taken.
func TestFramesPassServers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("packet sockets need root")
	}
	const run = 78
	at := netip.AddrPortFrom(loopback.Local, 0).String()
	stream, err := net.Listen("tcp4", at)
	must(t, err)
	defer stream.Close()
	datagrams, err := net.ListenPacket("udp4", at)
	must(t, err)
	defer datagrams.Close()
	for proto, port := range map[uint8]uint16{
		unix.IPPROTO_TCP: stream.Addr().(*net.TCPAddr).AddrPort().Port(),
		unix.IPPROTO_UDP: datagrams.LocalAddr().(*net.UDPAddr).AddrPort().Port(),
	} {
		f := loopback
		f.Ports, f.Rate = ports{UDP: port, TCP: port}, 20*vnet.Mbit
		var taken figure
		p := &prober{run: run, in: map[int]*receiver{}}
		if err := p.open(t.Context(), f, &taken); err == nil || !taken.Taken {
			t.Errorf("protocol %d: port %d, which is another's: %v, taken %t", proto, port, err, taken.Taken)
		}
		f.Frames = proto
		r, at, err := openReceiver(t.Context(), run, f)
		must(t, err)
		if at.UDP != port {
			t.Fatalf("protocol %d: frames at port %d, not %d", proto, at.UDP, port)
		}
		r.sink.expect(command{Epoch: 1, Window: time.Second}, f)
		s, err := openSender(run, f)
		must(t, err)
		var g figure
		must(t, s.sendLoad(t.Context(), command{Epoch: 1, Window: 100 * time.Millisecond}, f, &g))
		counts := r.sink.settle(t.Context(), g.Sent, time.Second)
		if g.Sent == 0 || counts.Distinct != g.Sent || counts.Duplicates != 0 || counts.Payload == 0 {
			t.Errorf("protocol %d: sent %d, arrived %+v", proto, g.Sent, counts)
		}
	}
	must(t, stream.(*net.TCPListener).SetDeadline(time.Now().Add(100*time.Millisecond)))
	if conn, err := stream.Accept(); err == nil {
		t.Errorf("the program at the port got a connection of %s", conn.RemoteAddr())
	}
	must(t, datagrams.SetDeadline(time.Now().Add(100*time.Millisecond)))
	if n, _, err := datagrams.ReadFrom(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the program at the port got %d bytes, %v", n, err)
	}
}

// A frame's checksum is never right, and never UDP's word for none.
func TestFramesAreSpoiled(t *testing.T) {
	six := loopback
	six.Local, six.Peer = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	for i, f := range []flow{loopback, loopback, six, six} {
		proto := []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP}[i%2]
		f.Frames, f.MTU = proto, 101
		b := newFrame(f, 9)
		for i := range 1 << 16 {
			b[99], b[100] = byte(i>>8), byte(i)
			spoil(b)
			sum := b[ipHeader(b)+checksumAt(proto):][:2]
			if checksum(b) == 0 || sum[0] == 0 && sum[1] == 0 {
				t.Fatalf("protocol %d: the checksum %x is right", proto, sum)
			}
		}
	}
}

// What frames are sent as is the packet that the flow states: its addresses, ports, DSCP,
// and the tag in the header of its link.
func TestFramesAreWhatFlowsState(t *testing.T) {
	for _, local := range []string{"10.0.0.1", "2001:db8::1"} {
		f := flow{Interface: "lo", MTU: 200, Local: netip.MustParseAddr(local), Frames: unix.IPPROTO_UDP, DSCP: 46, Ports: ports{UDP: 9001}}
		f.Peer = f.Local.Next()
		p := gopacket.NewPacket(newFrame(f, 4000), map[bool]gopacket.LayerType{true: layers.LayerTypeIPv6, false: layers.LayerTypeIPv4}[f.Peer.Is6()], gopacket.Default)
		if p.ErrorLayer() != nil {
			t.Fatal(p.ErrorLayer().Error())
		}
		if from, to := p.NetworkLayer().NetworkFlow().Endpoints(); from.String() != f.Local.String() || to.String() != f.Peer.String() {
			t.Errorf("from %s to %s", from, to)
		}
		if udp, ok := p.TransportLayer().(*layers.UDP); !ok || udp.SrcPort != 4000 || udp.DstPort != 9001 {
			t.Errorf("it is %s", p)
		}
		switch ip := p.NetworkLayer().(type) {
		case *layers.IPv4:
			if err, wrong := ip.VerifyChecksum(); err != nil || !wrong.Valid || ip.TOS != 46<<2 {
				t.Errorf("checksum %+v, TOS %d", wrong, ip.TOS)
			}
		case *layers.IPv6:
			if ip.TrafficClass != 46<<2 {
				t.Errorf("class %d", ip.TrafficClass)
			}
		}
	}
}
