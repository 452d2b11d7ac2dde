package nsh

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"sublet/datapath/kernel"
)

// listen answers datagrams at a node's address with the address that they came from.
func (g *testGround) listen(ns, at string) {
	g.t.Helper()
	file, err := kernel.OpenNamespace(ns)
	check(g.t, err)
	defer file.Close()
	var c net.PacketConn
	check(g.t, kernel.In(file, func() (err error) {
		c, err = net.ListenPacket("udp", at)
		return err
	}))
	g.t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 2048)
		for {
			_, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			c.WriteTo([]byte(from.String()), from)
		}
	}()
}

// ask sends a datagram and returns the answer; "": none.
func (g *testGround) ask(ns, to string) string {
	g.t.Helper()
	file, err := kernel.OpenNamespace(ns)
	check(g.t, err)
	defer file.Close()
	var answer string
	check(g.t, kernel.In(file, func() error {
		c, err := net.Dial("udp", to)
		if err != nil {
			return err
		}
		defer c.Close()
		b := make([]byte, 100)
		for range 5 {
			if _, err := c.Write([]byte("?")); err != nil {
				return err
			}
			c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			if n, err := c.Read(b); err == nil {
				answer = string(b[:n])
				return nil
			}
		}
		return nil
	}))
	return answer
}

// between does f inside a namespace, with the numbers of its interfaces i0 and o0.
func (g *testGround) between(namespace string, f func(in, out int) error) {
	g.t.Helper()
	file, err := kernel.OpenNamespace(namespace)
	check(g.t, err)
	defer file.Close()
	check(g.t, kernel.In(file, func() error {
		i, err := net.InterfaceByName("i0")
		if err != nil {
			return err
		}
		o, err := net.InterfaceByName("o0")
		if err != nil {
			return err
		}
		return f(i.Index, o.Index)
	}))
}

// bridge makes the node f a bump in the wire: frames go from one interface to the
// other as they are.
func (g *testGround) bridge() {
	g.t.Helper()
	g.between(g.f, func(in, out int) error { return errors.Join(g.redirect(in, out), g.redirect(out, in)) })
}

// redirect sends all frames that come in by a device out by another, after some code.
func (g *testGround) redirect(from, to int, code ...asm.Instruction) error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: append(code,
		asm.Mov.Imm(asm.R1, int32(to)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return(),
	)})
	if err != nil {
		return err
	}
	g.t.Cleanup(func() { program.Close() })
	l, err := link.AttachTCX(link.TCXOptions{Interface: from, Program: program, Attach: ebpf.AttachTCXIngress})
	if err == nil {
		g.t.Cleanup(func() { l.Close() })
	}
	return err
}

func TestFirewall(t *testing.T) {
	g := newGround(t)
	p1, p2 := g.planes()
	p1.Functions[0].Rules = []FirewallRule{
		{Match: Match{Proto: 17, DstPorts: Ports{5000, 5009}, Src: netip.MustParsePrefix("192.168.7.0/30")}, Deny: false},
		{Match: Match{Proto: 17}, Deny: true},
		{Match: Match{Proto: 58, Dst: netip.MustParsePrefix("fd00:7::2/128")}, Deny: true},
	}
	g.set(p1, p2)
	g.listen(g.b, "192.168.7.2:5003")
	g.listen(g.b, "192.168.7.2:5010")
	if a := g.ask(g.a, "192.168.7.2:5003"); a == "" {
		t.Error("what is allowed has no answer")
	}
	if a := g.ask(g.a, "192.168.7.2:5010"); a != "" {
		t.Errorf("what is denied has the answer %s", a)
	}
	if g.pings(g.a, "fd00:7::2") || !g.pings(g.a, "192.168.7.2") {
		t.Error("the echo of IPv6 passes, or that of IPv4 does not")
	}
	if c := g.h1.hop(t, there, 255); c.Drops["denied"] < 3 {
		t.Errorf("denied are %v", c.Drops)
	}
	p1.Functions[0].Rules, p1.Functions[0].Deny = p1.Functions[0].Rules[:1], true
	check(t, g.h1.part.Set(p1))
	if g.pings(g.a, "192.168.7.2") || g.ask(g.a, "192.168.7.2:5003") == "" {
		t.Error("an echo passes that no rule allows, or what is allowed does not")
	}
}

