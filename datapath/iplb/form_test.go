package iplb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sublet/plan"
	"testing"
)

// node is a relay that takes headers off at an address.
func node(t testing.TB, at netip.Addr) *Table {
	tab := table(t)
	if err := tab.SetRelaying(Relaying{
		Addresses: []netip.Addr{at},
		Senders:   []netip.Prefix{netip.PrefixFrom(host, 32)},
		Inside:    []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}); err != nil {
		t.Fatal(err)
	}
	return tab
}

// vxlan is a packet of a tunnel: what is inside is anything.
func vxlan(payload int) []byte {
	b := packet(50000, payload)
	binary.BigEndian.PutUint16(b[36:], 4789)
	return b
}

// target of the first header.
func targetOf(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b[30:34])) }

// Each form visits the relays in order, adds what the arithmetic says, keeps
// every header sound on the way, and gives back the packet it was given.
func TestFormsThereAndBack(t *testing.T) {
	relays := []netip.Addr{relay1, relay2, relay3}
	nodes := map[netip.Addr]*Table{}
	for _, r := range relays {
		nodes[r] = node(t, r)
	}
	for _, uncut := range []bool{false, true} {
		t.Run(fmt.Sprint("uncut ", uncut), func(t *testing.T) {
			sender := table(t)
			if err := sender.SetWiresCarryGSO(uncut); err != nil {
				t.Fatal(err)
			}
			formsThereAndBack(t, sender, nodes, relays)
		})
	}
}

func formsThereAndBack(t *testing.T, sender *Table, nodes map[netip.Addr]*Table, relays []netip.Addr) {
	for _, c := range []struct {
		form  plan.Relaying
		in    []byte
		added func(n int) int
	}{
		{plan.ByIPIP, packet(1000, 100), func(n int) int { return 20 * n }},
		{plan.ByGRE, packet(1000, 100), func(n int) int { return 24 * n }},
		{plan.ByUDP, packet(1000, 100), func(n int) int { return 32 + 4*(n-1) }},
		{plan.ByIPIP, vxlan(100), func(n int) int { return 20 * n }},
		{plan.ByUDP, vxlan(100), func(n int) int { return 4 + 4*n }},
		{plan.ByUDP, vxlan(8), func(n int) int { return 4 + 4*n }},
	} {
		for n := 1; n <= len(relays); n++ {
			set(t, sender, plan.Spread{By: c.form, Paths: []plan.RelayPath{{Relays: relays[:n]}}})
			verdict, b := run(t, sender.Transmit(), c.in)
			if verdict != next || len(b) != len(c.in)+c.added(n) {
				t.Fatalf("form %s over %d relays: verdict %d, %d bytes more", c.form, n, verdict, len(b)-len(c.in))
			}
			for _, r := range relays[:n] {
				if targetOf(b) != r || sum(b[14:34]) != 0xffff || int(binary.BigEndian.Uint16(b[16:])) != len(b)-14 {
					t.Fatalf("form %s: on the way to %s: % x", c.form, r, b)
				}
				if b[23] == 17 && int(binary.BigEndian.Uint16(b[38:])) != len(b)-34 {
					t.Errorf("form %s: length of UDP is %d", c.form, binary.BigEndian.Uint16(b[38:]))
				}
				if verdict, b = run(t, nodes[r].Relay(), b); verdict != next {
					t.Fatalf("form %s: %s drops it", c.form, r)
				}
			}
			if !bytes.Equal(b, c.in) {
				t.Errorf("form %s over %d relays:\n% x comes out as\n% x", c.form, n, c.in, b)
			}
		}
	}
}

// A checksum of a tunnel's packet covers what the list changes, so such packets
// go by the fabric's own way.
func TestListsLeaveChecksumsAlone(t *testing.T) {
	tab := table(t)
	set(t, tab, plan.Spread{By: plan.ByUDP, Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}}}})
	in := vxlan(20)
	in[40] = 1
	if verdict, out := run(t, tab.Transmit(), in); verdict != next || !bytes.Equal(in, out) {
		t.Errorf("verdict %d, % x", verdict, out)
	}
	if counts, _ := tab.Counts(); counts["refused"] != 1 {
		t.Errorf("%v", counts)
	}
}

