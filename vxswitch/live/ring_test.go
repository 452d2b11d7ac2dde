package live

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// wired is a lab whose ports are veth devices, opened by packet sockets in a
// namespace of the switch's; the far ends are eth0 of namespaces a and b.
func wired(t *testing.T, virtual string) *lab {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("makes namespaces and devices: needs root")
	}
	l, dir := &lab{t: t, ns: map[string]*os.File{}}, t.TempDir()
	for _, name := range []string{"a", "b", "s"} {
		l.namespace(filepath.Join(dir, name), name)
	}
	var config strings.Builder
	config.WriteString("ports:\n")
	for _, name := range []string{"a", "b"} {
		device := fmt.Sprintf("v%s%d", name, os.Getpid())
		ip(t, "link add "+device+" netns "+nsOf(l.ns["s"])+" type veth peer name eth0 netns "+nsOf(l.ns[name]))
		for _, end := range []struct{ ns, device string }{{"s", device}, {name, "eth0"}} {
			if err := kernel.In(l.ns[end.ns], func() error { return exec.Command("ip", "link", "set", end.device, "up").Run() }); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&config, "- {name: %s, packet: %s, namespace: %s}\n", name, device, filepath.Join(dir, "s"))
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

// A stream that offload leaves in long segments, which do not fit into a ring's
// slots, comes out of packet sockets as it went in, among small frames.
func TestPacketSocketsCarryAll(t *testing.T) {
	l := wired(t, oneSwitch)
	var listener net.Listener
	err := kernel.In(l.ns["b"], func() (err error) {
		listener, err = net.Listen("tcp4", addr("b").String()+":7001")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	sent := make(chan error, 1)
	go func() {
		sent <- kernel.In(l.ns["a"], func() error {
			c, err := net.DialTimeout("tcp4", netip.AddrPortFrom(addr("b"), 7001).String(), 30*time.Second)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(want)
			return err
		})
	}()
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d arrive, %v", len(got), len(want), err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	var st Status
	if err := l.h.Do(context.Background(), func() { st = l.h.Status() }); err != nil {
		t.Fatal(err)
	}
	if in := st.Ports[0].In; in.Packets == 0 || in.Bytes/in.Packets < 2000 {
		t.Errorf("segments did not stay whole: %+v", in)
	}
	l.balanced(st)
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
