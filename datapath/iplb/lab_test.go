package iplb

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
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

// send carries some megabytes from a to b, and says how many arrived.
func (l *line) send(megabytes int) int64 {
	l.t.Helper()
	var listener net.Listener
	var conn net.Conn
	err := kernel.In(l.ns[3], func() (err error) { listener, err = net.Listen("tcp4", "10.3.0.2:5000"); return err })
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
	err = kernel.In(l.ns[0], func() (err error) { conn, err = net.DialTimeout("tcp4", "10.3.0.2:5000", 5*time.Second); return err })
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

func TestStreamsThroughRelays(t *testing.T) {
	l := newLine(t, 1600)
	sender, first, second := table(t), table(t), table(t)
	sender.Source = netip.MustParseAddr("10.1.0.1")
	for i, r := range []*Table{first, second} {
		if err := r.SetRelaying(Relaying{
			Addresses: []netip.Addr{[]netip.Addr{relay1, relay2}[i]},
			Senders:   []netip.Prefix{netip.MustParsePrefix("10.1.0.1/32")},
			Inside:    []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		}); err != nil {
			t.Fatal(err)
		}
		l.attach(i+1, "left", ebpf.AttachTCXIngress, r.Relay())
	}
	l.attach(0, "right", ebpf.AttachTCXEgress, sender.Transmit())
	l.run(0, "ip route replace 10.3.0.0/24 via 10.1.0.2 mtu 1500")
	for _, relays := range [][]netip.Addr{{relay1}, {relay2}, {relay1, relay2}} {
		set(t, sender, Rule{Prefix: netip.MustParsePrefix("10.3.0.0/24"), Paths: []Path{{Relays: relays}}})
		l.run(0, "ping -c 2 -i 0.1 -W 2 10.3.0.2")
		l.run(0, "ping -c 1 -W 2 -s 1472 -M do 10.3.0.2")
		if got := l.send(64); got != 64<<20 {
			t.Errorf("over %v: %d bytes of %d arrive", relays, got, 64<<20)
		}
		load, err := sender.Load(netip.MustParsePrefix("10.3.0.0/24"), 0)
		if err != nil || load.Bytes < 64<<20 {
			t.Errorf("over %v: %+v, %v", relays, load, err)
		}
	}
	for i, r := range []*Table{first, second} {
		counts, err := r.Counts()
		if err != nil || counts["relayed"] == 0 {
			t.Errorf("relay %d: %v, %v", i+1, counts, err)
		}
	}
	counts, err := sender.Counts()
	if err != nil || counts["refused"]+counts["too-big"]+counts["native"] != 0 {
		t.Errorf("sender: %v, %v", counts, err)
	}
}
