package vxswitch_test

import (
	"fmt"
	"strings"
	"testing"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/sched"
)

// At 8 Mbit/s a byte takes a microsecond: times below are frame lengths.
const byteTime = 1000

// small is a switch of n ports at 8 Mbit/s for frames of 1500 bytes.
func small(host vxswitch.SchedulerKind, n int) vxswitch.Config {
	cfg := vxswitch.Config{Crosspoint: 1 << 20, MaxFrame: 1500}
	for range n {
		cfg.Ports = append(cfg.Ports, vxswitch.PhysicalPort{In: 8 * vnet.Mbit, Out: 8 * vnet.Mbit, Scheduler: host})
	}
	return cfg
}

// member is a virtual switch with n ports and 100 kB everywhere.
func member(name string, n int, kind vxswitch.SchedulerKind, edit ...func(*vxswitch.Port)) vxswitch.Virtual {
	v := vxswitch.Virtual{Name: name, Buffer: vxswitch.Crosspoint{Size: 100000}}
	for i := range n {
		p := vxswitch.Port{Physical: i, In: vnet.Mbit, Out: vnet.Mbit, Scheduler: kind}
		for _, e := range edit {
			e(&p)
		}
		v.Ports = append(v.Ports, p)
	}
	return v
}

// story lets frames arrive, written "switch.input:size" at time 0 unless "@time"
// follows, and returns which leave when: "switch.input:size@start".
func story(t *testing.T, d *driver, arrivals string) string {
	t.Helper()
	for seq, word := range strings.Fields(arrivals) {
		a := arrival{}
		var at int
		if n, _ := fmt.Sscanf(word, "%d.%d:%d@%d", &a.vs, &a.in, &a.size, &at); n < 3 {
			t.Fatalf("cannot read %q", word)
		}
		a.at = vxswitch.Time(at) * byteTime
		d.enqueue(a, seq)
	}
	d.drain(vxswitch.Forever - 1)
	d.balance()
	var out []string
	for _, dep := range d.all {
		out = append(out, fmt.Sprintf("%d.%d:%d@%d", dep.Switch, dep.In, dep.Size, dep.Start/byteTime))
	}
	return strings.Join(out, " ")
}

func quantum(q vnet.Bytes) func(*vxswitch.Port) { return func(p *vxswitch.Port) { p.Quantum = q } }
func priority(n int) func(*vxswitch.Port)       { return func(p *vxswitch.Port) { p.Priority = n } }

// TestHostSchedulers: one output, two virtual switches, departures by hand.
func TestHostSchedulers(t *testing.T) {
	for _, c := range []struct {
		kind     string
		a, b     func(*vxswitch.Port)
		in, want string
	}{
		// The first frame finds an idle line. Then 0 sends 1000 of its 1500, keeps
		// 500; 1 sends three of 500; then 0 has 2000.
		{"drr", quantum(1500), quantum(1500), "0.0:1000 0.0:1000 0.0:1000 1.0:500 1.0:500 1.0:500 1.0:500",
			"0.0:1000@0 0.0:1000@1000 1.0:500@2000 1.0:500@2500 1.0:500@3000 0.0:1000@3500 1.0:500@4500"},
		// Weights 1 to 3, quanta shorter than frames: one frame a round each is paid in rounds.
		{"drr", quantum(500), quantum(1500), "0.0:1500 0.0:1500 1.0:1500 1.0:1500 1.0:1500 1.0:1500",
			"0.0:1500@0 1.0:1500@1500 1.0:1500@3000 0.0:1500@4500 1.0:1500@6000 1.0:1500@7500"},
		{"sp", priority(1), priority(0), "0.0:100 0.0:100 1.0:200 1.0:200 1.0:50@450",
			"0.0:100@0 1.0:200@100 1.0:200@300 1.0:50@500 0.0:100@550"},
		{"sp", priority(2), priority(2), "0.0:100 0.0:100 0.0:100 1.0:200 1.0:200", "0.0:100@0 0.0:100@100 1.0:200@200 0.0:100@400 1.0:200@500"},
		{"rr", quantum(1), quantum(9000), "0.0:100 0.0:100 1.0:1500 1.0:1500", "0.0:100@0 0.0:100@100 1.0:1500@200 1.0:1500@1700"},
		{"fcfs", quantum(1), quantum(9000), "1.0:100 0.0:100 1.0:100@10 0.0:100@20", "1.0:100@0 0.0:100@100 1.0:100@200 0.0:100@300"},
		{"lqf", quantum(1), quantum(1), "0.0:100 0.0:100 1.0:150 1.0:60 1.0:60", "0.0:100@0 1.0:150@100 1.0:60@250 0.0:100@310 1.0:60@410"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			k, err := sched.Parse(c.kind)
			if err != nil {
				t.Fatal(err)
			}
			d := newDriver(t, small(k, 2))
			d.apply(0, vxswitch.Add{Virtual: member("a", 2, sched.FCFS{}, c.a)}, vxswitch.Add{Virtual: member("b", 2, sched.FCFS{}, c.b)})
			if got := story(t, d, c.in); got != c.want {
				t.Errorf("%s: of %s\nleaves %s\n want  %s", c.kind, c.in, got, c.want)
			}
		})
	}
}

