package iplb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sublet/plan"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

const next, drop = -1, 2 // TCX verdicts

var (
	host   = netip.MustParseAddr("10.0.0.1")
	target = netip.MustParseAddr("10.9.0.7")
	prefix = netip.MustParsePrefix("10.9.0.0/16")
	relay1 = netip.MustParseAddr("10.255.0.1")
	relay2 = netip.MustParseAddr("10.255.0.2")
	relay3 = netip.MustParseAddr("10.255.0.3")
)

// table is one that nothing is pinned of.
func table(t testing.TB) *Table {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loading programs needs root")
	}
	spec, err := loadIplb()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(c.Close)
	tab, err := open(c, host)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// packet is a UDP datagram of a flow, in Ethernet.
func packet(port uint16, payload int) []byte {
	b := make([]byte, 14+20+8+payload)
	b[0], b[6] = 2, 2
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	header(b[14:], 17, host, target, 28+payload)
	binary.BigEndian.PutUint16(b[34:], port)
	binary.BigEndian.PutUint16(b[36:], 9)
	binary.BigEndian.PutUint16(b[38:], uint16(8+payload))
	return b
}

// header writes a sound IPv4 header.
func header(b []byte, protocol byte, from, to netip.Addr, length int) {
	clear(b[:20])
	b[0], b[8], b[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(length))
	copy(b[12:], from.AsSlice())
	copy(b[16:], to.AsSlice())
	binary.BigEndian.PutUint16(b[10:], ^sum(b[:20]))
}

func sum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// wrapped puts headers in front of a packet, outermost first.
func wrapped(inner []byte, relays ...netip.Addr) []byte {
	b := append(slices.Clone(inner[:14]), make([]byte, 20*len(relays))...)
	b = append(b, inner[14:]...)
	for i, r := range relays {
		at := 14 + 20*i
		header(b[at:], 4, host, r, len(b)-at)
	}
	return b
}

func run(t testing.TB, p *ebpf.Program, in []byte) (int, []byte) {
	t.Helper()
	verdict, out, err := p.Test(in)
	if err != nil {
		t.Fatal(err)
	}
	return int(int32(verdict)), out
}

func set(t testing.TB, tab *Table, r plan.Spread) {
	t.Helper()
	if r.Prefix == (netip.Prefix{}) {
		r.Prefix = prefix
	}
	r.Mode = cmp.Or(r.Mode, plan.HashMode)
	if err := tab.Set(r); err != nil {
		t.Fatal(err)
	}
}

func TestHeadersOfAPath(t *testing.T) {
	tab := table(t)
	for _, relays := range [][]netip.Addr{{relay1}, {relay1, relay2}, {relay1, relay2, relay3, relay1, relay2, relay3, relay1, relay2}} {
		set(t, tab, plan.Spread{Paths: []plan.RelayPath{{Relays: relays}}})
		in := packet(1000, 100)
		in[15] = 0xb8 | 1 // expedited forwarding, ECT(1)
		in[24], in[25] = 0, 0
		binary.BigEndian.PutUint16(in[24:], ^sum(in[14:34]))
		verdict, out := run(t, tab.Transmit(), in)
		if verdict != next || len(out) != len(in)+20*len(relays) {
			t.Fatalf("%v: verdict %d, %d bytes of %d", relays, verdict, len(out), len(in))
		}
		for i, r := range relays {
			h := out[14+20*i:]
			if h[0] != 0x45 || sum(h[:20]) != 0xffff || h[9] != 4 || h[1] != 0xb9 || netip.AddrFrom4([4]byte(h[16:20])) != r || int(binary.BigEndian.Uint16(h[2:])) != len(h) {
				t.Errorf("%v: header %d is % x", relays, i, h[:20])
			}
		}
		if !bytes.Equal(out[14+20*len(relays):], in[14:]) || !bytes.Equal(out[:14], in[:14]) {
			t.Error("the packet itself is changed")
		}
	}
}

