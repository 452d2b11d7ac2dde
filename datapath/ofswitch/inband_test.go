package ofswitch

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/openflow/channel"
	"sublet/openflow/inband"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// bandSwitch is in the environment of a process that is one of the switches.
const bandSwitch = "OFSWITCH_TEST_BAND"

const bandPort = 6653

// bandAddress is a switch's, or with 254 the controller's.
func bandAddress(six bool, host int) netip.Addr {
	if six {
		return netip.MustParseAddr(fmt.Sprintf("fd00::%x", host))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.9.0.%d", host))
}

// runBandSwitch is a switch: the stack of its namespace is behind its port LOCAL.
func runBandSwitch(t *testing.T, spec string) {
	var number int
	var inKernel, six bool
	if _, err := fmt.Sscan(spec, &number, &inKernel, &six); err != nil {
		t.Fatal(err)
	}
	silence(t)
	ip(t, "link", "add", "local", "type", "veth", "peer", "name", "stack")
	ip(t, "link", "set", "local", "up")
	bandStack(t, "stack", six, number)
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil { // until its ports are there
		t.Fatal(err)
	}
	target := channel.Target{Address: netip.AddrPortFrom(bandAddress(six, 254), bandPort).String()}
	controllers, err := InBandOf([]channel.Target{target})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{
		Pipeline: pipeline.Config{DatapathID: uint64(number), Tables: 2, Entries: 100}, Follow: true, Local: "local", MissEntry: true, Kernel: inKernel,
		InBand: &InBand{Controllers: controllers}, Controllers: []channel.Target{target}, Log: func(err error) { t.Log(number, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// bandStack gives a device an address of the control network.
func bandStack(t *testing.T, device string, six bool, host int) {
	t.Helper()
	bits := "/24"
	if six {
		bits = "/64"
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/disable_ipv6", []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"address", "add", bandAddress(six, host).String() + bits, "dev", device}
	if six {
		args = append(args, "nodad")
	}
	ip(t, args...)
	ip(t, "link", "set", device, "up")
}

// bandLab is switches in namespaces, and their controller.
type bandLab struct {
	t        *testing.T
	six      bool
	switches []*exec.Cmd
	starts   []io.Writer
	listener net.Listener

	mu        sync.Mutex
	conns     map[uint64]net.Conn
	answered  map[uint64]time.Time // when an echo was answered last
	entries   map[uint64]int       // that a switch has told of
	packetIns int                  // of control
	joins     int
}

// newBandLab starts n switches, which wait, and joins them; a link to 0 is to the controller.
func newBandLab(t *testing.T, n int, inKernel, six bool, links ...[2]int) *bandLab {
	l := &bandLab{t: t, six: six, conns: make(map[uint64]net.Conn), answered: make(map[uint64]time.Time), entries: make(map[uint64]int)}
	silence(t)
	for i := range n {
		cmd := exec.Command(os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.v", "-test.timeout=0")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %v %v", bandSwitch, i+1, inKernel, six))
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
		start, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		l.switches, l.starts = append(l.switches, cmd), append(l.starts, start)
		t.Cleanup(func() {
			cmd.Process.Kill()
			if cmd.Wait(); t.Failed() {
				t.Logf("switch %d said:\n%s", i+1, said.String())
			}
		})
	}
	ports := make(map[int]int)
	for k, link := range links {
		ip(t, "link", "add", fmt.Sprintf("a%d", k), "type", "veth", "peer", "name", fmt.Sprintf("b%d", k))
		for side, at := range link {
			l.plug(fmt.Sprintf("%c%d", "ab"[side], k), at, ports[at])
			ports[at]++
		}
	}
	return l
}

// plug makes a device a port of a switch, or the controller's.
func (l *bandLab) plug(device string, at, port int) {
	if at == 0 {
		bandStack(l.t, device, l.six, 254)
		return
	}
	name := fmt.Sprintf("eth%d", port)
	ip(l.t, "link", "set", device, "netns", fmt.Sprint(l.switches[at-1].Process.Pid), "name", name)
	l.inside(at, "link", "set", name, "up")
}

// inside runs ip in the namespace of a switch.
func (l *bandLab) inside(at int, args ...string) {
	args = append([]string{"-t", fmt.Sprint(l.switches[at-1].Process.Pid), "-n", "ip"}, args...)
	if out, err := exec.Command("nsenter", args...).CombinedOutput(); err != nil {
		l.t.Fatalf("nsenter %v: %v: %s", args, err, out)
	}
}

// boot has all switches begin, and the controller listen.
func (l *bandLab) boot() {
	l.listen()
	for _, w := range l.starts {
		w.Write([]byte{1})
	}
}

func (l *bandLab) listen() {
	var err error
	address := netip.AddrPortFrom(bandAddress(l.six, 254), bandPort).String()
	if l.listener, err = net.Listen("tcp", address); err != nil {
		l.t.Fatal(err)
	}
	go func(listener net.Listener) {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(c)
		}
	}(l.listener)
}

// restart is the controller that ends and comes back.
func (l *bandLab) restart() {
	l.listener.Close()
	l.mu.Lock()
	for _, c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	l.listen()
}

// serve is one connection: it asks for echoes all the time.
func (l *bandLab) serve(c net.Conn) {
	defer c.Close()
	plain := func(kind byte) { c.Write([]byte{of13.Version, kind, 0, 8, 0, 0, 0, 1}) }
	plain(of13.TypeHello)
	plain(of13.TypeFeaturesRequest)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				plain(of13.TypeEchoRequest)
			}
		}
	}()
	var id uint64
	filter := inband.NewFilter([]netip.AddrPort{netip.AddrPortFrom(bandAddress(l.six, 254), bandPort)}, nil)
	var decoder of13.Decoder
	for {
		b := make([]byte, of13.HeaderLen)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		b = append(b, make([]byte, int(binary.BigEndian.Uint16(b[2:]))-len(b))...)
		if _, err := io.ReadFull(c, b[of13.HeaderLen:]); err != nil {
			return
		}
		_, m, err := decoder.Decode(b)
		if err != nil {
			l.t.Error(err)
			return
		}
		l.mu.Lock()
		switch m := m.(type) {
		case *of13.FeaturesReply:
			id, l.conns[m.DatapathID] = m.DatapathID, c
			l.joins++
		case *of13.Echo:
			if m.Reply && id != 0 {
				l.answered[id] = time.Now()
			}
		case *of13.PacketIn:
			if _, is := filter.Look(m.Data); is {
				l.packetIns++
			}
		case *of13.MultipartReply:
			l.entries[id] = len(m.Flows)
		}
		l.mu.Unlock()
	}
}

func (l *bandLab) toAll(m of13.Message) {
	l.t.Helper()
	b, err := of13.Append(nil, 1, m)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Write(b)
	}
}

