package ofswitch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
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
	ctx, cancel := context.WithTimeout(context.Background(), sameTime())
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=0", fmt.Sprint("-packets=", *samePackets), fmt.Sprint("-seed=", *sameSeed), fmt.Sprint("-band-sizes=", *bandSizes))
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
	return false
}

// onBoth runs a test on both datapaths.
func onBoth(t *testing.T, test func(t *testing.T, inKernel bool)) {
	for name, inKernel := range map[string]bool{"process": false, "kernel": true} {
		t.Run(name, func(t *testing.T) {
			if within(t) {
				test(t, inKernel)
			}
		})
	}
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// silence keeps devices from greeting their neighbours.
func silence(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	ip(t, "link", "set", "lo", "up")
}

// wires makes veths pN, of the switch, and qN, of the test.
func wires(t *testing.T) (far []*device) {
	silence(t)
	_, far = pairs(t, "p", "q")
	return far
}

// carries waits until a device has a carrier, which the kernel sees a little
// after both ends are up.
func carries(t *testing.T, device string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if d, err := net.InterfaceByName(device); err == nil && d.Flags&net.FlagRunning != 0 {
			return
		}
	}
	t.Fatalf("%s has no carrier", device)
}

// controller is what the switch has connected to, past the hellos.
type controller struct {
	t *testing.T
	net.Conn
	decoder of13.Decoder
	seen    func(of13.Message) // of those that were not waited for
	stop    func()             // ends the switch; then what is its thread's may be read
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
		if c.seen != nil {
			c.seen(m)
		}
	}
}

// running starts a switch on p1 to p3 that ends with the test.
func running(t *testing.T, inKernel bool) *controller {
	return runningAs(t, func(c *Config) { c.Kernel = inKernel })
}

