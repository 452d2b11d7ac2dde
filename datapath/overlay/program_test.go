package overlay

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// runs is how many random packets go through each program.
var runs = flag.Int("packets", 20_000, "random packets through each program")

// bank is a site whose tables are in the kernel, with the counters it must show.
type bank struct {
	site
	t     *testing.T
	table *table
	slots map[uint32]uint32
	drops map[uint32]map[overlayDrop]uint64 // by slot and cause
	moved [2]map[uint32]uint64              // sent, received: by slot
}

const bankIndex = 1 // the loopback, on which programs run in tests

func newBank(t *testing.T) *bank {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to load programs")
	}
	h, err := kernel.NewHost(kernel.Config{Host: "h", Run: t.TempDir()})
	check1(t, err)
	made, _, err := openTable(h)
	check1(t, err)
	t.Cleanup(func() { check1(t, made.remove()); h.Close() })
	b := &bank{t: t, table: made, slots: make(map[uint32]uint32), drops: make(map[uint32]map[overlayDrop]uint64)}
	b.moved = [2]map[uint32]uint64{make(map[uint32]uint64), make(map[uint32]uint64)}
	b.site = site{items: make(map[uint32]plan.Overlay), index: bankIndex,
		nextHop: nextHop{device: bankIndex, from: [6]byte{2, 1, 1, 1, 1, 1}, to: [6]byte{2, 2, 2, 2, 2, 2}, mtu: 1500}}
	return b
}

// add writes an item's entry and end, as Part does.
func (b *bank) add(item plan.Overlay) {
	b.t.Helper()
	id := uint32(item.VNI)
	p, err := protocolOf(item.Protocol)
	check1(b.t, err)
	slot, err := b.table.slot()
	check1(b.t, err)
	w := b.nextHop
	if item.Interface == "nowhere" {
		w = nextHop{}
	}
	part := Part{nextHops: map[path]nextHop{pathOf(item): w}}
	e, err := part.build(item, slot)
	check1(b.t, err)
	check1(b.t, b.table.objects.Entries.Put(id, e))
	if item.Interface != "nowhere" {
		key, end, err := endOf(p, item, bankIndex, bankIndex+1, slot)
		check1(b.t, err)
		check1(b.t, b.table.objects.Ends.Put(key, end))
	}
	check1(b.t, b.table.objects.Locals.Put(address(item.Local), uint32(1)))
	b.items[id], b.slots[id] = item, slot
}

// everything adds two entries of every protocol whose headers the programs write, by IPv4
// and by IPv6, and ones that send nothing.
func (b *bank) everything() {
	for i, p := range protocols {
		if p.stack {
			continue
		}
		for v, under := range []func(int) netip.Addr{under4, under6} {
			o := item(0, p.name, under)
			o.VNI, o.MTU, o.BestEffort = vni(number+2*i+v), 1400, v == 1
			b.add(o)
		}
	}
	o := item(0, "", under4)
	o.VNI, o.Interface = number+100, "nowhere"
	b.add(o)
}

// context is struct __sk_buff as BPF_PROG_TEST_RUN takes it.
type context64 struct {
	Len, PktType, Mark, QueueMapping, Protocol, VlanPresent, VlanTci, VlanProto, Priority, IngressIfindex, Ifindex, TcIndex uint32
	Rest                                                                                                                    [36]uint32
}

// gsoSizeAt is where Rest has gso_size.
const gsoSizeAt = 32

// run puts a packet through a program.
func (b *bank) run(p *ebpf.Program, frame []byte, mark uint32) (uint32, []byte, uint32) {
	b.t.Helper()
	in, out := context64{Mark: mark}, context64{}
	o := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: &in, ContextOut: &out}
	code, err := p.Run(&o)
	if err != nil {
		b.t.Fatalf("run: %v on %x", err, frame)
	}
	return code, o.DataOut, out.Mark
}

// runnable says whether the kernel runs a program on a frame in a test: it
// refuses those too short for what their type says.
func runnable(frame []byte) bool {
	if len(frame) < 15 {
		return false
	}
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
		return len(frame) >= 34
	case 0x86dd:
		return len(frame) >= 54
	}
	return true
}

// compare checks a program's verdict against the reference model's, and notes what the
// counters must say.
func (b *bank) compare(what string, frame []byte, want verdict, code uint32, out []byte, mark uint32) {
	b.t.Helper()
	if code != want.code {
		b.t.Fatalf("%s: verdict %d, the reference model says %d (cause %d)\n%x\n%s", what, int32(code), int32(want.code), want.cause, frame, b.counts())
	}
	if code == tcxDrop || want.told {
		slot := b.slots[want.whose]
		if b.drops[slot] == nil {
			b.drops[slot] = make(map[overlayDrop]uint64)
		}
		b.drops[slot][want.cause]++
	}
	if code == tcxRedirect {
		if !bytes.Equal(out, want.frame) {
			b.t.Fatalf("%s of\n%x\nmakes\n%x\nthe reference makes\n%x", what, frame, out, want.frame)
		}
		if mark != want.mark {
			b.t.Fatalf("%s: mark %#x, the reference model says %#x", what, mark, want.mark)
		}
	}
}

