package iplb

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
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

// setShortcut makes both relays relay, with a shortcut.
func setShortcut(t *testing.T, relays [2]*Table, s Shortcut) {
	t.Helper()
	for i, r := range relays {
		relaying := relayingAt([]netip.Addr{relay1, relay2}[i])
		relaying.Shortcut = s
		if err := r.SetRelaying(relaying); err != nil {
			t.Fatal(err)
		}
	}
}

// relayedBy is one whose wires have an MTU, and no route another.
func relayedBy(t *testing.T, mtu int) (*line, *Table, [2]*Table) {
	l := newLine(t, mtu)
	sender, relays := table(t), [2]*Table{table(t), table(t)}
	sender.Source = netip.MustParseAddr("10.1.0.1")
	setShortcut(t, relays, WhereFree)
	for i, r := range relays {
		l.attach(i+1, "left", ebpf.AttachTCXIngress, r.Relay())
	}
	l.attach(0, "right", ebpf.AttachTCXEgress, sender.Transmit())
	return l, sender, relays
}

func relayingAt(relay netip.Addr) Relaying {
	return Relaying{
		Addresses: []netip.Addr{relay},
		Senders:   []netip.Prefix{netip.MustParsePrefix("10.1.0.1/32")},
		Inside:    []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}
}

// stream sends over paths of a form, and checks that all arrived by them.
func stream(t *testing.T, l *line, sender *Table, form plan.Relaying, relays []netip.Addr, to string) {
	t.Helper()
	behind := netip.MustParsePrefix("10.3.0.0/24")
	set(t, sender, plan.Spread{Prefix: behind, By: form, Paths: []plan.RelayPath{{Relays: relays}}})
	before, err := sender.Load(behind, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.send(to, 64); got != 64<<20 {
		t.Errorf("form %s over %v to %s: %d bytes of %d arrive", form, relays, to, got, 64<<20)
	}
	if load, err := sender.Load(behind, 0); err != nil || load.Bytes-before.Bytes < 64<<20 {
		t.Errorf("form %s over %v to %s: %+v, %v", form, relays, to, load, err)
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
		form   plan.Relaying
		relays []netip.Addr
	}{
		{plan.ByIPIP, []netip.Addr{relay1}}, {plan.ByIPIP, []netip.Addr{relay2}}, {plan.ByIPIP, []netip.Addr{relay1, relay2}},
		{plan.ByGRE, []netip.Addr{relay1}},
		{plan.ByUDP, []netip.Addr{relay1}}, {plan.ByUDP, []netip.Addr{relay1, relay2}},
	} {
		stream(t, l, sender, c.form, c.relays, "10.3.0.2")
		l.run(0, "ping -c 2 -i 0.1 -W 2 10.3.0.2")
		l.run(0, "ping -c 1 -W 2 -s 1472 -M do 10.3.0.2")
	}
	soundCounts(t, sender, nodes)
}

// A relay sends past the stack what nobody in the stack would see: then the
// kernel forwards only the first of a flow in each tick, and what comes back; and
// everything still arrives, large packets too.
func TestRelaysPastTheStack(t *testing.T) {
	l, sender, nodes := relayed(t)
	shortcut := func(s Shortcut) { setShortcut(t, nodes, s) }
	ways := map[string][]plan.RelayPath{"its own": {{Relays: []netip.Addr{relay1, relay2}}}, "another's": {{}}}
	const pings = 2000
	check := func(what string, past bool) {
		t.Helper()
		for whose, paths := range ways {
			set(t, sender, plan.Spread{Prefix: netip.MustParsePrefix("10.3.0.0/24"), By: plan.ByUDP, Paths: paths})
			before := l.forwarded(1)
			l.run(0, fmt.Sprintf("ping -f -q -c %d 10.3.0.2", pings))
			if n := l.forwarded(1) - before; n < pings || past && n > 2*pings-pings/4 || !past && n < 2*pings {
				t.Errorf("%s, %s: the stack forwards %d packets of %d there and %d back", what, whose, n, pings, pings)
			}
		}
	}
	filter := func(value string) {
		for _, which := range []string{"all", "left", "right"} {
			l.run(1, "sysctl -q -w net.ipv4.conf."+which+".rp_filter="+value)
		}
	}
	filter("0")
	shortcut(Never)
	check("never", false)
	shortcut(WhereFree)
	check("nobody looks", true)
	for _, form := range []plan.Relaying{plan.ByIPIP, plan.ByUDP} {
		stream(t, l, sender, form, []netip.Addr{relay1, relay2}, "10.3.0.2")
		l.run(0, "ping -c 1 -W 2 -s 1472 -M do 10.3.0.2")
	}
	filter("2")
	check("sources are checked", false)
	filter("0")
	l.run(1, "ip xfrm policy add src 192.0.2.0/24 dst 192.0.2.0/24 dir fwd action block")
	check("IPsec looks", false)
	l.run(1, "ip xfrm policy flush")
	check("nobody looks again", true)
	l.attach(1, "left", ebpf.AttachTCXIngress, sender.Echo())
	check("another program looks", false)
	shortcut(Always)
	check("always", true)
	soundCounts(t, sender, nodes)
	if counts, err := nodes[0].Counts(); err != nil || counts["forwarded"] == 0 {
		t.Errorf("relay 1: %v, %v", counts, err)
	}
}

// raw is a packet socket on a device of a namespace.
func (l *line) raw(i int, device string) int {
	l.t.Helper()
	fd := -1
	err := kernel.In(l.ns[i], func() error {
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		const all = 0x0300 // ETH_P_ALL, as it lies in memory
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: d.Index})
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { unix.Close(fd) })
	wait := unix.NsecToTimeval(int64(100 * time.Millisecond))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		l.t.Fatal(err)
	}
	return fd
}

