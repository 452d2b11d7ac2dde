package vxlink

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/internal/stall"
	"sublet/openflow/inband"
	"sublet/plan"
	"sublet/vnet"
)

const controlPort = 6653

// control is with a controller at node 1, and a gateway.
func control() *plan.Control {
	return &plan.Control{
		Controllers: []netip.AddrPort{netip.AddrPortFrom(address(1), controlPort), netip.MustParseAddrPort("[2001:db8::1]:6653")},
		Gateways:    []netip.Addr{netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("2001:db8::9")},
	}
}

// The class of control is made, seen to be missing, mended, changed and taken away.
func TestControlHasAClass(t *testing.T) {
	b := newBench(t)
	hosts, parts := b.pair()
	for _, node := range []string{"n0", "n1"} {
		b.node(hosts[0], node)
	}
	p := parts[0]
	fabric, home := hosts[0].Path(plan.Fabric(demo)), hosts[0].Namespace
	add(t, p, uplink())
	for _, c := range []struct {
		link     plan.VxLink
		ns       string
		damage   []string
		children string // of qdiscs that are there
	}{
		{local(100 * vnet.Mbit), fabric, []string{
			"tc filter del dev l0a parent 2:", "tc qdisc del dev l0a root", "tc class change dev l0a parent 2:3 classid 2:2 htb rate 1mbit",
			"tc qdisc replace dev l0a parent 2:2 bfifo limit 1000", "tc qdisc replace dev l0b parent 1:1 handle 9: bfifo limit 1000",
		}, "dev l0a"},
		{across(0, 100*vnet.Mbit), home, []string{
			"tc filter del dev phy0 parent 10:", "tc qdisc del dev phy0 parent 1:10", "tc class change dev phy0 parent 10:3 classid 10:2 htb rate 1mbit",
			"tc qdisc replace dev phy0 parent 10:1 bfifo limit 1000", "tc class change dev phy0 parent 1:2 classid 1:10 htb rate 1mbit",
		}, "dev phy0"},
	} {
		c.link.Control = control()
		add(t, p, c.link)
		has(t, p, uplink(), c.link)
		for _, command := range c.damage {
			b.in(c.ns, strings.Fields(command)...)
			repaired(t, p, c.link, command)
		}
		slot := p.places[place{c.link.Lease, c.link.Index, 0}]
		for _, other := range []*plan.Control{nil, {Controllers: control().Controllers}} {
			check(t, p.loaded.setControl(slot, other))
			repaired(t, p, c.link, "a list that one end has not")
		}
		c.link.Ends[0].Rate = 50 * vnet.Mbit
		if t := c.link.Ends[1].Tunnel; t != nil {
			c.link.Ends[0].Rate, c.link.Ends[1].Rate, c.link.Ends[1].Tunnel = 0, 50*vnet.Mbit, tunnel(0, 77, 50*vnet.Mbit)
		}
		add(t, p, c.link)
		has(t, p, uplink(), c.link)
		c.link.Control = nil
		add(t, p, c.link)
		has(t, p, uplink(), c.link)
		if out := b.in(c.ns, "tc", "qdisc", "show", "dev", strings.Fields(c.children)[1]); strings.Contains(out, "htb 2:") || strings.Contains(out, "htb 10:") {
			t.Errorf("%s: queues of control are left:\n%s", c.link, out)
		}
		c.link.Control = control()
		add(t, p, c.link)
		remove(t, p, c.link)
	}
	if classes := b.in(home, "tc", "class", "show", "dev", "phy0"); strings.Count(classes, "\n") != 5 {
		t.Errorf("classes left over:\n%s", classes)
	}
}

// connector says how long connections to two ports take, in turn, ms.
const connector = `
import socket, sys, time
best = {}
for i in range(40):
    for port in map(int, sys.argv[2:]):
        s = socket.socket(); s.settimeout(2)
        at = time.time()
        try: s.connect((sys.argv[1], port))
        except ConnectionRefusedError: pass
        except OSError: at -= 9
        best.setdefault(port, []).append(1000 * (time.time() - at)); s.close()
        time.sleep(0.01)
print(*[sorted(best[int(p)])[20] for p in sys.argv[2:]])
`