// A classifier on a path moves what its rules match to another one, and what an earlier
// rule keeps stays; what comes reverse stays too.
func TestReclassifier(t *testing.T) {
	g := newGround(t)
	const other uint32 = 0x070003
	p1, p2 := g.planes(Function{Name: "cl", Kind: Reclassifier, Moves: []Move{
		{Match: Match{Proto: 17, DstPorts: Ports{5001, 5001}}}, {Match: Match{Proto: 17}, To: Place{other, 200}},
	}})
	p2.Functions = append(p2.Functions, Function{Name: "nothing", Kind: None})
	p2.Hops = append(p2.Hops, Hop{Path: other, Index: 200, Function: "nothing"}, Hop{Path: other, Index: 199, Egress: &Egress{Port: "lb0"}})
	g.set(p1, p2)
	for _, port := range []string{"5001", "5002"} {
		g.listen(g.b, "192.168.7.2:"+port)
		if a := g.ask(g.a, "192.168.7.2:"+port); a == "" {
			t.Errorf("no answer of port %s: %+v", port, g.report(g.h2))
		}
		if c := g.h2.hop(t, other, 199); (c.Packets > 0) != (port == "5002") {
			t.Errorf("%d packets are on the other path after some to port %s", c.Packets, port)
		}
	}
	if c := g.h2.hop(t, there, 254); c.Returned == 0 || c.Returned >= c.Packets {
		t.Errorf("counted are %+v", c)
	}
}

// Only what a classifier's rule matches is on the chain; all else stays where it was.
func TestClassifier(t *testing.T) {
	g := newGround(t)
	p1, p2 := g.planes()
	ef, none := uint8(46), uint16(0)
	p1.Classifiers[0].Rules = []Rule{{Match: Match{DSCP: &ef, VLAN: &none, Dst: netip.MustParsePrefix("192.168.7.2/32")}, Path: there, Index: 255}}
	g.set(p1, p2)
	if g.pings(g.a, "192.168.7.2") || g.h1.hop(t, there, 255).Packets != 0 {
		t.Error("packets without the mark are on the chain")
	}
	if !g.pings(g.a, "192.168.7.2", "-Q", "0xb8") {
		t.Error("packets with the mark are not on the chain")
	}
}

// NAT translates datagrams, streams and echoes, and what answers nothing is dropped.
func TestNAT(t *testing.T) {
	g := newGround(t)
	p1, p2 := g.planes(Function{Name: "nat", Kind: NAT, Prefix: netip.MustParsePrefix("198.51.100.8/30"), Ports: Ports{20000, 20999}})
	g.set(p1, p2)
	g.in(g.b, "ip route add 198.51.100.0/24 dev eth0")
	for i := 8; i < 12; i++ {
		g.in(g.b, fmt.Sprintf("ip neigh replace 198.51.100.%d lladdr %s dev eth0", i, macA))
	}
	g.listen(g.b, "192.168.7.2:5003")
	seen := make(map[string]bool)
	for range 20 {
		from, err := netip.ParseAddrPort(g.ask(g.a, "192.168.7.2:5003"))
		if err != nil || !p2.Functions[0].Prefix.Contains(from.Addr()) || from.Port() < 20000 || from.Port() > 20999 {
			t.Fatalf("b saw %s, %v", from, err)
		}
		seen[from.String()] = true
	}
	if len(seen) != 20 {
		t.Errorf("20 flows have %d ports", len(seen))
	}
	if !g.pings(g.a, "192.168.7.2") {
		t.Errorf("no echo: %+v", g.report(g.h2))
	}
	before := g.h2.hop(t, back, 255).Drops["no-state"]
	g.send(g.b, "192.168.7.2:6000", "198.51.100.9:20001", []byte("hello"))
	eventually(t, "a packet that answers nothing is dropped", func() bool { return g.h2.hop(t, back, 255).Drops["no-state"] > before })
	check(t, g.h2.part.Set(p2)) // changes nothing
	if !g.pings(g.a, "192.168.7.2") {
		t.Error("no echo once set again")
	}
	if _, err := exec.LookPath("iperf3"); err == nil {
		g.streams()
	}
}