// What the stack would not send on does not go past it either, however many come
// at once; what simply goes on arrives once each, in order, one hop older.
func TestWhatDoesNotGoPastTheStack(t *testing.T) {
	l, _, nodes := relayed(t)
	setShortcut(t, nodes, Always)
	l.run(1, "ip route add default via 10.2.0.2")
	l.run(0, "ping -c 1 -W 2 10.3.0.2") // neighbours are known
	var hardware net.HardwareAddr
	err := kernel.In(l.ns[1], func() error {
		d, err := net.InterfaceByName("left")
		hardware = d.HardwareAddr
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	from, to := l.raw(0, "right"), l.raw(2, "left")
	behind := netip.MustParseAddr("10.3.0.2")
	with := func(source, target netip.Addr, change func(ip []byte)) []byte {
		b := packet(7777, 60)
		copy(b, hardware)
		header(b[14:], 17, source, target, len(b)-14)
		change(b[14:])
		b[24], b[25] = 0, 0
		binary.BigEndian.PutUint16(b[24:], ^sum(b[14:34]))
		return b
	}
	at := netip.MustParseAddr("10.1.0.1")
	none := func([]byte) {}
	tagged := with(at, behind, none)
	tagged = slices.Concat(tagged[:12], []byte{0x81, 0, 0, 100}, tagged[12:])
	damaged := with(at, behind, none)
	damaged[25]++
	const burst = 8
	for name, c := range map[string]struct {
		frame []byte
		want  int
	}{
		"it goes on":           {with(at, behind, none), burst},
		"late":                 {with(at, behind, func(ip []byte) { ip[8] = 1 }), 0},
		"of a VLAN":            {tagged, 0},
		"to a group":           {with(at, netip.MustParseAddr("224.0.0.5"), none), 0},
		"to a loopback":        {with(at, netip.MustParseAddr("127.0.0.5"), none), 0},
		"from the router":      {with(relay1, behind, none), 0},
		"from a loopback":      {with(netip.MustParseAddr("127.0.0.1"), behind, none), 0},
		"damaged":              {damaged, 0},
		"without a length":     {with(at, behind, func(ip []byte) { ip[2], ip[3] = 0, 0 }), 0},
		"longer than it says":  {append(with(at, behind, none), make([]byte, 1000)...), burst}, // cut by the stack
		"shorter than it says": {with(at, behind, none)[:60], 0},
	} {
		for range burst {
			if _, err := unix.Write(from, c.frame); err != nil {
				t.Fatal(err)
			}
		}
		got, b := 0, make([]byte, 4096)
		for {
			n, _, err := unix.Recvfrom(to, b, 0)
			if err != nil {
				break
			}
			if n < 42 || binary.BigEndian.Uint16(b[34:]) != 7777 {
				continue // others'
			}
			got++
			if b[22] != c.frame[22]-1 || sum(b[14:34]) != 0xffff || n > 14+20+8+60 {
				t.Errorf("%s: arrives as % x", name, b[:n])
			}
		}
		if got != c.want {
			t.Errorf("%s: %d of %d frames are sent on, not %d", name, got, burst, c.want)
		}
	}
	if counts, err := nodes[0].Counts(); err != nil || counts["forwarded"] < burst/2 {
		t.Errorf("%v, %v", counts, err)
	}
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
	stream(t, l, sender, plan.ByGRE, []netip.Addr{relay1, relay2}, "10.3.0.2")
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
	stream(t, l, sender, plan.ByUDP, []netip.Addr{relay1}, "10.7.0.2")
	stream(t, l, sender, plan.ByUDP, []netip.Addr{relay1, relay2}, "10.7.0.2")
	soundCounts(t, sender, nodes)
	// IP in IP takes none of a stream's packets, small ones neither: they would
	// overtake the large ones.
	l.run(0, "ip link set vx gso_max_segs 1")
	for _, uncut := range []bool{false, true} {
		if err := sender.SetWiresCarryGSO(uncut); err != nil {
			t.Fatal(err)
		}
		set(t, sender, plan.Spread{Prefix: netip.MustParsePrefix("10.3.0.0/24"), Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}}}})
		before, _ := sender.Counts()
		l.send("10.7.0.2", 1)
		after, err := sender.Counts()
		const few = 5 // such as ARP
		if err != nil || after["refused"]-before["refused"] < 100 || after["spread"]-before["spread"] > few {
			t.Errorf("uncut %v: %v, then %v, %v", uncut, before, after, err)
		}
	}
}