// TestVirtualSwitchSchedulers: the same one level down, two inputs of one switch.
func TestVirtualSwitchSchedulers(t *testing.T) {
	for _, c := range []struct{ kind, in, want string }{
		{"drr", "0.0:1000 0.0:1000 0.0:1000 0.1:500 0.1:500 0.1:500 0.1:500",
			"0.0:1000@0 0.0:1000@1000 0.1:500@2000 0.1:500@2500 0.1:500@3000 0.0:1000@3500 0.1:500@4500"},
		{"rr", "0.0:100 0.0:100 0.1:1500 0.1:1500", "0.0:100@0 0.0:100@100 0.1:1500@200 0.1:1500@1700"},
		{"fcfs", "0.1:100 0.0:100 0.1:100@10 0.0:100@20", "0.1:100@0 0.0:100@100 0.1:100@200 0.0:100@300"},
		{"lqf", "0.0:100 0.0:100 0.1:100 0.1:100", "0.0:100@0 0.1:100@100 0.0:100@200 0.1:100@300"}, // ties: not the same twice
		{"sp", "0.0:100 0.0:100 0.1:200 0.1:200", "0.0:100@0 0.0:100@100 0.1:200@200 0.1:200@400"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			k, _ := sched.Parse(c.kind)
			d := newDriver(t, small(sched.DRR{}, 2))
			v := member("a", 2, k)
			v.Buffer.Quantum = 1500
			d.apply(0, vxswitch.Add{Virtual: v})
			if got := story(t, d, c.in); got != c.want {
				t.Errorf("%s: of %s\nleaves %s\n want  %s", c.kind, c.in, got, c.want)
			}
		})
	}
}

// TestDRRShares: over any interval in which all have something to send, each
// sends its share to within one quantum plus one frame of its rounds.
func TestDRRShares(t *testing.T) {
	quanta := []vnet.Bytes{1500, 3000, 4500, 6000}
	d := newDriver(t, small(sched.DRR{}, 1))
	for i, q := range quanta {
		v := member(fmt.Sprint(i), 1, sched.FCFS{}, quantum(q))
		v.Buffer.Size = 200000
		d.apply(0, vxswitch.Add{Virtual: v})
	}
	for i := range 600 {
		d.enqueue(arrival{vs: i % 4, size: int32(64 + i*i*7919%1437)}, i)
	}
	for vs := range quanta {
		for d.s.Enqueue(0, vxswitch.ID(vs), 0, vxswitch.Packet{Size: 1300}) == vxswitch.None {
			d.offered++
		}
	}
	d.dropped = nil
	for {
		dep, ok := d.s.Depart(vxswitch.Forever - 1)
		if !ok {
			break
		}
		d.see(dep)
	}
	checkShares(t, d.all, quanta)
}