func (b *bank) counts() (text string) {
	for id, slot := range b.slots {
		c, _ := b.table.counts(slot)
		text += fmt.Sprintf("%d: %+v\n", id, c)
	}
	c, _ := b.table.counts(0)
	return text + fmt.Sprintf("0: %+v", c)
}

// settle compares all counters.
func (b *bank) settle() {
	b.t.Helper()
	for slot := range uint32(len(b.slots) + 1) {
		c, err := b.table.counts(slot)
		check1(b.t, err)
		for cause, n := range c.Drops {
			if n != b.drops[slot][overlayDrop(cause)] {
				b.t.Errorf("slot %d: %d dropped as %s, the reference model counts %d", slot, n, causes()[cause], b.drops[slot][overlayDrop(cause)])
			}
		}
		if c.Sent != b.moved[0][slot] || c.Received != b.moved[1][slot] {
			b.t.Errorf("slot %d: sent %d and received %d, the reference model counts %d and %d", slot, c.Sent, c.Received, b.moved[0][slot], b.moved[1][slot])
		}
	}
}

func (b *bank) send(id uint32, frame []byte) verdict {
	b.t.Helper()
	want := b.slowSend(id, frame)
	code, out, mark := b.run(b.table.objects.OverlayTx, frame, id)
	b.compare(fmt.Sprintf("sending %d", id), frame, want, code, out, mark)
	if want.code == tcxRedirect && !want.told {
		b.moved[0][b.slots[id]]++
	}
	return want
}

func (b *bank) receive(frame []byte) verdict {
	b.t.Helper()
	want := b.slowReceive(bankIndex, frame)
	code, out, mark := b.run(b.table.objects.OverlayRx, frame, 0)
	b.compare("receiving", frame, want, code, out, mark)
	if want.code == tcxRedirect {
		b.moved[1][b.slots[want.mark&^(1<<31)]]++
	}
	return want
}

// open runs overlay_decapped, as if the kernel had taken a packet's headers off.
func (b *bank) open(frame []byte, mark uint32) verdict {
	b.t.Helper()
	want := b.slowDecapped(frame, mark)
	code, out, marked := b.run(b.table.objects.OverlayDecapped, frame, mark)
	b.compare(fmt.Sprintf("opened as %#x", mark), frame, want, code, out, marked)
	if want.code == tcxRedirect {
		b.moved[1][b.slots[want.mark&^(1<<31)]]++
	}
	return want
}

// The programs do what the slow reference does, on whatever comes, and count it.
func TestProgramsMatchTheReference(t *testing.T) {
	b := newBank(t)
	b.everything()
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]uint32, 0, len(b.items)+1)
	for id := range b.items {
		ids = append(ids, id)
	}
	ids = append(ids, 5) // no entry
	passed := map[string]int{}
	for range *runs {
		id, frame := ids[r.IntN(len(ids))], randomFrame(r)
		if !runnable(frame) {
			continue
		}
		sent := b.send(id, frame)
		passed[fmt.Sprint("send ", int32(sent.code), " ", sent.cause)]++
		if sent.frame != nil {
			frame = sent.frame
		}
		turn(frame)
		if frame = damage(r, frame); !runnable(frame) {
			continue
		}
		received := b.receive(frame)
		passed[fmt.Sprint("receive ", int32(received.code), " ", received.cause)]++
		opened := b.open(frame, id|r.Uint32()&(1<<30))
		passed[fmt.Sprint("opened ", int32(opened.code), " ", opened.cause)]++
	}
	b.settle()
	t.Log(passed)
}