func TestPaddingIsNotCounted(t *testing.T) {
	tab := table(t)
	set(t, tab, plan.Spread{Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}}}})
	in := append(packet(1, 4), make([]byte, 14)...)
	_, out := run(t, tab.Transmit(), in)
	if got := binary.BigEndian.Uint16(out[16:]); got != 20+32 {
		t.Errorf("outer length %d, want 52", got)
	}
}

func TestOthersAreLeftAlone(t *testing.T) {
	tab := table(t)
	set(t, tab, plan.Spread{Prefix: netip.MustParsePrefix("10.8.0.0/16"), Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}}}})
	arp := packet(1, 20)
	arp[12], arp[13] = 8, 6
	lies := packet(1, 20)
	binary.BigEndian.PutUint16(lies[16:], 2000)
	for name, in := range map[string][]byte{"another prefix": packet(1, 20), "ARP": arp, "longer than it is": lies} {
		if verdict, out := run(t, tab.Transmit(), in); verdict != next || !bytes.Equal(out, in) {
			t.Errorf("%s: verdict %d, %d bytes of %d", name, verdict, len(out), len(in))
		}
	}
}

// through says which relay a flow's packet goes to.
func through(t testing.TB, tab *Table, port uint16) netip.Addr {
	_, out := run(t, tab.Transmit(), packet(port, 20))
	if out[23] != 4 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(out[30:34]))
}

func TestHashKeepsFlowsAndWeights(t *testing.T) {
	tab := table(t)
	set(t, tab, plan.Spread{Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}, Weight: 3}, {Relays: []netip.Addr{relay2}, Weight: 1}}})
	count := make(map[netip.Addr]int)
	for port := range uint16(4000) {
		first := through(t, tab, port)
		if port%16 == 0 && through(t, tab, port) != first {
			t.Fatal("a flow changes its path")
		}
		count[first]++
	}
	if share := float64(count[relay1]) / 4000; share < 0.72 || share > 0.78 {
		t.Errorf("%.3f of the flows are on the path with three quarters of the weight", share)
	}
}

func TestFlowsLeaveADeadPathAtOnce(t *testing.T) {
	for _, mode := range []plan.SpreadMode{plan.HashMode, plan.PerFlow, plan.Flowlets, plan.RoundRobin} {
		tab := table(t)
		set(t, tab, plan.Spread{Mode: mode, Gap: plan.Gap(time.Hour), Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}}, {Relays: []netip.Addr{relay2}}}})
		before := make(map[uint16]netip.Addr)
		for port := range uint16(64) {
			before[port] = through(t, tab, port)
		}
		if err := tab.SetUp(prefix, 0, false); err != nil {
			t.Fatal(err)
		}
		for port, was := range before {
			now := through(t, tab, port)
			if now != relay2 {
				t.Errorf("mode %s, flow %d: from %s to %s, %s is down", mode, port, was, now, relay1)
			}
		}
		if err := tab.SetUp(prefix, 1, false); err != nil {
			t.Fatal(err)
		}
		if got := through(t, tab, 1); got.IsValid() {
			t.Errorf("mode %s: a packet goes to %s, all paths are down", mode, got)
		}
		if err := tab.SetUp(prefix, 0, true); err != nil {
			t.Fatal(err)
		}
		if got := through(t, tab, 1); got != relay1 {
			t.Errorf("mode %s: a packet goes to %s, only %s is up", mode, got, relay1)
		}
	}
}

// What a dead path had goes to the others by weight, not all to one and hardly
// any to a spare one, whether paths are drawn or taken in turn.
func TestFlowsOfADeadPathGoByWeight(t *testing.T) {
	spare := netip.MustParseAddr("10.255.0.4")
	for _, mode := range []plan.SpreadMode{plan.HashMode, plan.RoundRobin} {
		tab := table(t)
		set(t, tab, plan.Spread{Mode: mode, Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}, Weight: 512}, {Relays: []netip.Addr{relay2}, Weight: 384}, {Relays: []netip.Addr{relay3}, Weight: 128}, {Relays: []netip.Addr{spare}, Weight: 1}}})
		if err := tab.SetUp(prefix, 0, false); err != nil {
			t.Fatal(err)
		}
		count, n := make(map[netip.Addr]float64), 2000.0
		for port := range uint16(n) {
			count[through(t, tab, port)]++
		}
		if count[relay1] > 0 || count[relay2] < 0.66*n || count[relay2] > 0.78*n || count[relay3] < 0.2*n || count[spare] > 0.06*n {
			t.Errorf("mode %s: %v", mode, count)
		}
	}
}

