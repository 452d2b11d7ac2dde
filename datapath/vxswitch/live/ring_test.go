package live

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// wired is a lab whose ports a and b are veth devices in a namespace of the
// switch's, opened as kinds say (packet, xdp); the far ends are eth0 of
// namespaces a and b.
func wired(t *testing.T, virtual string, kinds ...string) *lab {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("makes namespaces and devices: needs root")
	}
	if slices.Contains(kinds, "xdp") {
		if fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW, 0); err != nil {
			t.Skip("no AF_XDP sockets here: ", err)
		} else {
			unix.Close(fd)
		}
	}
	l, dir := &lab{t: t, ns: map[string]*os.File{}}, t.TempDir()
	for _, name := range []string{"a", "b", "s"} {
		l.namespace(filepath.Join(dir, name), name)
	}
	var config strings.Builder
	config.WriteString("ports:\n")
	for i, name := range []string{"a", "b"} {
		device := fmt.Sprintf("v%s%d", name, os.Getpid())
		ip(t, "link add "+device+" netns "+nsOf(l.ns["s"])+" type veth peer name eth0 netns "+nsOf(l.ns[name]))
		for _, end := range []struct{ ns, device string }{{"s", device}, {name, "eth0"}} {
			if err := kernel.In(l.ns[end.ns], func() error { return exec.Command("ip", "link", "set", end.device, "up").Run() }); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&config, "- {name: %s, %s: %s, namespace: %s}\n", name, kinds[i], device, filepath.Join(dir, "s"))
	}
	c, err := Parse("test", []byte(config.String()+virtual))
	if err != nil {
		t.Fatal(err)
	}
	if l.h, err = New(c); err != nil {
		t.Fatal(err)
	}
	l.start()
	l.address("a", l.ns["a"])
	l.address("b", l.ns["b"])
	return l
}

// nsOf names a namespace for ip.
func nsOf(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()) }

func ip(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", line, err, out)
	}
}

const oneSwitch = "virtual_switches:\n- {name: one, buffer: 1MiB, ports: [{port: a, in: 10Gbit, out: 10Gbit}, {port: b, in: 10Gbit, out: 10Gbit}]}\n"

// A stream that offload leaves in long segments, which fit neither into a
// ring's slots nor into an AF_XDP socket's, comes out of ports of any two kinds
// as it went in, among small frames.
func TestSocketsCarryAll(t *testing.T) {
	for _, kinds := range [][]string{{"packet", "packet"}, {"xdp", "xdp"}, {"packet", "xdp"}, {"xdp", "packet"}} {
		t.Run(strings.Join(kinds, " to "), func(t *testing.T) {
			l := wired(t, oneSwitch, kinds...)
			l.stream("a", "b")
			st := l.status()
			if in := st.Ports[0].In; kinds[0] == "packet" && (in.Packets == 0 || in.Bytes/in.Packets < 2000) {
				t.Errorf("segments did not stay whole: %+v", in)
			}
			l.balanced(st)
		})
	}
}

// stream sends 1 MiB by TCP.
func (l *lab) stream(from, to string) {
	l.t.Helper()
	var listener net.Listener
	err := kernel.In(l.ns[to], func() (err error) {
		listener, err = net.Listen("tcp4", addr(to).String()+":7001")
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	defer listener.Close()
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	sent := make(chan error, 1)
	go func() {
		sent <- kernel.In(l.ns[from], func() error {
			c, err := net.DialTimeout("tcp4", netip.AddrPortFrom(addr(to), 7001).String(), 30*time.Second)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(want)
			return err
		})
	}()
	_ = listener.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
	c, err := listener.Accept()
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, want) {
		l.t.Errorf("%d bytes of %d arrive, %v", len(got), len(want), err)
	}
	if err := <-sent; err != nil {
		l.t.Error(err)
	}
}

// balanced says that what was offered was delivered, dropped or is queued.
func (l *lab) balanced(st Status) {
	l.t.Helper()
	for _, v := range st.Switches {
		sum := v.Delivered.Packets + v.Queued.Packets
		for _, d := range v.Dropped {
			sum += d.Packets
		}
		if v.Offered.Packets != sum || sum == 0 {
			l.t.Errorf("%s: %d offered, %d accounted for", v.Name, v.Offered.Packets, sum)
		}
	}
}

// Frames of a ring: none, a whole one whose tag the kernel took off, a longer
// one that waits in the socket, and a longer one that was lost; then the ring
// goes round.
func TestRing(t *testing.T) {
	r := &ring{memory: make([]byte, ringSlot*ringSlots)}
	f := &slot{small: make([]byte, small), off: headroom}
	f.mem = f.small
	if what := r.take(f); what != nothing {
		t.Errorf("an empty ring has %d", what)
	}
	frame := bytes.Repeat([]byte{0xaa}, 60)
	put := func(at int, status uint32, length int) {
		b := r.memory[at*ringSlot:]
		binary.NativeEndian.PutUint32(b[ringLen:], uint32(length))
		binary.NativeEndian.PutUint32(b[ringSnap:], uint32(len(frame)))
		binary.NativeEndian.PutUint16(b[ringMac:], 96)
		binary.NativeEndian.PutUint16(b[ringTCI:], 7)
		copy(b[96:], frame)
		binary.NativeEndian.PutUint32(b[ringStatus:], status|unix.TP_STATUS_USER)
	}
	put(0, unix.TP_STATUS_VLAN_VALID, len(frame))
	put(1, unix.TP_STATUS_COPY, 3000)
	put(2, 0, 3000)
	for i, want := range []found{whole, elsewhere, lost, nothing} {
		if what := r.take(f); what != want {
			t.Errorf("slot %d has %d, want %d", i, what, want)
		}
		if i == 0 && (len(f.frame()) != 64 || !bytes.Equal(f.frame()[12:16], []byte{0x81, 0, 0, 7})) {
			t.Errorf("frame %x", f.frame())
		}
	}
	for i := range 2 * ringSlots {
		put((3+i)%ringSlots, 0, len(frame))
		f.off = headroom
		if what := r.take(f); what != whole || len(f.frame()) != 60 {
			t.Fatalf("frame %d: %d, %d bytes", i, what, len(f.frame()))
		}
	}
}