// While data floods a link, control does not wait with it, in either direction, and
// data has the rate but for what control takes.
func TestControlDoesNotWaitForData(t *testing.T) {
	needIperf(t)
	const rate = 20 * vnet.Mbit
	for _, name := range []string{"within a host", "between hosts"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var nodes [2]string
			link := local(rate)
			if name == "within a host" {
				p, h := b.host("h1")
				nodes = [2]string{b.node(h, "n0"), b.node(h, "n1")}
				link.Control = control()
				add(t, p, link)
			} else {
				var parts [2]*Part
				parts, nodes, _ = b.connect(rate)
				for i, p := range parts {
					half := across(i, rate)
					half.Control = control()
					add(t, p, half)
				}
			}
			for i := range nodes {
				stall.Try(t, func() (float64, error) {
					done := make(chan flow, 1)
					go func() {
						done <- b.iperf(nodes[i], nodes[1-i], address(1-i).String(), "-u", "-l", "1400", "-b", strconv.Itoa(int(rate)*12/10), "-t", "3", "-O", "1")
					}()
					time.Sleep(time.Second) // until the queue is full
					ports := []string{strconv.Itoa(controlPort), "6654"}
					out := b.in(nodes[0], append([]string{"python3", "-c", connector, address(1).String()}, ports...)...)
					var of, data float64
					if _, err := fmt.Sscan(out, &of, &data); err != nil {
						t.Fatalf("%q: %v", out, err)
					}
					f := <-done
					had := f.udp(1400) / float64(rate)
					t.Logf("from node %d: control %.1f ms, data %.1f ms, the flood %.4f of the rate", i, of, data, had)
					switch {
					case data < 20:
						return 0, fmt.Errorf("data waited %.1f ms: no flood", data)
					case of > 10 || of > data/2:
						return of, fmt.Errorf("control took %.1f ms, data %.1f ms", of, data)
					case had < 0.99:
						return 1 - had, fmt.Errorf("the flood had %.4f of the rate", had)
					}
					return 0, nil
				})
			}
		})
	}
}

// The program takes for control what the filter of the switches does, and nothing else.
func TestControlIsWhatTheFilterSays(t *testing.T) {
	g := newRig(t)
	g.furnish()
	c := control()
	filter := inband.NewFilter(c.Controllers, c.Gateways)
	for _, slot := range []uint32{1, 2, 3} {
		e := g.table.ends[slot]
		e.Control = 1
		check(t, g.setEnd(slot, e))
		check(t, g.setControl(slot, c))
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	took := 0
	check(t, kernel.In(g.space, func() error {
		for range 30_000 {
			frame := nearControl(r)
			_, is := filter.Look(frame)
			slot := uint32(1 + r.IntN(3))
			o := g.run(g.programs.port, packet{frame: frame, index: uint32(number(slot))}, slot)
			if got := o.mark&bpf.MarkControl != 0; got != is {
				t.Fatalf("slot %d: %x: control %v, and the filter says %v", slot, frame, got, is)
			}
			if is {
				took++
			}
		}
		o := g.run(g.programs.trunk, packet{frame: nearControl(r), index: uint32(number(4)), mark: 77}, 5)
		if o.mark&bpf.MarkControl != 0 {
			t.Error("control by a link that has none")
		}
		return nil
	}))
	if took < 1000 {
		t.Errorf("%d frames of 30000 were control", took)
	}
}

// nearControl is a frame that is control, or nearly.
func nearControl(r *rand.Rand) []byte {
	addr := func(v6 bool) []byte {
		list := []string{"10.0.0.2", "10.0.0.9", "10.0.0.3", "0.0.0.0"}
		if v6 {
			list = []string{"2001:db8::1", "2001:db8::9", "2001:db8::3", "::"}
		}
		return netip.MustParseAddr(list[r.IntN(len(list))]).AsSlice()
	}
	tcp := func(b []byte) []byte {
		for range 2 {
			b = binary.BigEndian.AppendUint16(b, []uint16{controlPort, 6654, 0, 443}[r.IntN(4)])
		}
		return append(b, make([]byte, 16)...)
	}
	b := frame(14, 0, 0)[:12]
	switch r.IntN(4) {
	case 0:
		b = append(b, 8, 6, 0, 1, 8, 0, 6, 4, 0, byte(1+r.IntN(2)), 2, 0, 0, 0, 0, 9)
		b = append(append(append(b, addr(false)...), 0, 0, 0, 0, 0, 0), addr(false)...)
	case 1:
		words := r.IntN(3)
		b = append(b, 8, 0, byte(0x45+words), 0, 0, 40, 0, 1, []byte{0, 0x40, 0x20, 0x1f}[r.IntN(4)], byte(r.IntN(4)/3), 64, []byte{6, 6, 6, 17}[r.IntN(4)], 0, 0)
		b = tcp(append(append(append(b, addr(false)...), addr(false)...), make([]byte, 4*words)...))
	case 2:
		b = append(append(append(b, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, []byte{6, 6, 6, 17, 58}[r.IntN(5)], 64), addr(true)...), addr(true)...)
		b = tcp(b)
	case 3:
		b = append(append(append(b, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255), addr(true)...), addr(true)...)
		b = append(append(b, byte(133+r.IntN(5)), 0, 0, 0, 0, 0, 0, 0), addr(true)...)
	}
	b = append(b, make([]byte, 60)...)
	switch r.IntN(8) {
	case 0:
		b = append(append(b[:12:12], 0x81, 0, 0, 1), b[12:]...)
	case 1:
		if short := 54 + r.IntN(len(b)-54); short < len(b) { // the kernel tests with no less
			b = b[:short]
		}
	}
	return b
}