func TestFlowsAreCountedAndMoved(t *testing.T) {
	tab := table(t)
	paths := []plan.RelayPath{{Relays: []netip.Addr{relay1}}, {Relays: []netip.Addr{relay2}}}
	set(t, tab, plan.Spread{Mode: plan.PerFlow, Paths: paths})
	was := through(t, tab, 77)
	through(t, tab, 77)
	flows, err := tab.Flows(prefix)
	if err != nil || len(flows) != 1 || flows[0].Packets != 2 || flows[0].Bytes != 2*62 || flows[0].Source != netip.AddrPortFrom(host, 77) || flows[0].Target != netip.AddrPortFrom(target, 9) {
		t.Fatalf("%+v, %v", flows, err)
	}
	if err := tab.Move(prefix, flows[0].FlowKey, 1-flows[0].Path); err != nil {
		t.Fatal(err)
	}
	if now := through(t, tab, 77); now == was || !now.IsValid() {
		t.Errorf("moved from %s to %s", was, now)
	}
	load, err := tab.Load(prefix, flows[0].Path)
	if err != nil || load.Packets != 2 {
		t.Errorf("%+v on the first path, %v", load, err)
	}
	if tab.Move(prefix, flows[0].FlowKey, 2) == nil {
		t.Error("moved to a path that is not there")
	}
}

func TestRoundRobinTakesTurns(t *testing.T) {
	tab := table(t)
	var paths []plan.RelayPath
	for _, r := range []netip.Addr{relay1, relay2, relay3} {
		paths = append(paths, plan.RelayPath{Relays: []netip.Addr{r}})
	}
	set(t, tab, plan.Spread{Mode: plan.RoundRobin, Paths: paths})
	count := make(map[netip.Addr]int)
	for port := range uint16(9) {
		count[through(t, tab, port)]++
		if again := through(t, tab, port); again != through(t, tab, port) {
			t.Error("a flow changes its path")
		}
	}
	if count[relay1] != 3 || count[relay2] != 3 || count[relay3] != 3 {
		t.Errorf("nine flows on %v", count)
	}
}

func TestFlowletsMoveAfterAPause(t *testing.T) {
	tab := table(t)
	var paths []plan.RelayPath
	for i := range 16 {
		paths = append(paths, plan.RelayPath{Relays: []netip.Addr{netip.AddrFrom4([4]byte{10, 255, 1, byte(i)})}})
	}
	set(t, tab, plan.Spread{Mode: plan.Flowlets, Gap: plan.Gap(20 * time.Millisecond), Paths: paths})
	seen := make(map[netip.Addr]bool)
	for range 12 {
		first := through(t, tab, 5)
		if again := through(t, tab, 5); again != first {
			t.Skip("the machine paused for longer than the gap")
		}
		seen[first] = true
		time.Sleep(25 * time.Millisecond)
	}
	if len(seen) < 3 {
		t.Errorf("12 flowlets over 16 paths took %d", len(seen))
	}
}

func TestNewPathsKeepFlowsOnTheOldOnes(t *testing.T) {
	tab := table(t)
	old := []plan.RelayPath{{Relays: []netip.Addr{relay1}}, {Relays: []netip.Addr{relay2}}}
	set(t, tab, plan.Spread{Mode: plan.PerFlow, Paths: old})
	before := make(map[uint16]netip.Addr)
	for port := range uint16(50) {
		before[port] = through(t, tab, port)
	}
	set(t, tab, plan.Spread{Mode: plan.PerFlow, Paths: append([]plan.RelayPath{{Relays: []netip.Addr{relay3}}}, old...)})
	for port, was := range before {
		if now := through(t, tab, port); now != was {
			t.Fatalf("flow %d went from %s to %s, which was added", port, was, now)
		}
	}
	set(t, tab, plan.Spread{Mode: plan.PerFlow, Paths: old[1:]})
	for port := range before {
		if now := through(t, tab, port); now != relay2 {
			t.Fatalf("flow %d goes to %s, only %s is left", port, now, relay2)
		}
	}
	if err := tab.Remove(prefix); err != nil {
		t.Fatal(err)
	}
	if got := through(t, tab, 3); got.IsValid() || len(tab.paths) != 0 {
		t.Errorf("a packet goes to %s after its prefix was removed; paths left: %v", got, tab.paths)
	}
}