// Large packets of datagrams go to the decap device, and only from the tunnel's other
// end; without one they are refused. TCP does not.
func TestLargeDatagramsGoToTheDecapDevice(t *testing.T) {
	b := newBank(t)
	b.add(item(0, "", under4))
	arrive := func(next byte, from int) (code uint32, port uint16, mark uint32) {
		inner := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 11, 184, 0, 0, 0x40, 0, 64, next, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}, make([]byte, 2980)...)
		frame := b.slowSend(number, inner[:500]).frame
		frame = append(frame, inner[500:]...)
		binary.BigEndian.PutUint16(frame[16:], uint16(len(frame)-14))
		binary.BigEndian.PutUint16(frame[38:], uint16(len(frame)-34))
		turn(frame)
		frame[29] = byte(from)
		resum(frame)
		in, out := context64{}, context64{}
		in.Rest[gsoSizeAt] = 1000
		o := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: &in, ContextOut: &out}
		code, err := b.table.objects.OverlayRx.Run(&o)
		check1(t, err)
		return code, binary.BigEndian.Uint16(o.DataOut[36:]), out.Mark
	}
	if code, _, _ := arrive(17, 2); code != tcxDrop {
		t.Errorf("without a decap device: verdict %d", code)
	}
	check1(t, b.table.objects.DecapPort.Put(uint32(0), uint32(portInMemory())))
	if code, port, mark := arrive(17, 2); code != tcxNext || port != bpf.PortDecap || mark != 1<<30|number {
		t.Errorf("verdict %d to port %d with mark %#x", int32(code), port, mark)
	}
	if code, _, mark := arrive(17, 3); code != tcxDrop || mark != 0 {
		t.Errorf("of a stranger: verdict %d with mark %#x", int32(code), mark)
	}
	if code, port, mark := arrive(6, 2); code == tcxNext || port == bpf.PortDecap || mark&(1<<30) != 0 {
		t.Errorf("TCP: verdict %d to port %d with mark %#x", int32(code), port, mark)
	}
}

// turn makes a packet that left come back: ends change places.
func turn(frame []byte) {
	swap := func(a, b, n int) {
		for i := range n {
			if b+i < len(frame) {
				frame[a+i], frame[b+i] = frame[b+i], frame[a+i]
			}
		}
	}
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
		swap(26, 30, 4)
	case 0x86dd:
		swap(22, 38, 16)
	}
}

// The decap device takes only what overlay_rx marked for it: no probe of a path,
// whatever tunnel its other bits name.
func TestProbesAreNotTakenForDecapped(t *testing.T) {
	b := newBank(t)
	b.add(item(0, "", under4))
	var end overlayTunnelEnd
	check1(t, b.table.objects.Ends.Lookup(uint64(1)<<32|number, &end))
	for _, other := range []uint32{bpf.MarkProbe & bpf.MarkVNI, bpf.MarkProbe &^ bpf.MarkDecap} {
		check1(t, b.table.objects.Ends.Put(uint64(1)<<32|uint64(other), end))
	}
	frame := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46}, make([]byte, 42)...)
	for mark, want := range map[uint32]uint32{
		bpf.MarkDecap | number: tcxRedirect, bpf.MarkProbe: tcxDrop, bpf.MarkInbound | number: tcxDrop, number: tcxDrop,
	} {
		if code, _, _ := b.run(b.table.objects.OverlayDecapped, frame, mark); code != want {
			t.Errorf("with mark %#x: verdict %d, want %d", mark, code, want)
		}
	}
}

// The time of arrival is written into probes of latency to an address of a tunnel here,
// and into nothing else.
func TestArrivalIsWrittenIntoProbes(t *testing.T) {
	b := newBank(t)
	b.add(item(0, "", under4))
	local := under4(0).As4()
	frame := func(change func(frame, payload []byte)) []byte {
		f := make([]byte, 42+56)
		copy(f, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 84, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 99})
		copy(f[30:], local[:])
		binary.BigEndian.PutUint16(f[34:], bpf.PortLatency)
		binary.BigEndian.PutUint16(f[36:], bpf.PortLatency)
		binary.BigEndian.PutUint16(f[38:], 64)
		binary.NativeEndian.PutUint32(f[42:], bpf.LatencyMagic)
		change(f, f[42:])
		resum(f)
		return f
	}
	for _, c := range []struct {
		what    string
		written bool
		change  func(frame, payload []byte)
	}{
		{"a probe", true, func(_, _ []byte) {}},
		{"to another address", false, func(f, _ []byte) { f[33]++ }},
		{"with a checksum", false, func(f, _ []byte) { f[41] = 1 }},
		{"to another port", false, func(f, _ []byte) { f[37]++ }},
		{"of something else", false, func(_, p []byte) { p[0]++ }},
	} {
		in := frame(c.change)
		code, out, mark := b.run(b.table.objects.OverlayRx, bytes.Clone(in), 0)
		at := 42 + bpf.LatencyArrived
		if code != tcxNext || mark != 0 || len(out) != len(in) {
			t.Errorf("%s: verdict %d with mark %#x and %d bytes", c.what, int32(code), mark, len(out))
			continue
		}
		if written := binary.NativeEndian.Uint64(out[at:]) > 0; written != c.written {
			t.Errorf("%s: written is %t", c.what, written)
		}
		copy(out[at:at+8], in[at:])
		if !bytes.Equal(out, in) {
			t.Errorf("%s: more than the time of arrival was changed", c.what)
		}
	}
}
