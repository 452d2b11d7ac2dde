package iplb

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sublet/datapath/kernel"
)

// line is the namespaces a - r1 - r2 - b, which forward IPv4: the wire between
// the i-th and the next is 10.I.0.0/24, relays are 10.255.0.1 and .2.
type line struct {
	t  *testing.T
	ns []*os.File
}

func newLine(t *testing.T, mtu int) *line {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	l := &line{t: t}
	for range 4 {
		ns, err := kernel.NewNamespace(func() error { return kernel.Sysctl("ipv4/ip_forward", "1") })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		l.ns = append(l.ns, ns)
		l.run(len(l.ns)-1, "ip link set lo up")
	}
	for i := range 3 {
		l.run(i, "ip link add right type veth peer name new")
		l.run(i, "ip link set new netns /proc/self/fd/3 name left", l.ns[i+1])
		for side, device := range []string{"right", "left"} {
			l.run(i+side, fmt.Sprintf("ip addr add 10.%d.0.%d/24 dev %s", i+1, side+1, device))
			l.run(i+side, fmt.Sprintf("ip link set %s mtu %d up", device, mtu))
		}
	}
	for i, routes := range [][]string{
		{"10.3.0.0/24 via 10.1.0.2", "10.255.0.0/24 via 10.1.0.2"},
		{"10.3.0.0/24 via 10.2.0.2", "10.255.0.2/32 via 10.2.0.2"},
		{"10.1.0.0/24 via 10.2.0.1"},
		{"10.1.0.0/24 via 10.3.0.1"},
	} {
		for _, route := range routes {
			l.run(i, "ip route add "+route)
		}
	}
	for i := 1; i <= 2; i++ {
		l.run(i, fmt.Sprintf("ip addr add 10.255.0.%d/32 dev lo", i))
	}
	return l
}