// The source port of a list tells flows apart.
func TestListsHaveEntropy(t *testing.T) {
	tab := table(t)
	set(t, tab, plan.Spread{By: plan.ByUDP, Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}}}})
	ports := make(map[uint16]bool)
	for port := range uint16(64) {
		_, out := run(t, tab.Transmit(), packet(port, 20))
		source := binary.BigEndian.Uint16(out[34:])
		if source < 0xc000 {
			t.Fatalf("source port %d", source)
		}
		ports[source] = true
	}
	if len(ports) < 56 {
		t.Errorf("64 flows have %d source ports", len(ports))
	}
}

// Hostile lists, and what becomes of them.
func TestHostileLists(t *testing.T) {
	sender := table(t)
	set(t, sender, plan.Spread{By: plan.ByUDP, Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1, relay3}}}})
	_, whole := run(t, sender.Transmit(), packet(1000, 60))
	_, tunnel := run(t, sender.Transmit(), vxlan(60))
	change := func(of []byte, at int, value ...byte) []byte {
		b := slices.Clone(of)
		copy(b[at:], value)
		return resum(b)
	}
	const udp, list = 34, 42
	tab := relaying(t)
	for name, c := range map[string]struct {
		in      []byte
		outcome string
	}{
		"sound":                {whole, "relayed"},
		"sound in a tunnel":    {tunnel, "relayed"},
		"another version":      {change(whole, list, 0x21), "drop-malformed"},
		"nothing known inside": {change(whole, list+1, 0x20), "drop-malformed"},
		"visited too many":     {change(whole, list+1, 0x02), "drop-malformed"},
		"tunnel at its end":    {change(tunnel, list+1, 0x12), "drop-malformed"},
		"tunnel without port":  {change(tunnel, list+2, 0, 0), "drop-malformed"},
		"more than there is":   {change(whole, list, 0x1f), "drop-nested"},
		"list behind the end":  {change(whole[:14+20+8+4+20], 16, 0, 52), "drop-malformed"},
		"checksum of UDP":      {change(whole, udp+6, 1), "drop-malformed"},
		"length of UDP":        {change(whole, udp+4, 1), "drop-malformed"},
		"to the outside":       {change(whole, list+4, 192), "drop-outside"},
		"tunnel to outside":    {change(change(tunnel, list+1, 0x11), list+8, 192), "drop-outside"},
		"another sender":       {change(whole, 26, 11), "drop-source"},
		"a fragment":           {change(whole, 20, 0x20), "drop-fragment"},
		"options":              {change(whole, 14, 0x46), "drop-malformed"},
		"damaged":              {append(slices.Clone(whole[:24]), append([]byte{1, 2}, whole[26:]...)...), "drop-checksum"},
		"inside no packet":     {change(change(whole, list, 0x10), list+4, 0x65), "drop-malformed"},
		"another port":         {change(whole, udp+2, 1), ""},
	} {
		before, _ := tab.Counts()
		verdict, _ := run(t, tab.Relay(), c.in)
		if (verdict == drop) != (c.outcome != "" && c.outcome != "relayed") {
			t.Errorf("%s: verdict %d", name, verdict)
		}
		after, _ := tab.Counts()
		for _, o := range Outcomes() {
			if got := after[o] - before[o]; (got == 1) != (o == c.outcome) {
				t.Errorf("%s: %s counted %d times, want %q", name, o, got, c.outcome)
			}
		}
	}
}

