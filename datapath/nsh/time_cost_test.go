package nsh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// BenchmarkTime says what it costs that the time at functions is taken of one packet in
// 61: how long the programs of a chain take for a packet, in rounds in which a host that
// takes the time and one that does not come in turn. Each operation is such a round.
func BenchmarkTime(b *testing.B) {
	for _, functions := range []int{1, 4} {
		b.Run(fmt.Sprintf("functions=%d", functions), func(b *testing.B) {
			g := newGround(b)
			g.h2.untimed(b)
			timed := g.h1.walks(b, "la0", functions)
			untimed := g.h2.walks(b, "lb0", functions)
			var with, without, ratios []float64
			for b.Loop() {
				x, y := timed(), untimed()
				with, without, ratios = append(with, x), append(without, y), append(ratios, x/y)
			}
			for name, list := range map[string][]float64{"ns/timed": with, "ns/untimed": without, "ratio": ratios} {
				slices.Sort(list)
				b.ReportMetric(list[len(list)/2], name)
				b.ReportMetric(list[len(list)/10], name+"-p10")
				b.ReportMetric(list[len(list)*9/10], name+"-p90")
			}
			if c := g.h1.hop(b, there, 255); c.Timed == 0 {
				b.Error("the host that takes the time takes none")
			}
			if c := g.h2.hop(b, there, 255); c.Timed != 0 || c.Packets == 0 {
				b.Errorf("the other one counts %+v", c)
			}
		})
	}
}

// untimed loads the programs of a host so that the turn of a packet to be timed never
// comes; the rest of them, the division included, is as it is.
func (h testHost) untimed(t testing.TB) {
	t.Helper()
	spec, err := loadNsh()
	check(t, err)
	changed := 0
	for _, p := range spec.Programs {
		for i, ins := range p.Instructions {
			if op := ins.OpCode.ALUOp(); ins.OpCode.Class().IsALU() && ins.Constant == 61 && (op == asm.Div || op == asm.Mul) { // turn - turn/61*61
				p.Instructions[i].Constant = 1<<31 - 1
				changed++
			}
		}
	}
	if changed == 0 {
		t.Fatal("no program counts turns")
	}
	pins, err := bpf.OpenPins(h.Host, pinsPart)
	check(t, err)
	c, _, err := pins.Load(spec)
	check(t, err)
	h.part.loaded = &tables{pins: pins, all: c}
	check(t, h.part.loaded.join())
}

// walks makes a chain of firewalls at a port, and gives what runs it for many packets
// and says how many ns of its thread it took for each.
func (h testHost) walks(t testing.TB, port string, functions int) func() float64 {
	t.Helper()
	plane := Plane{Fabric: fabric, Classifiers: []Classifier{{Port: port, Rules: []Rule{{Path: there, Index: 255}}}}}
	index := uint8(255)
	for i := range functions {
		name := fmt.Sprint("fw", i)
		plane.Functions = append(plane.Functions, Function{Name: name, Kind: Firewall, Rules: []FirewallRule{{Match: Match{Proto: 6, DstPorts: Ports{23, 23}}, Deny: true}}})
		plane.Hops = append(plane.Hops, Hop{Path: there, Index: index, Function: name})
		index--
	}
	plane.Hops = append(plane.Hops, Hop{Path: there, Index: index, Egress: &Egress{Port: port}})
	check(t, h.part.Set(plane))
	ns, err := h.Open(fabric)
	check(t, err)
	t.Cleanup(func() { ns.Close() })
	conn, err := kernel.DialIn(ns)
	check(t, err)
	defer conn.Close()
	device, err := conn.LinkByName(port)
	check(t, err)
	const times, size = 5_000, 60
	context := make([]byte, 192) // struct __sk_buff
	binary.NativeEndian.PutUint32(context[40:], uint32(device.Index))
	frame := make([]byte, size)
	frame[12], frame[14], frame[22], frame[23] = 8, 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(frame[16:], size-14)
	copy(frame[26:], []byte{192, 168, 7, 1, 192, 168, 7, 2})
	binary.BigEndian.PutUint16(frame[38:], size-34)
	options := ebpf.RunOptions{Data: frame, DataOut: make([]byte, size+256), Context: context, Repeat: times}
	return func() (each float64) {
		check(t, kernel.In(ns, func() error {
			var began, ended unix.Timespec
			if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &began); err != nil {
				return err
			}
			_, err := h.part.loaded.all.Programs["nsh_classify"].Run(&options)
			err = errors.Join(err, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ended))
			each = float64(ended.Nano()-began.Nano()) / times
			return err
		}))
		return each
	}
}
