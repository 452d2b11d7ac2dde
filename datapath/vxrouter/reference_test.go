package vxrouter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// rule is a line of the reference model's table.
type rule struct {
	prefix netip.Prefix
	why    string // left to the stack; "": sent to the neighbour on eth1
	mac    hardware
}

// reference is a port's fast path as slow and plain code.
type reference struct {
	mac    hardware // of eth0, where packets come in
	out    hardware // of eth1
	locals []netip.Addr
	rules  []rule
}

const (
	next       = 1<<32 - 1 // TCX_NEXT
	redirected = 7
)

// take says what becomes of a frame, and how it looks then.
func (w *reference) take(f []byte) (verdict uint32, counted string, out []byte) {
	if binary.BigEndian.Uint16(f[12:]) != 0x0800 || !bytes.Equal(f[:6], w.mac[:]) {
		return next, "", nil
	}
	ip := f[14:]
	src, dst := netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
	switch {
	case ip[0] != 0x45, int(binary.BigEndian.Uint16(ip[2:])) != len(ip), sum(ip[:20]) != 0xffff, odd(dst):
		return next, "unusual", nil
	case ip[8] <= 1:
		return next, "ttl", nil
	case odd(src), slices.Contains(w.locals, src):
		return next, "source", nil
	}
	if counted, out = w.forward(f, dst); out == nil {
		return next, counted, nil
	}
	out[22]--
	out[24], out[25] = 0, 0
	binary.BigEndian.PutUint16(out[24:], ^sum(out[14:34]))
	return redirected, "sent", out
}

// forward finds the way to an address, and puts its Ethernet addresses in
// front; nil: there is none for this frame, and why.
func (w *reference) forward(f []byte, dst netip.Addr) (why string, out []byte) {
	r := w.match(dst)
	if r.why != "" {
		return r.why, nil
	}
	if len(f)-14 > 1500 {
		return "size", nil
	}
	return "", slices.Concat(r.mac[:], w.out[:], f[12:])
}

// match is the longest of the rules' prefixes that hold an address.
func (w *reference) match(a netip.Addr) rule {
	r := rule{why: "route"}
	for _, c := range w.rules {
		if c.prefix.Contains(a) && (!r.prefix.IsValid() || c.prefix.Bits() > r.prefix.Bits()) {
			r = c
		}
	}
	return r
}

func odd(a netip.Addr) bool {
	b := a.As4()
	return b[0] == 0 || b[0] == 127 || b[0] >= 224
}