// runningAs is running, with another configuration.
func runningAs(t *testing.T, change func(*Config)) *controller {
	t.Helper()
	config := Config{Pipeline: pipeline.Config{DatapathID: 0xabc, Tables: 4, Entries: 100, Groups: 4, Meters: 4}, Ports: []string{"p1", "p2", "p3"}}
	change(&config)
	c, _ := started(t, config)
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
func TestSwitchOnDevices(t *testing.T) { onBoth(t, switchOnDevices) }

func switchOnDevices(t *testing.T, inKernel bool) {
	far := wires(t)
	c := running(t, inKernel)
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

func TestPacketInAndOut(t *testing.T) { onBoth(t, packetInAndOut) }

func packetInAndOut(t *testing.T, inKernel bool) {
	far := wires(t)
	c := running(t, inKernel)
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
func TestPortStatus(t *testing.T) { onBoth(t, portStatus) }

func portStatus(t *testing.T, inKernel bool) {
	wires(t)
	c := running(t, inKernel)
	c.send(&of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	ip(t, "link", "set", "q3", "down")
	m := c.want(of13.TypePortStatus).(*of13.PortStatus)
	if m.Reason != of13.PortModified || m.Port.Name != "p3" || m.Port.State&of13.PortStateDown == 0 || m.Port.State&of13.PortStateLive != 0 {
		t.Errorf("%+v", m)
	}
}

// What was received before a question is in its answer.
func TestCountersAreOfAllThatWasReceived(t *testing.T) { onBoth(t, countersAreOfAllThatWasReceived) }

func countersAreOfAllThatWasReceived(t *testing.T, inKernel bool) {
	far := wires(t)
	c := running(t, inKernel)
	c.send(output(2), &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	const burst = 500
	for round := 1; round <= 10; round++ {
		for range burst {
			far[0].write(frameOf(0x88, 0xb5), nil)
		}
		c.send(&of13.MultipartRequest{Kind: of13.MultipartPort, Number: 1})
		if m := c.want(of13.TypeMultipartReply).(*of13.MultipartReply); m.Ports[0].RxPackets != uint64(round*burst) {
			t.Fatalf("round %d: %d frames were counted of %d", round, m.Ports[0].RxPackets, round*burst)
		}
	}
}

// A group of fast failover leaves a port as soon as its link is gone.
func TestFailoverFollowsLinks(t *testing.T) { onBoth(t, failoverFollowsLinks) }

func failoverFollowsLinks(t *testing.T, inKernel bool) {
	far := wires(t)
	c := running(t, inKernel)
	bucket := func(port uint32) of13.Bucket {
		return of13.Bucket{WatchPort: port, WatchGroup: of13.GroupAny, Actions: []of13.Action{of13.Output(port)}}
	}
	to := output(0)
	to.Instructions[0].Actions = []of13.Action{{Type: of13.ActionGroup, Number: 1}}
	c.send(&of13.GroupMod{Kind: of13.GroupTypeFailover, Group: 1, Buckets: []of13.Bucket{bucket(2), bucket(3)}}, to, &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	frame := frameOf(0x88, 0xb5)
	far[0].write(frame, nil)
	if got := arrives(far[1], 5*time.Second); !bytes.Equal(got, frame) {
		t.Errorf("the first port sent %x", got)
	}
	ip(t, "link", "set", "q2", "down")
	c.want(of13.TypePortStatus)
	far[0].write(frame, nil)
	if got := arrives(far[2], 5*time.Second); !bytes.Equal(got, frame) {
		t.Errorf("the second port sent %x", got)
	}
}

// A switch without a controller forwards as its configuration says: as a learning
// switch, or not at all; while it has one, as its entries say.
func TestWithoutController(t *testing.T) { onBoth(t, withoutController) }

func withoutController(t *testing.T, inKernel bool) {
	far := wires(t)
	c := runningAs(t, func(c *Config) { c.Standalone, c.Kernel = true, inKernel })
	c.send(&of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	frame := frameOf(0x88, 0xb5)
	far[0].write(frame, nil)
	if got := arrives(far[1], 50*time.Millisecond); got != nil {
		t.Errorf("without an entry %x was sent", got)
	}
	c.Close()
	for end := time.Now().Add(10 * time.Second); ; {
		far[0].write(frame, nil)
		if bytes.Equal(arrives(far[1], 20*time.Millisecond), frame) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing is sent without a controller")
		}
	}
}

// The device of LOCAL is a port as others are.
func TestLocalDevice(t *testing.T) {
	if !within(t) {
		return
	}
	far := wires(t)
	c := runningAs(t, func(c *Config) { c.Ports, c.Local = []string{"p1", "p2"}, "p3" })
	c.send(output(of13.PortLocal, of13.Exact(of13.InPort, 1)), output(1, of13.Exact(of13.InPort, uint64(of13.PortLocal))), &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	frame := frameOf(0x88, 0xb5)
	for _, way := range [][2]int{{0, 2}, {2, 0}} {
		far[way[0]].write(frame, nil)
		if got := arrives(far[way[1]], 5*time.Second); !bytes.Equal(got, frame) {
			t.Errorf("from %d to %d came %x", way[0], way[1], got)
		}
	}
}

// Frames reach the other end of a port's veth in another namespace.
func TestEndsInOtherNamespaces(t *testing.T) { onBoth(t, endsInOtherNamespaces) }

func endsInOtherNamespaces(t *testing.T, inKernel bool) {
	far := wires(t)
	ns, err := kernel.NewNamespace(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	ip(t, "link", "set", "q2", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd()))
	var end *device
	err = kernel.In(ns, func() (err error) {
		ip(t, "link", "set", "q2", "up")
		end, err = openDevice("q2", 0, false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(end.fd)
	carries(t, "p2")
	c := running(t, inKernel)
	c.send(output(2, of13.Exact(of13.InPort, 1)), &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	frame := frameOf(0x81, 0, 0x60, 9, 0x88, 0xb5, 1)
	for n := range 20 {
		far[0].write(frame, nil)
		if got := arrives(end, 5*time.Second); !bytes.Equal(got, frame) {
			t.Fatalf("frame %d: %x", n, got)
		}
	}
	c.send(&of13.MultipartRequest{Kind: of13.MultipartPort, Number: 2})
	if m := c.want(of13.TypeMultipartReply).(*of13.MultipartReply); m.Ports[0].TxPackets != 20 {
		t.Errorf("%d frames were counted", m.Ports[0].TxPackets)
	}
}

// A switch that never had a controller forwards as its configuration says.
func TestAloneFromTheStart(t *testing.T) { onBoth(t, aloneFromTheStart) }

func aloneFromTheStart(t *testing.T, inKernel bool) {
	far := wires(t)
	s, err := New(Config{Pipeline: pipeline.Config{Tables: 1, Entries: 1}, Ports: []string{"p1", "p2", "p3"}, Standalone: true, Kernel: inKernel, Log: func(err error) { t.Log(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- s.Run(ctx) }()
	far[0].write(frameOf(0x88, 0xb5), nil)
	for _, d := range far[1:] {
		if got := arrives(d, 5*time.Second); got == nil {
			t.Errorf("nothing came out of %s", d.name)
		}
	}
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}