// checkShares looks at every interval between departures in which all four
// have something left: each within one quantum and one frame of its share.
func checkShares(t *testing.T, all []vxswitch.Departure, quanta []vnet.Bytes) {
	left := make([]int, len(quanta))
	for _, d := range all {
		left[d.Switch]++
	}
	busy := 0
	for ; busy < len(all) && left[all[busy].Switch] > 1; busy++ {
		left[all[busy].Switch]--
	}
	if busy < 400 {
		t.Fatalf("only %d departures while all were busy", busy)
	}
	sum := 15000.0
	for from := 0; from < busy; from += 7 {
		sent, total := make([]float64, len(quanta)), 0.0
		for to := from; to < busy; to++ {
			sent[all[to].Switch] += float64(all[to].Size)
			total += float64(all[to].Size)
			for i, q := range quanta {
				if off := sent[i] - total*float64(q)/sum; off > float64(q)+1500 || -off > float64(q)+1500 {
					t.Fatalf("departures %d to %d: switch %d sent %.0f of %.0f bytes, %.0f from its share", from, to, i, sent[i], total, off)
				}
			}
		}
	}
}

// TestCappedOutputHoldsMaximum: a capped switch alone gets its rate and no more.
func TestCappedOutputHoldsMaximum(t *testing.T) {
	for _, k := range []vxswitch.SchedulerKind{sched.DRR{}, sched.SP{}} {
		cfg := small(k, 1)
		cfg.Ports[0].Capped = true
		d := newDriver(t, cfg)
		v := member("a", 1, sched.FCFS{}, func(p *vxswitch.Port) { p.OutBurst = 3000 })
		d.apply(0, vxswitch.Add{Virtual: v})
		for i := range 66 {
			d.enqueue(arrival{size: 1500}, i)
		}
		// 1 Mbit/s: 12 ms a frame. The burst of two frames and the one that
		// takes the bucket below zero leave at the line's rate, 1.5 ms a frame.
		d.drain(600e6 - 1)
		if got := len(d.all); got != 3+49 {
			t.Errorf("%v: %d frames in 600 ms, want 52", k, got)
		}
		if at := d.all[3].Start; at != 12e6 {
			t.Errorf("%v: the fourth frame leaves at %v ns, want 12000000", k, at)
		}
		d.apply(600e6, vxswitch.SetPort{Port: 0, PhysicalPort: vxswitch.PhysicalPort{In: 8 * vnet.Mbit, Out: 8 * vnet.Mbit, Scheduler: k}})
		d.drain(vxswitch.Forever - 1)
		if at := d.all[65].Start; at != 600e6+13*1500*byteTime {
			t.Errorf("%v: without the cap the last frame leaves at %d ns", k, at)
		}
	}
}

// TestPolicedInput: what comes in above the rate and the burst is dropped.
func TestPolicedInput(t *testing.T) {
	d := newDriver(t, small(sched.DRR{}, 2))
	d.apply(0, vxswitch.Add{Virtual: member("a", 2, sched.FCFS{}, func(p *vxswitch.Port) { p.Police, p.InBurst = true, 3000 })})
	for i := range 1000 { // 8 Mbit/s, for 1.5 s, into a port of 1
		d.enqueue(arrival{at: vxswitch.Time(i) * 1500 * byteTime, out: 1, size: 1500}, i)
	}
	d.drain(vxswitch.Forever - 1)
	c := d.s.Counters(0)
	if got := c.Delivered.Packets; got != 127 || c.Dropped[vxswitch.Policed].Packets != 1000-got {
		t.Errorf("%d frames passed (%v), want 125 and the burst of 2", got, c.Dropped)
	}
}
