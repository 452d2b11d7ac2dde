package nsh

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// instance is a function on one of the hosts h1 and h2.
type instance struct {
	number byte // 1 to 4
	host   int
}

func (i instance) name() string { return fmt.Sprint("f", i.number) }

// order is what packets of a path pass.
type order []instance

// chained is a tenant of both hosts: an end a on h1, an end b on h2, and on each host
// four functions, which write their stamps into the datagrams that pass them. All
// tenants have the same addresses and the same flows.
type chained struct {
	g      *testGround
	fabric string
	number byte
	send   int // socket of packets in a
	get    int // and in b

	devices int

	mu      sync.Mutex
	orders  []order // by generation; the path of one is its number in the list and the tenant's
	done    int     // classifiers lead packets to no generation before this
	started int     // nor to one after this
	sent    int
	arrived int
	seen    map[uint64]bool // packets that arrived, by number
	all     uint64          // and all below this one did
	wrong   []error
}

// Offsets of a frame: the stamps begin with how many they are.
const (
	stampsAt   = 42
	stampsMost = 14
	writtenAt  = stampsAt + 1 + stampsMost // tenant, number of the packet, generation
	frameSize  = writtenAt + 1 + 8 + 4
)

// stamp is what a tenant's function writes.
func (c *chained) stamp(i instance) byte { return c.number<<4 | byte(i.host)<<3 | i.number }

func newChained(g *testGround, number byte) *chained {
	c := &chained{g: g, number: number, fabric: fmt.Sprintf("t%d-order", number), seen: make(map[uint64]bool)}
	a, b := g.namespace("a-"+c.fabric), g.namespace("b-"+c.fabric)
	for h, host := range c.hosts() {
		check(g.t, host.MakeSilent(c.fabric))
		g.t.Cleanup(func() {
			check(g.t, host.part.Delete(c.fabric))
			kernel.Unbind(host.Path(c.fabric))
		})
		c.functions(h, host)
	}
	for _, ns := range []string{a, b} {
		g.in(ns, "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
	}
	c.wire(g.h1, a, "a0", "eth0")
	c.wire(g.h2, b, "b0", "eth0")
	c.send, c.get = g.packets(a, "eth0"), g.packets(b, "eth0")
	return c
}

func (c *chained) hosts() []testHost { return []testHost{c.g.h1, c.g.h2} }

// wire leads from the fabric to a node, by devices whose numbers no other fabric of the
// host has, as those of leases are. They come in pairs: in the fabric, in the node.
func (c *chained) wire(host testHost, ns string, devices ...string) {
	c.g.t.Helper()
	var outside, inside []string
	for pair := range slices.Chunk(devices, 2) {
		c.devices++
		outside = append(outside, fmt.Sprintf("ip link add dev %s index %d up type veth peer name %s netns %s", pair[0], int(c.number)*1000+c.devices, pair[1], ns))
		inside = append(inside, "ip link set "+pair[1]+" up")
	}
	c.g.in(host.Path(c.fabric), outside...)
	c.g.in(ns, inside...)
}

// functions makes those of a host: stamps between two interfaces each.
func (c *chained) functions(h int, host testHost) {
	ns := c.g.namespace(fmt.Sprint("f-", c.fabric, h))
	c.g.in(ns, "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
	c.wire(host, ns, "fi1", "i1", "fo1", "o1", "fi2", "i2", "fo2", "o2", "fi3", "i3", "fo3", "o3", "fi4", "i4", "fo4", "o4")
	for n := byte(1); n <= 4; n++ {
		file, err := kernel.OpenNamespace(ns)
		check(c.g.t, err)
		check(c.g.t, kernel.In(file, func() error {
			return c.g.stamps(fmt.Sprint("i", n), fmt.Sprint("o", n), c.stamp(instance{n, h}))
		}))
		file.Close()
	}
}

// stamps attaches a program that adds a stamp to what comes by one device and sends it
// out by another.
func (g *testGround) stamps(from, to string, stamp byte) error {
	in, err := net.InterfaceByName(from)
	if err != nil {
		return err
	}
	out, err := net.InterfaceByName(to)
	if err != nil {
		return err
	}
	at := func(register asm.Register, offset int32) asm.Instructions { // a place of the stack
		return asm.Instructions{asm.Mov.Reg(register, asm.RFP), asm.Add.Imm(register, offset)}
	}
	call := func(f asm.BuiltinFunc, where asm.Instructions, value int32, more ...asm.Instruction) asm.Instructions {
		code := append(asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6)}, where...)
		code = append(append(code, at(asm.R3, value)...), asm.Mov.Imm(asm.R4, 1))
		return append(append(code, more...), f.Call())
	}
	count := asm.Instructions{asm.Mov.Imm(asm.R2, stampsAt)}
	next := asm.Instructions{asm.Mov.Reg(asm.R2, asm.R7), asm.Add.Imm(asm.R2, stampsAt+1)}
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	code = append(code, call(asm.FnSkbLoadBytes, count, -8)...)
	code = append(code, asm.JNE.Imm(asm.R0, 0, "drop"), asm.LoadMem(asm.R7, asm.RFP, -8, asm.Byte),
		asm.JGE.Imm(asm.R7, stampsMost, "drop"), asm.StoreImm(asm.RFP, -16, int64(stamp), asm.Byte))
	code = append(code, call(asm.FnSkbStoreBytes, next, -16, asm.Mov.Imm(asm.R5, 0))...)
	code = append(code, asm.JNE.Imm(asm.R0, 0, "drop"), asm.Add.Imm(asm.R7, 1), asm.StoreMem(asm.RFP, -8, asm.R7, asm.Byte))
	code = append(code, call(asm.FnSkbStoreBytes, count, -8, asm.Mov.Imm(asm.R5, 0))...)
	code = append(code, asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(asm.R1, int32(out.Index)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return(),
		asm.Mov.Imm(asm.R0, 2 /* TC_ACT_SHOT */).WithSymbol("drop"), asm.Return())
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: code})
	if err != nil {
		return err
	}
	g.t.Cleanup(func() { program.Close() })
	l, err := link.AttachTCX(link.TCXOptions{Interface: in.Index, Program: program, Attach: ebpf.AttachTCXIngress})
	if err == nil {
		g.t.Cleanup(func() { l.Close() })
	}
	return err
}

