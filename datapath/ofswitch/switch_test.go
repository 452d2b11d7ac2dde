package ofswitch

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

const inside = "OFSWITCH_TEST_INSIDE"

// within runs a test again as a process with a network namespace of its own; it
// is true in there.
func within(t *testing.T) bool {
	if os.Getenv(inside) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// wires makes veths pN, of the switch, and qN, of the test.
func wires(t *testing.T) (far []*device) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	ip(t, "link", "set", "lo", "up")
	for _, n := range []string{"1", "2", "3"} {
		ip(t, "link", "add", "p"+n, "type", "veth", "peer", "name", "q"+n)
		ip(t, "link", "set", "p"+n, "up")
		ip(t, "link", "set", "q"+n, "up")
		d, err := openDevice("q"+n, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(d.fd) })
		far = append(far, d)
	}
	return far
}

// controller is what the switch has connected to, past the hellos.
type controller struct {
	t *testing.T
	net.Conn
	decoder of13.Decoder
}

func (c *controller) send(list ...of13.Message) {
	c.t.Helper()
	for _, m := range list {
		b, err := of13.Append(nil, 1, m)
		if err != nil {
			c.t.Fatal(err)
		}
		if _, err := c.Write(b); err != nil {
			c.t.Fatal(err)
		}
	}
}

// want reads messages up to one of a type.
func (c *controller) want(kind uint8) of13.Message {
	c.t.Helper()
	for {
		b := make([]byte, of13.HeaderLen)
		if _, err := io.ReadFull(c, b); err != nil {
			c.t.Fatal(err)
		}
		b = append(b, make([]byte, int(of13.ReadHeader(b).Length)-len(b))...)
		if _, err := io.ReadFull(c, b[of13.HeaderLen:]); err != nil {
			c.t.Fatal(err)
		}
		h, m, err := c.decoder.Decode(b)
		if err != nil {
			c.t.Fatal(err)
		}
		if h.Type == of13.TypeError && kind != of13.TypeError {
			c.t.Fatalf("%+v", m)
		}
		if h.Type == kind {
			return m
		}
	}
}

// running starts a switch on p1 to p3 that ends with the test.
func running(t *testing.T) *controller {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := New(Config{
		Pipeline: pipeline.Config{DatapathID: 0xabc, Tables: 4, Entries: 100, Groups: 4, Meters: 4}, Ports: []string{"p1", "p2", "p3"},
		Controllers: []channel.Target{{Address: l.Addr().String()}}, Log: func(err error) { t.Log(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		s.Close()
	})
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	c := &controller{t: t, Conn: conn}
	t.Cleanup(func() { conn.Close() })
	c.send(&of13.Hello{Bitmap: 1 << of13.Version})
	return c
}

// arrives waits for a frame; nil stands for none in time.
func arrives(d *device, limit time.Duration) []byte {
	var r received
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if d.read(&r) {
			return r.frame
		}
	}
	return nil
}

func output(port uint32, match ...of13.Field) *of13.FlowMod {
	return &of13.FlowMod{Priority: 1, Match: of13.Match{Fields: match}, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{of13.Output(port)}}}}
}

func frameOf(tail ...byte) []byte {
	b := make([]byte, 80)
	copy(b, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1})
	copy(b[12:], tail)
	return b
}

// Each entry holds for the packet after its barrier, tags stay where they are,
// and counters are right when asked.
func TestSwitchOnDevices(t *testing.T) {
	if !within(t) {
		return
	}
	far := wires(t)
	c := running(t)
	c.send(&of13.Plain{Kind: of13.TypeFeaturesRequest})
	if m := c.want(of13.TypeFeaturesReply).(*of13.FeaturesReply); m.DatapathID != 0xabc || m.Tables != 4 {
		t.Errorf("%+v", m)
	}
	tagged := frameOf(0x81, 0, 0x60, 9, 0x88, 0xb5, 1)
	for round := range 50 {
		to := uint32(round%2 + 2)
		c.send(output(to, of13.Exact(of13.VLANVID, of13.VLANPresent|9)), &of13.Plain{Kind: of13.TypeBarrierRequest})
		c.want(of13.TypeBarrierReply)
		far[0].write(tagged, nil)
		if got := arrives(far[to-1], 5*time.Second); !bytes.Equal(got, tagged) {
			t.Fatalf("round %d: port %d sent %x", round, to, got)
		}
	}
	if got := arrives(far[0], time.Millisecond); got != nil {
		t.Errorf("a frame came back: %x", got)
	}
	c.send(&of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}})
	m := c.want(of13.TypeMultipartReply).(*of13.MultipartReply)
	if len(m.Flows) != 1 || m.Flows[0].Packets != 50 || m.Flows[0].Bytes != 50*80 {
		t.Errorf("%+v", m.Flows)
	}
}

func TestPacketInAndOut(t *testing.T) {
	if !within(t) {
		return
	}
	far := wires(t)
	c := running(t)
	c.send(output(of13.PortController), &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	frame := frameOf(0x88, 0xb5)
	far[1].write(frame, nil)
	m := c.want(of13.TypePacketIn).(*of13.PacketIn)
	if !bytes.Equal(m.Data, frame) || m.Match.Fields[0] != of13.Exact(of13.InPort, 2) {
		t.Errorf("%+v", m)
	}
	c.send(&of13.PacketOut{Buffer: of13.NoBuffer, InPort: 2, Actions: []of13.Action{of13.Output(of13.PortFlood)}, Data: frame})
	for _, d := range []*device{far[0], far[2]} {
		if got := arrives(d, 5*time.Second); !bytes.Equal(got, frame) {
			t.Errorf("%x", got)
		}
	}
}

// A port's link that goes down is told of, and what fast failover watches.
func TestPortStatus(t *testing.T) {
	if !within(t) {
		return
	}
	wires(t)
	c := running(t)
	c.send(&of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	ip(t, "link", "set", "q3", "down")
	m := c.want(of13.TypePortStatus).(*of13.PortStatus)
	if m.Reason != of13.PortModified || m.Port.Name != "p3" || m.Port.State&of13.PortStateDown == 0 || m.Port.State&of13.PortStateLive != 0 {
		t.Errorf("%+v", m)
	}
}