// sum is that of 16-bit words in network order, folded.
func sum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// packet is a random one that is often forwarded.
func (w *reference) packet(r *rand.Rand) []byte {
	size := r.IntN(100)
	if r.IntN(20) == 0 {
		size = 1470 + r.IntN(40)
	}
	ip := make([]byte, 20+size)
	for i := range ip {
		ip[i] = byte(r.Uint32())
	}
	ip[0], ip[8] = 0x45, byte(r.IntN(70))
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	copy(ip[12:], someone(r, "10.0.0.2", "10.0.0.2", "10.0.0.1", "192.168.0.7"))
	copy(ip[16:], someone(r, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.9.0.1", "10.9.1.1", "10.9.2.1", "10.9.3.1", "10.9.4.1", "10.8.0.5", "11.0.0.1"))
	if r.IntN(10) == 0 { // another version, length, option, fragment
		ip[r.IntN(10)] = byte(r.Uint32())
	}
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^sum(ip[:20]))
	if r.IntN(10) == 0 { // any bit
		ip[r.IntN(20)] ^= 1 << r.IntN(8)
	}
	return w.framed(r, []byte{8, 0}, ip)
}

// someone is one of some addresses, or one near it, or far from it.
func someone(r *rand.Rand, list ...string) []byte {
	a := netip.MustParseAddr(list[r.IntN(len(list))]).AsSlice()
	if r.IntN(4) == 0 {
		a[len(a)-1] = byte(r.Uint32())
	}
	if r.IntN(30) == 0 {
		a[0] = byte(r.Uint32())
	}
	return a
}

// framed is a frame to the router with a packet in it, sometimes to somebody
// else or of another kind.
func (w *reference) framed(r *rand.Rand, kind, packet []byte) []byte {
	to := w.mac
	if r.IntN(30) == 0 {
		to[r.IntN(6)] ^= 1 << r.IntN(8)
	}
	if r.IntN(30) == 0 {
		kind = []byte{0x88, 0xb5}
	}
	return slices.Concat(to[:], []byte{2, 0, 0, 0, 0, 9}, kind, packet)
}

// table4 is what the test's routes come to.
const table4 = "10.0.0.1/32 route,10.0.0.2/32 route,10.0.0.3/32,10.9.0.0/16,10.9.1.0/24 route,10.9.2.0/24 route,10.9.3.0/24 route,10.9.4.0/24 unresolved,10.8.0.0/24 unresolved,10.8.0.5/32"

// referenceOf is the reference model of a crossing's port eth0 with a table; its last line is
// 02:00:00:00:08:05's, others are n1's.
func (b *bench) referenceOf(r plan.VxRouter, n1 hardware, lines string) (*reference, int) {
	ns, err := b.host.Open(r.Key())
	b.check(err)
	defer ns.Close()
	var ports map[int]port
	b.check(kernel.In(ns, func() error {
		c, err := kernel.Dial()
		if err == nil {
			ports, _, err = readLinks(c, -1)
			c.Close()
		}
		return err
	}))
	w := &reference{locals: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
	index := 0
	for i, p := range ports {
		if p.name == "eth0" {
			w.mac, index = p.mac, i
		} else {
			w.out = p.mac
		}
	}
	for line := range strings.SplitSeq(lines, ",") {
		prefix, why, _ := strings.Cut(line, " ")
		w.rules = append(w.rules, rule{netip.MustParsePrefix(prefix), why, n1})
	}
	w.rules[len(w.rules)-1].mac = hardware{2, 0, 0, 0, 8, 5}
	return w, index
}

// take gives the program a frame as if it had come in by a device of the
// calling thread's namespace.
func (f *follower) take(index int, frame []byte) (verdict uint32, out []byte, err error) {
	context := make([]byte, 64)
	binary.NativeEndian.PutUint32(context[40:], uint32(index)) // __sk_buff.ifindex
	options := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: context}
	verdict, err = f.program.Run(&options)
	return verdict, options.DataOut, err
}

// trials is how many packets are tried: more with SUBLET_PACKETS.
func trials(few int) int {
	if n, err := strconv.Atoi(os.Getenv("SUBLET_PACKETS")); err == nil {
		return n
	}
	return few
}

// The program does with random and malformed packets what its reference model does.
func TestAgainstReference(t *testing.T) {
	b := newBench(t)
	r, _, _ := crossing(b)
	key := r.Key()
	for _, line := range []string{
		"10.9.0.0/16 via 10.0.0.3 dev eth1 onlink", "blackhole 10.9.1.0/24", "10.9.2.0/24 via 10.0.0.2 dev eth0 onlink",
		"10.9.3.0/24 nexthop via 10.0.0.2 dev eth0 onlink nexthop via 10.0.0.3 dev eth1 onlink",
		"10.9.4.0/24 via 10.0.0.250 dev eth1 onlink", "10.8.0.0/24 dev eth1",
	} {
		b.ip(key, append([]string{"route", "add"}, strings.Fields(line)...)...)
	}
	b.ip(key, "neigh", "add", "10.8.0.5", "dev", "eth1", "lladdr", "02:00:00:00:08:05", "nud", "permanent")
	b.poll("all neighbours", func() bool {
		return b.macTo(r, "10.9.0.1") != "" && b.macTo(r, "10.8.0.5") != "" && b.macTo(r, "10.0.0.3") != "" && b.macTo(r, "10.9.2.1") != ""
	})
	mac, err := net.ParseMAC(b.macTo(r, "10.9.0.1"))
	b.check(err)
	w, index := b.referenceOf(r, hardware(mac), table4)
	want := b.compare(ipv4, r, index, w.packet, w.take)
	if len(want) != 7 {
		t.Errorf("the packets did only %v", slices.Sorted(maps.Keys(want)))
	}
}

// compare gives the program random packets as if they had come in by a device,
// and compares what it does, and counts, with what the reference model says.
func (b *bench) compare(of *family, r plan.VxRouter, index int, packet func(*rand.Rand) []byte, take func([]byte) (uint32, string, []byte)) map[string]uint64 {
	b.Helper()
	b.part.Close() // the table stays as it is
	f := b.reopen(r.Key())
	defer f.all.Close()
	ns, err := b.host.Open(r.Key())
	b.check(err)
	defer ns.Close()
	base, want := b.tally(f), make(map[string]uint64)
	random := rand.New(rand.NewPCG(3, 4))
	b.check(kernel.In(ns, func() error {
		i := slices.IndexFunc(f.copies[:], func(t *tableCopy) bool { return t.family == of })
		row := [2]fastpathCopy{f.state.Ip4, f.state.Ip6}[i]
		version, err := f.copies[i].number()
		if err != nil {
			return err
		}
		if version != row.Version || row.On == 0 {
			return fmt.Errorf("the %s table is of version %d (on %d), the kernel's %d", of.name, row.Version, row.On, version)
		}
		if err := f.join(i, index); err != nil {
			return err
		}
		for i := range trials(20_000) {
			frame := packet(random)
			verdict, counted, out := take(frame)
			got, sent, err := f.take(index, frame)
			if err != nil {
				return fmt.Errorf("packet %d (%x): %w", i, frame, err)
			}
			if got != verdict || out != nil && !bytes.Equal(sent, out) {
				return fmt.Errorf("packet %d, %x: verdict %d and %x, want %d (%s) and %x", i, frame, got, sent, verdict, counted, out)
			}
			if counted != "" {
				want[counted]++
			}
			if verdict == next && counted == "" {
				continue // no router's: links do not hand it over so
			}
			if err := f.enter(frame, out); err != nil {
				return fmt.Errorf("packet %d chained, %x: %w", i, frame, err)
			}
		}
		return nil
	}))
	have := b.tally(f)
	if entered := have["entered"] - base["entered"]; entered != want["sent"] {
		b.Errorf("%d packets were sent on when chained, want %d", entered, want["sent"])
	}
	have["sent"] -= have["entered"]
	for name, n := range want {
		counted := have[name] - base[name]
		if chatter := uint64(trials(20_000)/1000 + 5); counted < n || counted > n+chatter { // of the nodes, meanwhile
			b.Errorf("%s: counted %d, want %d", name, counted, n)
		}
	}
	return want
}

// portSlot is the slot of the port in tests.
const portSlot = 700

// join chains a port, and gives all next hops of a copy a slot to leave by.
func (f *follower) join(copy, index int) error {
	t := f.copies[copy]
	for prefix, next := range t.table {
		next.Slot = portSlot + 1
		if err := t.fib.Put(key(prefix), next); err != nil {
			return err
		}
	}
	return f.joined.Describe(index, portSlot, 0)
}

// enter gives a packet to the chained program, which sends it on as want,
// or nil: lets it come in as it is.
func (f *follower) enter(frame, want []byte) error {
	verdict, out, err := f.joined.Enter(portSlot, frame)
	if want == nil {
		want = frame
	}
	if err == nil && (verdict != redirected || !bytes.Equal(out, want)) {
		err = fmt.Errorf("verdict %d and %x, want %x", verdict, out, want)
	}
	return err
}

// reopen opens what is pinned of a router that nobody follows, believed for ever.
func (b *bench) reopen(key string) *follower {
	b.Helper()
	pins, err := bpf.OpenPins(b.host, pinsOf(key))
	b.check(err)
	f := &follower{key: key, host: b.host, pins: pins}
	b.check(f.load())
	f.state.Until = 1<<63 - 1
	b.check(f.states.Put(uint32(0), f.state))
	return f
}

func (b *bench) tally(f *follower) map[string]uint64 {
	b.Helper()
	p, err := f.path()
	b.check(err)
	all := maps.Clone(p.Fallbacks)
	all["sent"], all["entered"] = p.Packets, p.Chained
	return all
}