// packets opens a socket of all IPv4 frames of a namespace's device.
func (g *testGround) packets(ns, name string) (socket int) {
	g.t.Helper()
	file, err := kernel.OpenNamespace(ns)
	check(g.t, err)
	defer file.Close()
	const ipv4 = unix.ETH_P_IP>>8 | unix.ETH_P_IP&0xff<<8
	check(g.t, kernel.In(file, func() error {
		device, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		if socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, ipv4); err != nil {
			return err
		}
		return errors.Join(unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: ipv4, Ifindex: device.Index}),
			unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<24),
			unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}))
	}))
	g.t.Cleanup(func() { unix.Close(socket) })
	return socket
}

// path of a generation: no other tenant's.
func (c *chained) path(generation int) uint32 { return uint32(c.number)<<16 | uint32(generation+1) }

// plane of a host that has the hops of some generations, and leads packets to the one
// named first.
func (c *chained) plane(h int, generations ...int) Plane {
	p := Plane{Fabric: c.fabric, Interface: "up0", Local: netip.MustParseAddr([]string{"10.9.0.1", "10.9.0.2"}[h]),
		Remotes: []Remote{{Name: "other", Address: netip.MustParseAddr([]string{"10.9.0.2", "10.9.0.1"}[h])}}}
	if h == 0 {
		p.Classifiers = []Classifier{{Port: "a0", Rules: []Rule{{Path: c.path(generations[0]), Index: 255}}}}
	}
	used := make(map[byte]bool)
	for _, generation := range generations {
		before := 0 // the host that packets come from
		for i, f := range append(slices.Clone(c.orders[generation]), instance{host: 1}) {
			hop := Hop{Path: c.path(generation), Index: uint8(255 - i)}
			switch {
			case f.host != h && before == h:
				hop.Remote = "other"
			case f.host != h:
			case f.number == 0:
				hop.Egress = &Egress{Port: "b0"}
			default:
				hop.Function = f.name()
				if !used[f.number] {
					p.Functions = append(p.Functions, Function{Name: f.name(), Kind: Node, In: fmt.Sprint("fi", f.number), Out: fmt.Sprint("fo", f.number)})
				}
				used[f.number] = true
			}
			if before = f.host; hop.Function != "" || hop.Remote != "" || hop.Egress != nil {
				p.Hops = append(p.Hops, hop)
			}
		}
	}
	return p
}

