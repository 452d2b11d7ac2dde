package bridge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// reference is the switch as slow and plain code.
type reference struct {
	ports    []plan.SwitchPort
	planned  map[plan.Hardware]int
	learned  map[plan.Hardware]int
	stations map[[4]byte]*said
	locals   map[[16]byte]*said6
}

type said struct {
	port    int
	now     plan.Hardware
	claimed bool
}

const (
	dropped    = 2
	redirected = 7
)

func newReference(b *bench) *reference {
	w := &reference{ports: b.ports, planned: make(map[plan.Hardware]int), learned: make(map[plan.Hardware]int), stations: make(map[[4]byte]*said), locals: make(map[[16]byte]*said6)}
	for i, s := range b.plan.Stations {
		w.planned[s.Hardware] = i
		w.stations[s.Address.As4()] = &said{port: i, now: s.Hardware}
		w.locals[vnet.LinkLocal(s.Hardware).As16()] = &said6{said: said{port: i, now: s.Hardware}}
	}
	return w
}

func (w *reference) sends(from, to int) bool {
	only := w.ports[from].To
	return len(only) == 0 || slices.Contains(only, device(to))
}

// take says what becomes of a frame: a verdict, and what is counted.
func (w *reference) take(in int, f []byte) (verdict uint32, counted string, answer []byte) {
	if w.ports[in].Blocked {
		return dropped, "blocked", nil
	}
	to, from := plan.Hardware(f[:6]), plan.Hardware(f[6:12])
	bridges := bytes.Equal(to[:5], []byte{1, 0x80, 0xc2, 0, 0}) && to[5] < 16
	if from[0]&1 == 1 || from == (plan.Hardware{}) || bridges {
		return dropped, "malformed", nil
	}
	if at, ok := w.planned[from]; ok && at != in {
		return dropped, "moved", nil
	}
	extra := w.learn(in, from)
	if binary.BigEndian.Uint16(f[12:]) == 0x0806 {
		if verdict, counted, answer = w.resolve(in, f); counted != "" {
			return verdict, counted + extra, answer
		}
	}
	if binary.BigEndian.Uint16(f[12:]) == 0x86dd {
		if verdict, counted, answer = w.resolve6(in, f); counted != "" {
			return verdict, counted + extra, answer
		}
	}
	if to[0]&1 == 1 {
		return dropped, "flood" + extra, nil
	}
	out, ok := w.planned[to]
	if !ok {
		out, ok = w.learned[to]
	}
	switch {
	case !ok:
		return dropped, "flood" + extra, nil
	case w.ports[out].Blocked:
		return dropped, "blocked" + extra, nil
	case out == in:
		return dropped, "same-port" + extra, nil
	case !w.sends(in, out):
		return dropped, "isolated" + extra, nil
	}
	return redirected, "sent" + extra, nil
}

func (w *reference) learn(in int, from plan.Hardware) string {
	if _, ok := w.planned[from]; ok {
		return ""
	}
	if at, ok := w.learned[from]; ok && at == in {
		return ""
	}
	here := 0
	for _, at := range w.learned {
		if at == in {
			here++
		}
	}
	if here >= w.ports[in].MACs {
		return " unlearned"
	}
	w.learned[from] = in
	return ""
}

func (w *reference) resolve(in int, f []byte) (verdict uint32, counted string, answer []byte) {
	if len(f) < 42 || !bytes.Equal(f[14:20], []byte{0, 1, 8, 0, 6, 4}) || !bytes.Equal(f[22:28], f[6:12]) {
		return 0, "", nil
	}
	sender, target := [4]byte(f[28:32]), [4]byte(f[38:42])
	if s := w.stations[sender]; s != nil {
		s.claimed = s.port != in
		if s.port == in {
			s.now = plan.Hardware(f[22:28])
		}
	}
	s := w.stations[target]
	if binary.BigEndian.Uint16(f[20:]) != 1 || f[0]&1 == 0 || s == nil || s.claimed || s.port == in || sender == target {
		return 0, "", nil
	}
	if !w.sends(in, s.port) || !w.sends(s.port, in) {
		return dropped, "isolated", nil
	}
	answer = slices.Concat(f[6:12], s.now[:], f[12:20], []byte{0, 2}, s.now[:], target[:], f[22:28], sender[:], f[42:])
	return redirected, "answer", answer
}

// frames makes random ones that often mean something.
type frames struct {
	*rand.Rand
	count int
}