func TestTheTableIsReadBack(t *testing.T) {
	tab := table(t)
	set(t, tab, plan.Spread{Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1, relay2}}, {Relays: []netip.Addr{relay3}}}})
	again, err := open(tab.c, host)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.paths) != 2 || len(again.members) != 1 || again.sets[prefix] != tab.sets[prefix] {
		t.Errorf("paths %v, sets %v", again.paths, again.sets)
	}
	for path, id := range tab.paths {
		if again.paths[path] != id {
			t.Errorf("%v is %d, was %d", path, again.paths[path], id)
		}
	}
}

// many is paths over one relay each.
func many(n int) []plan.RelayPath {
	var paths []plan.RelayPath
	for i := range n {
		paths = append(paths, plan.RelayPath{Relays: []netip.Addr{netip.AddrFrom4([4]byte{10, 255, 2, byte(i)})}})
	}
	return paths
}

func TestBadRules(t *testing.T) {
	tab := table(t)
	one := []plan.RelayPath{{Relays: []netip.Addr{relay1}}}
	for name, r := range map[string]plan.Spread{
		"no prefix":      {Paths: one},
		"IPv6":           {Prefix: netip.MustParsePrefix("2001:db8::/32"), Paths: one},
		"host bits":      {Prefix: netip.MustParsePrefix("10.0.0.1/8"), Paths: one},
		"no paths":       {Prefix: prefix},
		"twice the same": {Prefix: prefix, Paths: slices.Repeat(one, 2)},
		"too many":       {Prefix: prefix, Paths: []plan.RelayPath{{Relays: slices.Repeat([]netip.Addr{relay1}, 9)}}},
		"IPv6 relay":     {Prefix: prefix, Paths: []plan.RelayPath{{Relays: []netip.Addr{netip.IPv6LinkLocalAllNodes()}}}},
		"too much":       {Prefix: prefix, Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}, Weight: 1 << 31}, {Relays: []netip.Addr{relay2}, Weight: 1}}},
		"no such mode":   {Prefix: prefix, Mode: "least", Paths: one},
		"too many paths": {Prefix: prefix, Paths: many(65)},
	} {
		if tab.Set(r) == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if len(tab.paths)+len(tab.sets) != 0 {
		t.Error("something was changed")
	}
}

// relaying is a node that takes off headers for relay1 and relay2.
func relaying(t testing.TB) *Table {
	tab := table(t)
	if err := tab.SetRelaying(Relaying{
		Addresses: []netip.Addr{relay1, relay2},
		Senders:   []netip.Prefix{netip.PrefixFrom(host, 32)},
		Inside:    []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}); err != nil {
		t.Fatal(err)
	}
	return tab
}

// What a relay remembers of allowed addresses and its own goes with them.
func TestAllowedAddressesCountAtOnce(t *testing.T) {
	tab := relaying(t)
	in, inside := wrapped(packet(1, 50), relay1), []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		allows  Relaying
		verdict int
		outcome string
	}{
		{Relaying{[]netip.Addr{relay1}, []netip.Prefix{netip.PrefixFrom(host, 32)}, inside, Never}, next, "relayed"},
		{Relaying{[]netip.Addr{relay1}, []netip.Prefix{netip.PrefixFrom(target, 32)}, inside, Never}, drop, "drop-source"},
		{Relaying{[]netip.Addr{relay1}, inside, []netip.Prefix{netip.PrefixFrom(host, 32)}, Never}, drop, "drop-outside"},
		{Relaying{[]netip.Addr{relay2}, inside, inside, Never}, next, ""},
		{Relaying{[]netip.Addr{relay1}, inside, inside, Never}, next, "relayed"},
	} {
		if err := tab.SetRelaying(c.allows); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			before, _ := tab.Counts()
			verdict, _ := run(t, tab.Relay(), in)
			after, _ := tab.Counts()
			if verdict != c.verdict || c.outcome != "" && after[c.outcome] != before[c.outcome]+1 {
				t.Errorf("%+v: verdict %d, %v", c.allows, verdict, after)
			}
		}
	}
}

