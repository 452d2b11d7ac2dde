package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/vnet"
)

// inside runs a command in a namespace of the lab's.
func (l *lab) inside(name, line string) string {
	l.t.Helper()
	var out []byte
	err := kernel.In(l.ns[name], func() (err error) {
		argv := strings.Fields(line)
		out, err = exec.Command(argv[0], argv[1:]...).CombinedOutput()
		return err
	})
	if err != nil {
		l.t.Fatalf("%s: %v: %s", line, err, out)
	}
	return string(out)
}

// TestXDPCapacity is TestCapacityIsEnforced on AF_XDP sockets.
func TestXDPCapacity(t *testing.T) {
	for _, c := range []struct {
		in, out string
		want    vnet.Rate
	}{{"1Mbit", "1Gbit", vnet.Mbit}, {"1Gbit", "20Mbit", 20 * vnet.Mbit}} {
		t.Run(fmt.Sprintf("in %s out %s", c.in, c.out), func(t *testing.T) {
			l := wired(t, fmt.Sprintf("virtual_switches:\n- {name: one, ports: [{port: a, in: %s, out: 1Gbit}, {port: b, in: 1Gbit, out: %s}]}\n", c.in, c.out), "xdp", "xdp")
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() { l.blast(ctx, "a", "b", c.want*2) })
			l.within("b", 10+int(c.want/1514/8/50), int(1.5*float64(c.want)/1514/8), c.want)
			cancel()
			wg.Wait()
			l.balanced(l.status())
		})
	}
}

// What an AF_XDP port has made goes with it: the program at the device, and the
// queue, which another one takes; also when the port becomes one of another
// kind, and comes back.
func TestXDPLeavesNothing(t *testing.T) {
	l := wired(t, oneSwitch, "xdp", "xdp")
	l.stream("a", "b")
	device := l.h.cfg.Ports[0].XDP
	attached := func() bool { return strings.Contains(l.inside("s", "ip link show "+device), "xdp") }
	if !attached() {
		t.Fatal("no program at the device")
	}
	xdp := *l.h.cfg
	packet := xdp
	packet.Ports = slices.Clone(xdp.Ports)
	packet.Ports[0].XDP, packet.Ports[0].Packet = "", device
	l.change(&packet)
	if attached() {
		t.Error("a program is at the device of a packet socket")
	}
	l.stream("a", "b")
	l.change(&xdp)
	if !attached() {
		t.Error("no program at the device")
	}
	l.stream("b", "a")
}

// change makes the hosting switch c. A queue that was just left may be busy for
// some time on a busy machine; then nothing changes.
func (l *lab) change(c *Config) {
	l.t.Helper()
	var err error
	for range 50 {
		l.h.Do(context.Background(), func() { err = l.h.Change(c) })
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// A process that is killed leaves nothing either.
func TestXDPDiesWithItsProcess(t *testing.T) {
	if file := os.Getenv("VXSWITCH_TEST_CONFIG"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(c); err != nil {
			t.Fatal(err)
		}
		fmt.Println("open")
		select {}
	}
	l := wired(t, "", "packet", "packet")
	c := *l.h.cfg
	file, device := filepath.Join(t.TempDir(), "config"), c.Ports[0].Packet
	if err := os.WriteFile(file, fmt.Appendf(nil, "ports: [{name: a, xdp: %s, namespace: %s}]\n", device, c.Ports[0].Namespace), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds the queue free
		l.killed(file)
		if strings.Contains(l.inside("s", "ip link show "+device), "xdp") {
			t.Error("the program outlives the process")
		}
	}
}

// killed starts a process with a hosting switch and kills it.
func (l *lab) killed(file string) {
	l.t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestXDPDiesWithItsProcess$")
	cmd.Env = append(os.Environ(), "VXSWITCH_TEST_CONFIG="+file)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || line != "open\n" {
		l.t.Fatalf("%q, %v", line, err)
	}
}