// streams sends a stream of large segments from a to b.
func (g *testGround) streams() {
	g.t.Helper()
	server := g.command(g.b, "iperf3 -s -1 -B 192.168.7.2 -p 5201")
	check(g.t, server.Start())
	defer func() { server.Process.Kill(); server.Wait() }()
	var out []byte
	eventually(g.t, "iperf3 ends", func() bool {
		var err error
		out, err = g.command(g.a, "timeout 10 iperf3 -c 192.168.7.2 -p 5201 -n 20M --connect-timeout 500").CombinedOutput()
		return err == nil
	})
	if !strings.Contains(string(out), "receiver") {
		g.t.Errorf("iperf3 says %s", out)
	}
}

// A node between two interfaces gets the original frames and its chain goes on
// behind it, in both directions; what it makes up goes nowhere.
func TestNodeFunction(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			g := newGround(t)
			p1, p2 := g.planes(Function{Name: "ids", Kind: Node, In: "fi0", Out: "fo0"})
			if shared { // by two paths from each side
				p2.Hops = append(p2.Hops, Hop{Path: 9, Index: 254, Function: "ids"}, Hop{Path: 10, Index: 254, Function: "ids", Reverse: true})
			}
			g.set(p1, p2)
			g.bridge()
			if !g.pings(g.a, "192.168.7.2") || !g.pings(g.a, "fd00:7::2") {
				t.Fatalf("no answer: %+v", g.report(g.h2))
			}
			eventually(t, "counters of all processors agree", func() bool { // which are read one after another
				c := g.h2.hop(t, there, 254)
				return c.Returned >= 2 && c.Returned <= c.Packets
			})
			g.streams()
			if !shared {
				return
			}
			before := g.h2.drops(t)["unknown-flow"]
			g.in(g.f, "ip addr add 192.168.9.1/24 dev o0", "ip neigh replace 192.168.9.2 lladdr "+macA+" dev o0")
			g.send(g.f, "192.168.9.1:7", "192.168.9.2:7", []byte("made up"))
			eventually(t, "what a node makes up is dropped", func() bool { return g.h2.drops(t)["unknown-flow"] > before })
		})
	}
}

// A limit lets through what it says.
func TestLimitAndMirror(t *testing.T) {
	g := newGround(t)
	g.in(g.h2.Path(fabric), "tc qdisc add dev fo0 clsact", "tc filter add dev fo0 ingress protocol all u32 match u32 0 0 action mirred egress redirect dev fi0")
	p1, p2 := g.planes(Function{Name: "copy", Kind: Mirror, To: "fi0"}, Function{Name: "slow", Kind: Limit, Rate: 80_000, Burst: 3000})
	g.set(p1, p2)
	if !g.pings(g.a, "192.168.7.2") { // later packets need not wait for a neighbour
		t.Fatal("no answer")
	}
	before, start := g.h2.hop(t, there, 253), time.Now()
	packets := make([][]byte, 40)
	for i := range packets {
		packets[i] = make([]byte, 958) // 1000 bytes a frame
	}
	g.send(g.a, "192.168.7.1:4000", "192.168.7.2:4000", packets...)
	eventually(t, "all arrive at the limit", func() bool { return g.h2.hop(t, there, 253).Packets >= before.Packets+40 })
	c, most := g.h2.hop(t, there, 253), 4+int(time.Since(start).Seconds()*10) // bucket and refill
	if passed := int(c.Packets - before.Packets - c.Drops["limited"] + before.Drops["limited"]); passed < 1 || passed > most {
		t.Errorf("%d of 40 packets passed, not 1 to %d: %+v", passed, most, c)
	}
	copied(g)
	p1, p2 = g.planes(Function{Name: "copy", Kind: Mirror, To: "fo0", Enters: true})
	g.set(p1, p2)
	already := copied(g)
	g.send(g.a, "192.168.7.1:4000", "192.168.7.2:4000", packets...)
	eventually(t, "copies that enter by fo0, which are led to fi0", func() bool { return frames(g) >= already+40 })
}