func TestRelay(t *testing.T) {
	tab := relaying(t)
	plain := packet(1, 50)
	change := func(at int, value byte) []byte {
		b := wrapped(plain, relay1)
		b[at] = value
		return resum(b)
	}
	outside := packet(1, 50)
	copy(outside[30:], []byte{192, 168, 0, 1})
	marked := change(15, 3)
	able := packet(1, 50)
	able[15] = 2
	ableMarked := wrapped(resum(able), relay1)
	ableMarked[15] = 3
	ableMarked = resum(ableMarked)
	ableCE := slices.Clone(able)
	ableCE[15] = 3
	for name, c := range map[string]struct {
		in, out []byte
		outcome string
	}{
		"one header":            {wrapped(plain, relay1), plain, "relayed"},
		"two for this node":     {wrapped(plain, relay1, relay2), plain, "relayed"},
		"the next relay's":      {wrapped(plain, relay1, relay3), wrapped(plain, relay3), "relayed"},
		"not for this node":     {wrapped(plain, relay3), wrapped(plain, relay3), ""},
		"no tunnel":             {plain, plain, ""},
		"options":               {change(14, 0x46), nil, "drop-malformed"},
		"version":               {change(14, 0x65), nil, "drop-malformed"},
		"a fragment":            {change(20, 0x20), nil, "drop-fragment"},
		"its end":               {change(21, 1), nil, "drop-fragment"},
		"too long":              {change(16, 1), nil, "drop-malformed"},
		"another sender":        {change(15+12, 99), nil, "drop-source"},
		"a wrong checksum":      {append(wrapped(plain, relay1)[:24], append([]byte{1, 2}, wrapped(plain, relay1)[26:]...)...), nil, "drop-checksum"},
		"to the outside":        {wrapped(resum(outside), relay1), nil, "drop-outside"},
		"cut off":               {wrapped(plain, relay1)[:14+20+10], nil, "drop-malformed"},
		"more than a path has":  {wrapped(plain, slices.Repeat([]netip.Addr{relay1}, 9)...), nil, "drop-nested"},
		"as many as a path has": {wrapped(plain, slices.Repeat([]netip.Addr{relay1}, 8)...), plain, "relayed"},
		"marked, unable":        {marked, nil, "drop-congested"},
		"marked, able":          {ableMarked, resum(ableCE), "relayed"},
	} {
		before, _ := tab.Counts()
		verdict, out := run(t, tab.Relay(), c.in)
		want := next
		if c.out == nil {
			want = drop
		}
		if verdict != want || c.out != nil && !bytes.Equal(out, c.out) {
			t.Errorf("%s: verdict %d, want %d; % x, want % x", name, verdict, want, out, c.out)
		}
		after, err := tab.Counts()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range Outcomes() {
			if got := after[o] - before[o]; (got == 1) != (o == c.outcome) {
				t.Errorf("%s: %s counted %d times, want %q", name, o, got, c.outcome)
			}
		}
	}
}

// resum makes the first IPv4 header's checksum right.
func resum(b []byte) []byte {
	b[24], b[25] = 0, 0
	binary.BigEndian.PutUint16(b[24:], ^sum(b[14:34]))
	return b
}

// reference is the relay, slow and obvious: what leaves, nil if nothing does.
func reference(in []byte) []byte {
	if len(in) < 34 || in[12] != 8 || in[13] != 0 {
		return in
	}
	switch in[23] {
	case 4:
		return referenceStack(in, 4, 20)
	case 47:
		return referenceStack(in, 47, 24)
	case 17:
		return referenceList(in)
	}
	return in
}

// local says that an address is the relay's.
func local(b []byte) bool {
	to := netip.AddrFrom4([4]byte(b))
	return to == relay1 || to == relay2
}