func (r frames) mac() plan.Hardware {
	switch n := r.IntN(20); {
	case n < 9:
		return mac(r.IntN(r.count))
	case n < 16:
		return plan.Hardware{2, 0, 0, 0, 1, byte(r.IntN(8))}
	case n == 16:
		return plan.Hardware{1, 0x80, 0xc2, 0, 0, byte(r.IntN(32))}
	case n == 17:
		return plan.Hardware{}
	}
	return plan.Hardware{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
}

func (r frames) ip() []byte {
	a := station(r.IntN(r.count + 2)).As4()
	if r.IntN(10) == 0 {
		return make([]byte, 4)
	}
	return a[:]
}

func (r frames) frame() []byte {
	if r.IntN(3) == 0 {
		return r.nd()
	}
	to, from := r.mac(), r.mac()
	if r.IntN(2) == 0 {
		body := make([]byte, r.IntN(80))
		for i := range body {
			body[i] = byte(r.Uint32())
		}
		kind := []byte{0x88, 0xb5} // for experiments; the kernel's test refuses short IP packets
		if r.IntN(4) == 0 {
			kind = []byte{8, 6}
		}
		return slices.Concat(to[:], from[:], kind, body)
	}
	sha, tha := from, r.mac()
	if r.IntN(8) == 0 {
		sha = r.mac()
	}
	head := []byte{0, 1, 8, 0, 6, 4, 0, byte(1 + r.IntN(2))}
	if r.IntN(10) == 0 {
		head[r.IntN(8)] = byte(r.Uint32())
	}
	f := slices.Concat(to[:], from[:], []byte{8, 6}, head, sha[:], r.ip(), tha[:], r.ip(), make([]byte, r.IntN(20)))
	return f[:max(14, len(f)-r.IntN(2)*r.IntN(30))]
}

// trials is how many frames are tried: more with SUBLET_PACKETS.
func trials(few int) int {
	if n, err := strconv.Atoi(os.Getenv("SUBLET_PACKETS")); err == nil {
		return n
	}
	return few
}

// The program does with random and malformed frames what its reference model does.
func TestAgainstReference(t *testing.T) {
	b := newBench(t, 5)
	b.ports[1].To = []string{device(0), device(4)}
	b.ports[3].Blocked = true
	for _, p := range b.ports {
		b.do(plan.Set, p)
	}
	tables, w, r := b.tables(), newReference(b), frames{rand.New(rand.NewPCG(1, 2)), 5}
	ns, err := b.host.Open(b.plan.Key())
	b.check(err)
	defer ns.Close()
	index := make([]int, 5)
	c, err := kernel.DialIn(ns)
	b.check(err)
	defer c.Close()
	for i := range index {
		l, err := c.LinkByName(device(i))
		b.check(err)
		index[i] = l.Index
	}
	// The stations' own chatter would be counted too.
	for i := range 5 {
		b.run(b.node(i), "ip", "link", "set", "eth0", "down")
	}
	base := tally(b, tables)
	want := make(map[string]uint64)
	var entered uint64
	b.check(kernel.In(ns, func() error {
		for i := range index {
			if err := tables.join(i, index[i]); err != nil {
				return err
			}
		}
		for i := range trials(20_000) {
			in, frame := r.IntN(5), r.frame()
			verdict, counted, answer := w.take(in, frame)
			got, out, err := take(tables.program, index[in], frame)
			if err != nil {
				return fmt.Errorf("frame %d (%x): %w", i, frame, err)
			}
			if got != verdict || answer != nil && !bytes.Equal(out, answer) {
				return fmt.Errorf("frame %d at port %d, %x: verdict %d and %x, want %d (%s) and %x", i, in, frame, got, out, verdict, counted, answer)
			}
			for _, word := range bytes.Fields([]byte(counted)) {
				want[string(word)]++
			}
			took, err := tables.enter(in, frame)
			if err != nil {
				return fmt.Errorf("frame %d (%x) chained by port %d: %w", i, frame, in, err)
			}
			if took && counted != "sent" {
				return fmt.Errorf("frame %d (%x) chained by port %d was sent on, at the port: %s", i, frame, in, counted)
			}
			if took {
				entered++
				want["sent"]++
			}
		}
		return nil
	}))
	if entered < want["sent"]/40 { // stations move all the time
		t.Errorf("of %d frames sent on %d were chained", want["sent"], entered)
	}
	got := tally(b, tables)
	for name, n := range want {
		if got[name]-base[name] != n {
			t.Errorf("%s: counted %d, want %d", name, got[name]-base[name], n)
		}
	}
	if len(want) < 7 {
		t.Errorf("the frames did only %v", slices.Sorted(maps.Keys(want)))
	}
	have, err := tables.entries()
	b.check(err)
	for key, e := range have {
		if at, ok := w.learned[hardwareOf(key)]; e.Planned == 0 && (!ok || at != int(e.Port)) {
			t.Errorf("%s is learned at port %d, want %d (%v)", hardwareOf(key), e.Port, at, ok)
		}
	}
}

// slotOf is a port's slot in tests.
func slotOf(port int) uint32 { return uint32(700 + port) }

// join gives a port a slot and a reference, as if it were a link's.
func (t *tables) join(port, index int) error {
	var row vswitchPort
	if err := t.Ports.Lookup(uint32(port), &row); err != nil {
		return err
	}
	row.Slot = slotOf(port)
	if err := t.Ports.Put(uint32(port), row); err != nil {
		return err
	}
	return t.joined.Describe(index, row.Slot, uint32(port))
}

// enter gives a frame to the chained program by a port, and says whether it
// decided on it; it changes none.
func (t *tables) enter(port int, frame []byte) (bool, error) {
	before, err := t.chained(port)
	if err != nil {
		return false, err
	}
	verdict, out, err := t.joined.Enter(slotOf(port), frame)
	if err != nil {
		return false, err
	}
	if verdict != redirected || !bytes.Equal(out, frame) {
		return false, fmt.Errorf("verdict %d, frame %x", verdict, out)
	}
	after, err := t.chained(port)
	return after > before, err
}

func (t *tables) chained(port int) (sum uint64, err error) {
	var perCPU []vswitchCount
	err = t.Counters.Lookup(uint32(port), &perCPU)
	for _, c := range perCPU {
		sum += c.Chained
	}
	return sum, err
}

// tally sums what all ports counted, in the reference model's words.
func tally(b *bench, t *tables) map[string]uint64 {
	sum := make(map[string]uint64)
	for n := range maxPorts {
		var perCPU []vswitchCount
		b.check(t.Counters.Lookup(uint32(n), &perCPU))
		for _, c := range perCPU {
			sum["flood"] += c.Floods
			sum["sent"] += c.Packets - c.Floods
			sum["answer"] += c.Answers
			sum["unlearned"] += c.Unlearned
			for i, d := range c.Drops {
				sum[causes()[i]] += d
			}
		}
	}
	return sum
}