// frames is how many came to the first interface of f.
func frames(g *testGround) (n int) {
	for _, line := range strings.Split(g.in(g.f, "cat /proc/net/dev"), "\n") {
		var bytes int
		if f := strings.Fields(line); len(f) > 2 && f[0] == "i0:" {
			fmt.Sscan(f[1]+" "+f[2], &bytes, &n)
		}
	}
	return n
}

// copied waits for copies of the packets that were sent.
func copied(g *testGround) int {
	g.t.Helper()
	eventually(g.t, "copies", func() bool { return frames(g) >= 40 })
	return frames(g)
}

// A flow keeps its backend; all backends get flows; one that goes takes no other's.
func TestBalancer(t *testing.T) {
	g := newGround(t)
	lb := Function{Name: "lb", Kind: Balancer, Service: netip.MustParseAddrPort("192.168.7.100:5003")}
	for i := range 4 {
		addr := fmt.Sprintf("192.168.7.%d", 20+i)
		g.in(g.b, "ip addr add "+addr+"/24 dev eth0")
		lb.Backends = append(lb.Backends, Backend{Address: netip.MustParseAddr(addr), Ethernet: macB})
		g.listen(g.b, addr+":5003")
	}
	g.in(g.a, "ip neigh replace 192.168.7.100 lladdr "+macB+" dev eth0")
	p1, p2 := g.planes(lb)
	g.set(p1, p2)
	for range 10 {
		if a := g.ask(g.a, "192.168.7.100:5003"); !strings.HasPrefix(a, "192.168.7.1:") {
			t.Fatalf("the service answers %q: %+v", a, g.report(g.h2))
		}
	}
	lb.Service, lb.Target = netip.AddrPortFrom(lb.Service.Addr(), 80), lb.Service.Port()
	p2.Functions = []Function{lb}
	check(t, g.h2.part.Set(p2))
	if a := g.ask(g.a, "192.168.7.100:80"); !strings.HasPrefix(a, "192.168.7.1:") {
		t.Errorf("port 80 of the service, port %d of nodes, answers %q", lb.Target, a)
	}
	lb.Service, lb.Target = netip.AddrPortFrom(lb.Service.Addr(), lb.Target), 0
	for i := range lb.Backends {
		lb.Backends[i].Down = true
	}
	p2.Functions = []Function{lb}
	check(t, g.h2.part.Set(p2))
	if a := g.ask(g.a, "192.168.7.100:5003"); a != "" {
		t.Errorf("no backend, but the answer %s", a)
	}
	if c := g.h2.hop(t, there, 254); c.Drops["no-backend"] == 0 {
		t.Errorf("counted are %+v", c)
	}
}

// Of a table's choices few change when a backend goes, and all get about as many.
func TestChoices(t *testing.T) {
	var backends []Backend
	for i := range 10 {
		backends = append(backends, Backend{Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})})
	}
	before := choices(backends)
	count := make(map[byte]int)
	for _, n := range before {
		count[n]++
	}
	for i := range backends {
		if n := count[byte(i)]; n < size/10 || n > size/10+1 {
			t.Errorf("backend %d has %d of %d places", i, n, size)
		}
	}
	backends[3].Down = true
	changed := 0
	for i, n := range choices(backends) {
		if n == 3 {
			t.Error("a backend that is down is chosen")
		}
		if before[i] != 3 && n != before[i] {
			changed++
		}
	}
	if changed > size/5 {
		t.Errorf("%d of %d places changed", changed, size)
	}
}