// Probes come back to the path that sent them, in order, and others' do not.
func TestProbesAreHeard(t *testing.T) {
	tab := table(t)
	set(t, tab, plan.Spread{Paths: []plan.RelayPath{{Relays: []netip.Addr{relay1}}, {Relays: []netip.Addr{relay2}}}})
	const secret = 0x1234567890
	path, err := tab.Watch(prefix, 1, secret)
	if err != nil {
		t.Fatal(err)
	}
	probe := NewProbe(host, []netip.Addr{relay1}, relay2, []netip.Addr{relay2, relay1}, path, secret)
	if probe.first != relay1 || len(probe.packet) != 3*20+28+probeText {
		t.Errorf("%d bytes to %s", len(probe.packet), probe.first)
	}
	frame := func(number uint32, change func([]byte)) []byte {
		binary.NativeEndian.PutUint32(probe.packet[probe.text:], number)
		b := append(make([]byte, 12), 8, 0)
		b = append(b, probe.packet[3*20:]...)
		if change != nil {
			change(b)
		}
		return b
	}
	for i, c := range []struct {
		in      []byte
		heard   uint32
		verdict int
		outcome string
	}{
		{frame(1, nil), 1, drop, "echoed"},
		{frame(3, nil), 3, drop, "echoed"},
		{frame(2, nil), 3, drop, "echoed"}, // late
		{frame(9, func(b []byte) { b[14+28+8]++ }), 3, drop, "drop-forged"},
		{frame(9, func(b []byte) { b[14+28+4] ^= 1 }), 3, drop, "drop-forged"},
		{frame(9, func(b []byte) { b[14+28]++ }), 3, next, ""},
		{frame(9, func(b []byte) { b[14+23]++ }), 3, next, ""},
		{frame(9, nil)[:60], 3, next, ""},
	} {
		before, _ := tab.Counts()
		verdict, _ := run(t, tab.Echo(), c.in)
		heard, err := tab.Heard(path)
		if err != nil || heard != c.heard || verdict != c.verdict {
			t.Errorf("%d: heard %d, verdict %d, %v; want %d, %d", i, heard, verdict, err, c.heard, c.verdict)
		}
		after, _ := tab.Counts()
		if c.outcome != "" && after[c.outcome] != before[c.outcome]+1 {
			t.Errorf("%d: %s is not counted", i, c.outcome)
		}
	}
	for at := 0; at < 80; at += 20 {
		if sum(probe.packet[at:at+20]) != 0xffff {
			t.Errorf("header at %d has a wrong checksum", at)
		}
	}
}

// A tunnel that has a path of its own takes it, whatever its target's prefix
// says and however like another tunnel's its outer headers are.
func TestTunnelsHaveTheirOwnPaths(t *testing.T) {
	tab := table(t)
	set(t, tab, plan.Spread{By: plan.ByUDP, Paths: []plan.RelayPath{{Relays: []netip.Addr{relay3}}}})
	through := func(vni uint32) netip.Addr {
		in := packet(1000, 100)
		binary.BigEndian.PutUint16(in[36:], 4789)
		binary.BigEndian.PutUint32(in[46:], vni<<8)
		verdict, out := run(t, tab.Transmit(), in)
		if verdict != next {
			t.Fatalf("tunnel %d: verdict %d", vni, verdict)
		}
		return netip.AddrFrom4([4]byte(out[30:34]))
	}
	for vni, relays := range map[uint32][]netip.Addr{7: {relay1}, 8: {relay2, relay1}, 9: nil} {
		if err := tab.SetTunnel(vni, relays); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want map[uint32]netip.Addr) {
		t.Helper()
		for range 2 {
			for vni, relay := range want {
				if got := through(vni); got != relay {
					t.Errorf("tunnel %d goes to %s, not %s", vni, got, relay)
				}
			}
		}
	}
	expect(map[uint32]netip.Addr{7: relay1, 8: relay2, 9: target, 10: relay3})
	if err := tab.SetTunnel(7, []netip.Addr{relay2}); err != nil {
		t.Fatal(err)
	}
	if err := tab.RemoveTunnel(8); err != nil {
		t.Fatal(err)
	}
	expect(map[uint32]netip.Addr{7: relay2, 8: relay3})
	again, err := open(tab.c, host)
	if err != nil {
		t.Fatal(err)
	}
	all, err := again.Tunnels()
	if err != nil || len(all) != 2 || !slices.Equal(all[7], []netip.Addr{relay2}) || len(all[9]) != 0 {
		t.Errorf("read back: %v, %v", all, err)
	}
	if load, err := again.TunnelLoad(7); err != nil || load.Packets != 2 {
		t.Errorf("tunnel 7 carried %+v, %v", load, err)
	}
	for _, bad := range []uint32{0, 1 << 24} {
		if tab.SetTunnel(bad, nil) == nil {
			t.Errorf("tunnel %d is taken", bad)
		}
	}
}