func (l *line) run(i int, command string, extra ...*os.File) {
	l.t.Helper()
	argv := strings.Fields(command)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = extra
	err := kernel.In(l.ns[i], func() error {
		out, err := cmd.CombinedOutput()
		if err != nil {
			l.t.Logf("%s: %s", command, out)
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *line) attach(i int, device string, at ebpf.AttachType, p *ebpf.Program) {
	l.t.Helper()
	err := kernel.In(l.ns[i], func() error {
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		on, err := link.AttachTCX(link.TCXOptions{Interface: d.Index, Program: p, Attach: at})
		if err == nil {
			l.t.Cleanup(func() { on.Close() })
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// send carries some megabytes from a to an address of b, and says how many
// bytes arrived.
func (l *line) send(to string, megabytes int) int64 {
	l.t.Helper()
	var listener net.Listener
	var conn net.Conn
	err := kernel.In(l.ns[3], func() (err error) { listener, err = net.Listen("tcp4", to+":5000"); return err })
	if err != nil {
		l.t.Fatal(err)
	}
	defer listener.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			got <- 0
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		n, _ := io.Copy(io.Discard, c)
		got <- n
	}()
	err = kernel.In(l.ns[0], func() (err error) { conn, err = net.DialTimeout("tcp4", to+":5000", 5*time.Second); return err })
	if err != nil {
		l.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	data := make([]byte, 1<<20)
	for range megabytes {
		if _, err := conn.Write(data); err != nil {
			l.t.Error(err)
			break
		}
	}
	conn.Close()
	return <-got
}

// relayed is a line whose middle takes headers off, and its sender.
func relayed(t *testing.T) (*line, *Table, [2]*Table) {
	l, sender, relays := relayedBy(t, 1700)
	l.run(0, "ip route replace 10.3.0.0/24 via 10.1.0.2 mtu 1500")
	return l, sender, relays
}

// relayedBy is one whose wires have an MTU, and no route another.
func relayedBy(t *testing.T, mtu int) (*line, *Table, [2]*Table) {
	l := newLine(t, mtu)
	sender, relays := table(t), [2]*Table{table(t), table(t)}
	sender.Source = netip.MustParseAddr("10.1.0.1")
	for i, r := range relays {
		if err := r.SetRelaying(wallsOf([]netip.Addr{relay1, relay2}[i])); err != nil {
			t.Fatal(err)
		}
		l.attach(i+1, "left", ebpf.AttachTCXIngress, r.Relay())
	}
	l.attach(0, "right", ebpf.AttachTCXEgress, sender.Transmit())
	return l, sender, relays
}

func wallsOf(relay netip.Addr) Relaying {
	return Relaying{
		Addresses: []netip.Addr{relay},
		Senders:   []netip.Prefix{netip.MustParsePrefix("10.1.0.1/32")},
		Inside:    []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}
}

// stream sends over paths of a form, and checks that all arrived by them.
func stream(t *testing.T, l *line, sender *Table, form Form, relays []netip.Addr, to string) {
	t.Helper()
	behind := netip.MustParsePrefix("10.3.0.0/24")
	set(t, sender, Rule{Prefix: behind, Form: form, Paths: []Path{{Relays: relays}}})
	before, err := sender.Load(behind, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.send(to, 64); got != 64<<20 {
		t.Errorf("form %d over %v to %s: %d bytes of %d arrive", form, relays, to, got, 64<<20)
	}
	if load, err := sender.Load(behind, 0); err != nil || load.Bytes-before.Bytes < 64<<20 {
		t.Errorf("form %d over %v to %s: %+v, %v", form, relays, to, load, err)
	}
}

func soundCounts(t *testing.T, sender *Table, relays [2]*Table) {
	t.Helper()
	for i, r := range relays {
		counts, err := r.Counts()
		if err != nil || counts["relayed"] == 0 || counts["drop-malformed"]+counts["drop-checksum"]+counts["drop-outside"]+counts["refused"] != 0 {
			t.Errorf("relay %d: %v, %v", i+1, counts, err)
		}
	}
	counts, err := sender.Counts()
	if err != nil || counts["refused"]+counts["too-big"]+counts["native"] != 0 {
		t.Errorf("sender: %v, %v", counts, err)
	}
}

func TestStreamsThroughRelays(t *testing.T) {
	l, sender, nodes := relayed(t)
	for _, c := range []struct {
		form   Form
		relays []netip.Addr
	}{
		{IPIP, []netip.Addr{relay1}}, {IPIP, []netip.Addr{relay2}}, {IPIP, []netip.Addr{relay1, relay2}},
		{GRE, []netip.Addr{relay1}},
		{List, []netip.Addr{relay1}}, {List, []netip.Addr{relay1, relay2}},
	} {
		stream(t, l, sender, c.form, c.relays, "10.3.0.2")
		l.run(0, "ping -c 2 -i 0.1 -W 2 10.3.0.2")
		l.run(0, "ping -c 1 -W 2 -s 1472 -M do 10.3.0.2")
	}
	soundCounts(t, sender, nodes)
}

// A relay may send past the stack: then the kernel forwards only what comes
// back, and everything still arrives, large packets too.
func TestRelaysPastTheStack(t *testing.T) {
	l, sender, nodes := relayed(t)
	for i, r := range nodes {
		walls := wallsOf([]netip.Addr{relay1, relay2}[i])
		walls.Shortcut = true
		if err := r.SetRelaying(walls); err != nil {
			t.Fatal(err)
		}
	}
	for _, form := range []Form{IPIP, List} {
		stream(t, l, sender, form, []netip.Addr{relay1, relay2}, "10.3.0.2")
		before := l.forwarded(1)
		l.run(0, "ping -c 20 -i 0.02 -W 2 10.3.0.2")
		if n := l.forwarded(1) - before; n < 20 || n >= 40 {
			t.Errorf("form %d: the stack forwards %d packets of 20 there and 20 back", form, n)
		}
		l.run(0, "ping -c 1 -W 2 -s 1472 -M do 10.3.0.2")
	}
	soundCounts(t, sender, nodes)
}

// forwarded is how many packets the stack of a namespace has forwarded.
func (l *line) forwarded(i int) (n int) {
	l.t.Helper()
	err := kernel.In(l.ns[i], func() error {
		text, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		n, err = strconv.Atoi(strings.Fields(lines[1])[6]) // Ip: ForwDatagrams
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// Large packets behind several GRE headers are what the kernel would cut wrong:
// they take the fabric's own way, whole.
func TestStackedGREIsNotCut(t *testing.T) {
	l, sender, _ := relayed(t)
	stream(t, l, sender, GRE, []netip.Addr{relay1, relay2}, "10.3.0.2")
	if counts, err := sender.Counts(); err != nil || counts["refused"] == 0 {
		t.Errorf("%v, %v", counts, err)
	}
}

// The kernel's own VXLAN, with large packets, through relays: as a list in its
// header it takes the path, where a header in front would be refused.
func TestTunnelsThroughRelays(t *testing.T) {
	l, sender, nodes := relayed(t)
	for i, end := range []struct{ at, local, remote, device string }{{"0", "10.1.0.1", "10.3.0.2", "right"}, {"3", "10.3.0.2", "10.1.0.1", "left"}} {
		at := i * 3
		l.run(at, fmt.Sprintf("ip link add vx type vxlan id 7 local %s remote %s dstport 4789 noudpcsum dev %s", end.local, end.remote, end.device))
		l.run(at, fmt.Sprintf("ip addr add 10.7.0.%d/24 dev vx", i+1))
		l.run(at, "ip link set vx mtu 1450 up")
	}
	stream(t, l, sender, List, []netip.Addr{relay1}, "10.7.0.2")
	stream(t, l, sender, List, []netip.Addr{relay1, relay2}, "10.7.0.2")
	soundCounts(t, sender, nodes)
}

// Where nobody has lowered an MTU, senders are told what fits with the headers,
// and then nothing is too big, or cut, or lost.
func TestSendersAreToldWhatFits(t *testing.T) {
	for _, c := range []struct {
		form   Form
		relays []netip.Addr
		room   int
	}{
		{IPIP, []netip.Addr{relay1}, 20}, {IPIP, []netip.Addr{relay1, relay2}, 40}, {GRE, []netip.Addr{relay1}, 24}, {List, []netip.Addr{relay1, relay2}, 36},
	} {
		l, sender, nodes := relayedBy(t, 1500)
		behind := netip.MustParsePrefix("10.3.0.0/24")
		set(t, sender, Rule{Prefix: behind, Form: c.form, Paths: []Path{{Relays: c.relays}}})
		if got := l.send("10.3.0.2", 16); got != 16<<20 {
			t.Errorf("form %d over %v: %d bytes of %d arrive", c.form, c.relays, got, 16<<20)
		}
		l.run(0, fmt.Sprintf("ping -c 1 -W 2 -M do -s %d 10.3.0.2", 1500-28-c.room))
		before, err := sender.Counts()
		if err != nil || before["too-big"] == 0 || before["native"]+before["refused"] != 0 {
			t.Errorf("form %d over %v: %v, %v", c.form, c.relays, before, err)
		}
		if got := l.send("10.3.0.2", 16); got != 16<<20 {
			t.Errorf("form %d over %v: %d bytes of %d arrive", c.form, c.relays, got, 16<<20)
		}
		if after, err := sender.Counts(); err != nil || after["too-big"] != before["too-big"] {
			t.Errorf("form %d over %v: told again: %v, %v", c.form, c.relays, after, err)
		}
		if load, err := sender.Load(behind, 0); err != nil || load.Bytes < 32<<20 {
			t.Errorf("form %d over %v: %+v, %v", c.form, c.relays, load, err)
		}
		for i := range c.relays {
			if counts, err := nodes[i].Counts(); err != nil || counts["relayed"] == 0 {
				t.Errorf("form %d, relay %d: %v, %v", c.form, i+1, counts, err)
			}
		}
	}
}