// soundOuter is what must hold of an outer header.
func soundOuter(h []byte) bool {
	length := int(binary.BigEndian.Uint16(h[2:]))
	return h[0] == 0x45 && sum(h[:20]) == 0xffff && binary.BigEndian.Uint16(h[6:])&0x3fff == 0 && length <= len(h) && length >= 40 && netip.AddrFrom4([4]byte(h[12:16])) == host
}

func referenceStack(in []byte, protocol byte, stride int) []byte {
	at, count, marked := 14, 0, false
	for len(in) >= at+20 {
		h := in[at:]
		if h[9] != protocol || !local(h[16:20]) {
			break
		}
		if count == 8 || !soundOuter(h) {
			return nil
		}
		if stride == 24 && (len(h) < 24 || !bytes.Equal(h[20:24], []byte{0, 0, 8, 0})) {
			return nil
		}
		marked = marked || h[1]&3 == 3
		at, count = at+stride, count+1
	}
	if count == 0 {
		return in
	}
	return unwrapped(in, at, marked)
}

// unwrapped is a packet without what is in front of an offset.
func unwrapped(in []byte, at int, marked bool) []byte {
	if len(in) < at+20 {
		return nil
	}
	h := in[at:]
	length := int(binary.BigEndian.Uint16(h[2:]))
	if h[0]>>4 != 4 || h[0]&15 < 5 || length > len(h) || length < int(h[0]&15)*4 || h[16] != 10 {
		return nil
	}
	out := append(slices.Clone(in[:14]), h...)
	if marked {
		if out[15]&3 == 0 {
			return nil
		}
		was := binary.BigEndian.Uint16(out[14:])
		out[15] |= 3
		check := uint32(^binary.BigEndian.Uint16(out[24:])) + uint32(^was) + uint32(binary.BigEndian.Uint16(out[14:]))
		for check > 0xffff {
			check = check>>16 + check&0xffff
		}
		binary.BigEndian.PutUint16(out[24:], ^uint16(check))
	}
	return out
}

func referenceList(in []byte) []byte {
	if len(in) < 46 || binary.BigEndian.Uint16(in[36:]) != 50862 || !local(in[30:34]) {
		return in
	}
	total, visited, inside := int(in[42]&15), int(in[43]&15), in[43]>>4
	length, udp := int(binary.BigEndian.Uint16(in[16:])), int(binary.BigEndian.Uint16(in[38:]))
	if !soundOuter(in[14:]) || in[42]>>4 != 1 || inside > 1 || visited > total || total > 8 || udp != length-20 || in[40] != 0 || in[41] != 0 || length < 40+4*total {
		return nil
	}
	if inside == 1 && (visited == total || in[44] == 0 && in[45] == 0) {
		return nil
	}
	if visited == total {
		return unwrapped(in, 46+4*total, in[15]&3 == 3)
	}
	out := slices.Clone(in)
	if len(in) < 50+4*visited || in[46+4*visited] != 10 {
		return nil
	}
	copy(out[30:34], in[46+4*visited:])
	if inside == 0 || visited+1 < total {
		out[43]++
		return resum(out)
	}
	binary.BigEndian.PutUint16(out[16:], uint16(length-4-4*total))
	binary.BigEndian.PutUint16(out[38:], uint16(udp-4-4*total))
	copy(out[36:38], in[44:46])
	return resum(append(out[:42], out[46+4*total:]...))
}

// Random, malformed and hostile packets: nothing crashes, and every verdict is
// the reference model's. SUBLET_FUZZ=N says how many.
func TestRelayAgainstReference(t *testing.T) {
	tab := relaying(t)
	rng := rand.New(rand.NewPCG(1, 9))
	fates := make(map[string]int)
	for range rounds(t) {
		in := hostile(rng)
		want := reference(in)
		switch {
		case want == nil:
			fates["dropped"]++
		case bytes.Equal(in, want):
			fates["not ours"]++
		default:
			fates["relayed"]++
		}
		verdict, out := run(t, tab.Relay(), in)
		switch {
		case want == nil && verdict != drop, want != nil && verdict != next:
			t.Fatalf("verdict %d of % x", verdict, in)
		case want != nil && !bytes.Equal(out, want):
			t.Fatalf("% x\ncame out as\n% x, want\n% x", in, out, want)
		}
	}
	counts, err := tab.Counts()
	if err != nil {
		t.Fatal(err)
	}
	dropped := 0
	for what, n := range counts {
		if strings.HasPrefix(what, "drop-") {
			dropped += int(n)
		}
	}
	if dropped != fates["dropped"] || int(counts["relayed"]) != fates["relayed"] {
		t.Errorf("counted %v, were %v", counts, fates)
	}
	t.Logf("%v: %v", fates, counts)
}