// Where nobody has lowered an MTU, senders are told what fits with the headers,
// and then nothing is too big, or cut, or lost.
func TestSendersAreToldWhatFits(t *testing.T) {
	for _, c := range []struct {
		form   plan.Relaying
		relays []netip.Addr
		room   int
	}{
		{plan.ByIPIP, []netip.Addr{relay1}, 20}, {plan.ByIPIP, []netip.Addr{relay1, relay2}, 40}, {plan.ByGRE, []netip.Addr{relay1}, 24}, {plan.ByUDP, []netip.Addr{relay1, relay2}, 36},
	} {
		l, sender, nodes := relayedBy(t, 1500)
		behind := netip.MustParsePrefix("10.3.0.0/24")
		set(t, sender, plan.Spread{Prefix: behind, By: c.form, Paths: []plan.RelayPath{{Relays: c.relays}}})
		if got := l.send("10.3.0.2", 16); got != 16<<20 {
			t.Errorf("form %s over %v: %d bytes of %d arrive", c.form, c.relays, got, 16<<20)
		}
		l.run(0, fmt.Sprintf("ping -c 1 -W 2 -M do -s %d 10.3.0.2", 1500-28-c.room))
		before, err := sender.Counts()
		if err != nil || before["too-big"] == 0 || before["native"]+before["refused"] != 0 {
			t.Errorf("form %s over %v: %v, %v", c.form, c.relays, before, err)
		}
		if got := l.send("10.3.0.2", 16); got != 16<<20 {
			t.Errorf("form %s over %v: %d bytes of %d arrive", c.form, c.relays, got, 16<<20)
		}
		if after, err := sender.Counts(); err != nil || after["too-big"] != before["too-big"] {
			t.Errorf("form %s over %v: told again: %v, %v", c.form, c.relays, after, err)
		}
		if load, err := sender.Load(behind, 0); err != nil || load.Bytes < 32<<20 {
			t.Errorf("form %s over %v: %+v, %v", c.form, c.relays, load, err)
		}
		for i := range c.relays {
			if counts, err := nodes[i].Counts(); err != nil || counts["relayed"] == 0 {
				t.Errorf("form %s, relay %d: %v, %v", c.form, i+1, counts, err)
			}
		}
	}
}