// reached waits until all switches have answered an echo that was later than now.
func (l *bandLab) reached(what string) {
	l.t.Helper()
	began := time.Now()
	for missing := []int{0}; len(missing) > 0; time.Sleep(5 * time.Millisecond) {
		missing = missing[:0]
		l.mu.Lock()
		for i := range l.switches {
			if l.answered[uint64(i+1)].Before(began) {
				missing = append(missing, i+1)
			}
		}
		l.mu.Unlock()
		if time.Since(began) > 30*time.Second {
			l.t.Fatalf("%s: switches %v are not reached", what, missing)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.Logf("%s: %v until all %d switches answer, %d connections so far", what, time.Since(began).Round(time.Millisecond), len(l.switches), l.joins)
}

// drop has every switch drop everything, above all else, and sees that this is all
// that its tables hold beside what they began with.
func (l *bandLab) drop() {
	l.toAll(&of13.FlowMod{Priority: 0xffff, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny})
	l.toAll(&of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		told, right := len(l.entries), true
		for _, n := range l.entries {
			right = right && n == 3
		}
		l.mu.Unlock()
		if told == len(l.switches) {
			if !right {
				l.t.Errorf("entries of the switches: %v, want 3 each", l.entries)
			}
			return
		}
		if time.Now().After(end) {
			l.t.Fatal("not all switches list their entries")
		}
	}
}

// In band all switches of a ring join from nothing, and stay: when they are told to
// drop everything, when the controller comes back, when a link is cut, and when the
// controller is moved. Nothing of it is a packet-in.
func TestInBand(t *testing.T) {
	if spec := os.Getenv(bandSwitch); spec != "" {
		runBandSwitch(t, spec)
		return
	}
	for name, six := range map[string]bool{"IPv4": false, "IPv6": true} { // the one on the process datapath, the other on the kernel's
		t.Run(name, func(t *testing.T) {
			if within(t) {
				inBand(t, six, six)
			}
		})
	}
}

// In band ten switches in a line, in a ring and in a tree join from nothing. The log
// says how long that took (docs/research/openflow-performance.md).
func TestSoakInBandBoot(t *testing.T) {
	if spec := os.Getenv(bandSwitch); spec != "" {
		runBandSwitch(t, spec)
		return
	}
	for _, n := range []int{2, 4, 6, 8, 10} { // all only if they are asked for
		for shape, links := range bandShapes(n) {
			if n < 10 && !*bandSizes {
				continue
			}
			t.Run(fmt.Sprintf("%s of %d", shape, n), func(t *testing.T) {
				if within(t) {
					l := newBandLab(t, n, false, false, links...)
					l.boot()
					l.reached("boot")
				}
			})
		}
	}
}

var bandSizes = flag.Bool("band-sizes", false, "boot switches in band in all sizes")

// bandShapes are links of n switches; the controller is at the first one.
func bandShapes(n int) map[string][][2]int {
	line, tree := [][2]int{{0, 1}}, [][2]int{{0, 1}}
	for i := 2; i <= n; i++ {
		line, tree = append(line, [2]int{i - 1, i}), append(tree, [2]int{i / 2, i})
	}
	return map[string][][2]int{"line": line, "ring": append(line[:len(line):len(line)], [2]int{n, 1}), "tree": tree}
}

func inBand(t *testing.T, inKernel, six bool) {
	l := newBandLab(t, 4, inKernel, six, [2]int{0, 1}, [2]int{1, 2}, [2]int{2, 3}, [2]int{3, 4}, [2]int{4, 1})
	l.boot()
	l.reached("boot")
	l.drop()
	l.reached("everything is dropped")
	l.restart()
	l.reached("controller back")
	l.inside(2, "link", "set", "eth1", "down")
	l.reached("link cut")
	ip(t, "link", "del", "a0") // the controller's
	ip(t, "link", "add", "c9", "type", "veth", "peer", "name", "d9")
	l.plug("d9", 3, 9)
	l.plug("c9", 0, 0)
	l.reached("controller moved")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.packetIns > 0 {
		t.Errorf("%d packet-ins", l.packetIns)
	}
}