// change puts another order beside the present one, leads packets to it, and takes the
// former away when nothing is on its way through it any more.
func (c *chained) change(next order) error {
	c.mu.Lock()
	c.orders = append(c.orders, next)
	is := len(c.orders) - 1
	c.mu.Unlock()
	h1, h2 := c.hosts()[0].part, c.hosts()[1].part
	if is == 0 {
		return errors.Join(h2.Set(c.plane(1, is)), h1.Set(c.plane(0, is)))
	}
	if err := errors.Join(h2.Set(c.plane(1, is-1, is)), h1.Set(c.plane(0, is-1, is))); err != nil {
		return err
	}
	c.note(func() { c.started = is })
	if err := h1.Set(c.plane(0, is, is-1)); err != nil {
		return err
	}
	c.note(func() { c.done = is })
	if !c.drained() {
		return errors.New("packets on the former path do not arrive")
	}
	return errors.Join(h1.Set(c.plane(0, is)), h2.Set(c.plane(1, is)))
}

func (c *chained) note(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// drained waits until nothing is on its way that was sent before.
func (c *chained) drained() bool {
	var until uint64
	c.note(func() { until = uint64(c.sent) + 1 }) // one may be just being sent
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		enough := false
		if c.note(func() { enough = c.all >= until }); enough {
			return true
		}
	}
	return false
}

// window is how many packets are on their way at most: no queue is full with so many.
const window = 64

// offer sends packets of a number of flows by turns until it is told to stop, each flow
// twice at least.
func (c *chained) offer(flows int, stop <-chan struct{}) error {
	f := append([]byte{2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a, 8, 0, 0x45, 0, 0, frameSize - 14, 0, 0, 0, 0, 64, 17}, make([]byte, frameSize-24)...)
	copy(f[30:], []byte{192, 168, 7, 2})
	binary.BigEndian.PutUint16(f[38:], frameSize-34)
	f[writtenAt] = c.number
	for sent := 0; ; sent++ {
		c.note(func() { c.sent = sent })
		select {
		case <-stop:
			if sent >= 2*flows {
				return nil
			}
		default:
		}
		flow := sent % flows
		copy(f[26:], []byte{10, byte(flow >> 16), byte(flow >> 8), 1})
		binary.BigEndian.PutUint16(f[34:], 1024+uint16(flow&0xff))
		binary.BigEndian.PutUint16(f[36:], 5000)
		f[24], f[25] = 0, 0
		s := ^sum(f[14:34])
		binary.NativeEndian.PutUint16(f[24:], s)
		binary.BigEndian.PutUint64(f[writtenAt+1:], uint64(sent))
		c.note(func() { binary.BigEndian.PutUint32(f[writtenAt+9:], uint32(c.done)) })
		if !c.room(sent) {
			return fmt.Errorf("tenant %d: of %d packets some do not arrive", c.number, sent)
		}
		if _, err := unix.Write(c.send, f); err != nil {
			return err
		}
	}
}

// room waits until few enough packets are on their way.
func (c *chained) room(sent int) bool {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Microsecond) {
		there := false
		c.note(func() { there = sent < c.arrived+window })
		if there || time.Now().After(end) {
			return there
		}
	}
}

// receive judges what arrives until it is told to stop.
func (c *chained) receive(stop <-chan struct{}) {
	b := make([]byte, 2048)
	for {
		select {
		case <-stop:
			return
		default:
		}
		n, err := unix.Read(c.get, b)
		if err == nil {
			c.note(func() {
				c.arrived++
				if err := c.judge(b[:n]); err != nil && len(c.wrong) < 5 {
					c.wrong = append(c.wrong, err)
				}
			})
		}
	}
}

// judge says what is wrong with a frame that arrived.
func (c *chained) judge(f []byte) error {
	if len(f) != frameSize || int(f[stampsAt]) > stampsMost {
		return fmt.Errorf("tenant %d: a frame that nobody sent: % x", c.number, f)
	}
	stamps, number := f[stampsAt+1:][:f[stampsAt]], binary.BigEndian.Uint64(f[writtenAt+1:])
	switch {
	case f[writtenAt] != c.number:
		return fmt.Errorf("tenant %d got a packet of tenant %d", c.number, f[writtenAt])
	case c.seen[number]:
		return fmt.Errorf("tenant %d: packet %d arrived twice", c.number, number)
	}
	c.seen[number] = true
	for c.seen[c.all] {
		c.all++
	}
	first := int(binary.BigEndian.Uint32(f[writtenAt+9:]))
	for generation := first; generation <= c.started; generation++ {
		if bytes.Equal(stamps, c.stampsOf(c.orders[generation])) {
			return nil
		}
	}
	return fmt.Errorf("tenant %d: packet %d has the stamps % x, not one of those of %v", c.number, number, stamps, c.orders[first:c.started+1])
}