// hostile is a sound nest of headers, or a packet with a list, with some bytes
// changed, sums mostly mended.
func hostile(rng *rand.Rand) []byte {
	var b []byte
	stride := 20
	switch rng.IntN(3) {
	case 0:
		b = wrapped(packet(uint16(rng.Uint32()), rng.IntN(60)), pick(rng, rng.IntN(11))...)
	case 1:
		b, stride = wrappedGRE(packet(uint16(rng.Uint32()), rng.IntN(60)), pick(rng, rng.IntN(11))), 24
	case 2:
		b, stride = listed(rng), 1000
	}
	for range rng.IntN(4) {
		at := 12 + rng.IntN(min(len(b)-12, 70))
		b[at] = []byte{0, 1, 3, 4, 0x45, 0x46, 10, 0xff, byte(rng.Uint32())}[rng.IntN(9)]
	}
	for at := 14; at+20 <= len(b) && rng.IntN(8) > 0; at += stride {
		if b[at] == 0x45 {
			b[at+10], b[at+11] = 0, 0
			binary.BigEndian.PutUint16(b[at+10:], ^sum(b[at:at+20]))
		}
	}
	if rng.IntN(6) == 0 {
		b = b[:34+rng.IntN(len(b)-33)] // the kernel runs no IP packet without a header
	}
	return b
}

func pick(rng *rand.Rand, n int) []netip.Addr {
	pool := []netip.Addr{relay1, relay2, relay3, target}
	relays := make([]netip.Addr, n)
	for i := range relays {
		relays[i] = pool[rng.IntN(2+rng.IntN(3))]
	}
	return relays
}

// wrappedGRE is wrapped with GRE.
func wrappedGRE(inner []byte, relays []netip.Addr) []byte {
	b := append(slices.Clone(inner[:14]), make([]byte, 24*len(relays))...)
	b = append(b, inner[14:]...)
	for i, r := range relays {
		at := 14 + 24*i
		header(b[at:], 47, host, r, len(b)-at)
		b[at+22] = 8
	}
	return b
}

// listed is a packet with a list of some length, anywhere on its way.
func listed(rng *rand.Rand) []byte {
	relays := pick(rng, rng.IntN(10))
	inner := packet(uint16(rng.Uint32()), 8+rng.IntN(40))
	kind := byte(rng.IntN(2))
	body := inner[14:]
	if kind == 1 {
		body = inner[42:]
	}
	b := append(slices.Clone(inner[:14]), make([]byte, 32+4*len(relays))...)
	for i, r := range relays {
		copy(b[46+4*i:], r.AsSlice())
	}
	b = append(b, body...)
	header(b[14:], 17, host, []netip.Addr{relay1, relay2, relay3}[rng.IntN(3)], len(b)-14)
	binary.BigEndian.PutUint16(b[34:], 0xc001)
	binary.BigEndian.PutUint16(b[36:], 50862)
	binary.BigEndian.PutUint16(b[38:], uint16(len(b)-34))
	b[42], b[43] = 0x10|byte(len(relays)), kind<<4|byte(rng.IntN(len(relays)+1))
	if kind == 1 {
		binary.BigEndian.PutUint16(b[44:], 4789)
	}
	return b
}

// A path's headers are as many as admission lets one have relays.
func TestHeadersForAllRelays(t *testing.T) {
	if n := len(iplbPath{}.Headers); n != MaxRelays {
		t.Errorf("room for %d headers, and paths of %d relays are leased", n, MaxRelays)
	}
}