func (c *chained) stampsOf(o order) (stamps []byte) {
	for _, i := range o {
		stamps = append(stamps, c.stamp(i))
	}
	return stamps
}

// anyOrder is three functions in any order on any hosts, and half of the time a fourth
// among them.
func anyOrder(random *rand.Rand) (o order) {
	for _, n := range random.Perm(3) {
		o = append(o, instance{byte(n + 1), random.IntN(2)})
	}
	if random.IntN(2) == 0 {
		o = slices.Insert(o, random.IntN(4), instance{4, random.IntN(2)})
	}
	return o
}

// Functions in any order on two hosts, inserted, taken out and moved while packets of
// many flows go on: each packet passes those of its tenant, in the order of then, once,
// and none is lost or gets to the other tenant, who has the same addresses and ports.
func TestOrderAndIsolation(t *testing.T)     { orderAndIsolation(t, 1_000, 3) }
func TestSoakOrderAndIsolation(t *testing.T) { orderAndIsolation(t, 100_000, 60) }

func orderAndIsolation(t *testing.T, flows, changes int) {
	g := newGround(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	tenants := []*chained{newChained(g, 1), newChained(g, 2)}
	for _, c := range tenants {
		check(t, c.change(anyOrder(rand.New(rand.NewPCG(seed, uint64(c.number))))))
	}
	var all sync.WaitGroup
	for _, c := range tenants {
		all.Go(func() { c.run(flows, changes, seed) })
	}
	all.Wait()
	for _, c := range tenants {
		c.verdict()
	}
}

// run changes a tenant's chain while packets go.
func (c *chained) run(flows, changes int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, uint64(c.number)+100))
	changed, end := make(chan struct{}), make(chan struct{})
	var receiving, changing sync.WaitGroup
	receiving.Go(func() { c.receive(end) })
	changing.Go(func() {
		defer close(changed)
		for range changes {
			if err := c.change(anyOrder(random)); err != nil {
				c.note(func() { c.wrong = append(c.wrong, err) })
				return
			}
		}
	})
	err := c.offer(flows, changed)
	for stop := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(stop); time.Sleep(time.Millisecond) {
		arrived := 0
		if c.note(func() { arrived = c.arrived }); arrived >= c.sent {
			break
		}
	}
	changing.Wait()
	close(end)
	receiving.Wait()
	if err == nil && c.arrived != c.sent {
		err = fmt.Errorf("tenant %d: %d packets were sent, %d arrived", c.number, c.sent, c.arrived)
	}
	if err != nil {
		c.wrong = append(c.wrong, err)
	}
	c.g.t.Logf("tenant %d: %d packets of %d flows, %d orders", c.number, c.sent, flows, len(c.orders))
}

// verdict tells what was wrong, and that the judge sees what would be.
func (c *chained) verdict() {
	t := c.g.t
	for _, err := range c.wrong {
		t.Error(err)
	}
	for _, h := range c.hosts() {
		report, err := h.part.Report(c.fabric)
		check(t, err)
		dropped := report.Drops
		for _, hop := range report.Hops {
			for cause, n := range hop.Drops {
				dropped[cause] += n
			}
		}
		if len(dropped) > 0 {
			t.Errorf("tenant %d: %s dropped %v", c.number, h.Config.Host, dropped)
		}
	}
	stamps := c.stampsOf(c.orders[c.started])
	twice, swapped := append(slices.Clone(stamps), stamps[0]), slices.Clone(stamps)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	for what, false := range map[string][]byte{"one too few": stamps[1:], "one twice": twice, "another order": swapped, "another's": {3<<4 | stamps[0]&15}} {
		f := make([]byte, frameSize)
		f[stampsAt], f[writtenAt] = byte(copy(f[stampsAt+1:], false)), c.number
		binary.BigEndian.PutUint64(f[writtenAt+1:], 1<<62+uint64(len(c.seen)))
		binary.BigEndian.PutUint32(f[writtenAt+9:], uint32(c.started))
		if c.judge(f) == nil {
			t.Errorf("stamps with %s are judged right", what)
		}
	}
}
