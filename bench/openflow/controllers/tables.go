package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/procfs"

	"sublet/bench/harness"
)

// waiting is how many packets of a switch wait for answers when buffers are to be full.
const waiting = "64"

// published are the controllers of Li's thesis, tables 4.4 and 4.5: one switch, one
// thread; responses in a millisecond one at a time, and as many as they answer.
var published = []struct {
	name          string
	latency, most float64
}{
	{"Pox", 24, 105}, {"Ryu", 27, 106}, {"Nox", 56, 687}, {"Floodlight", 45, 670}, {"Beacon", 61, 2302}, {"OpenDayLight", 9, 8}, {"ONOS", 38, 49},
}

// oneSwitch is K2 and K3: one switch, one thread.
func (b *bench) oneSwitch() error {
	f := figures{}
	err := b.each(1, func(p *peer, a answer) {
		f.add(p.name, "latency", a.PerSecond/1000)
		f.add(p.name, "p50", a.Latency.P50)
		f.add(p.name, "p99", a.Latency.P99)
	})
	if err == nil {
		err = b.each(1, func(p *peer, a answer) {
			f.add(p.name, "most", a.PerSecond/1000)
			f.add(p.name, "cpu", a.PerCPU/1000)
		}, "--mode", "throughput", "--outstanding", waiting)
	}
	t := harness.Table{Head: []string{"controller", "one at a time, in a ms", "p50 us", "p99 us", waiting + " waiting, in a ms", "in a ms of its processor"}}
	for _, p := range b.peers {
		t.Add(p.name, f.of(p.name, "latency", "%.1f"), f.of(p.name, "p50", "%.0f"), f.of(p.name, "p99", "%.0f"), f.of(p.name, "most", "%.0f"), f.of(p.name, "cpu", "%.0f"))
	}
	for _, r := range published {
		t.Add(r.name+" (published)", r.latency, "-", "-", r.most, "-")
	}
	t.Print(os.Stdout)
	return err
}

// switches is K4: 1 to 256 of them.
func (b *bench) switches() error {
	t := harness.Table{Head: []string{"switches", "controller", "one each, in a ms", "p50 us", "p99 us", "Jain", waiting + " each, in a ms", "in a ms of its processor"}}
	for _, n := range []int{1, 8, 16, 64, 128, 256} {
		f := figures{}
		err := b.each(n, func(p *peer, a answer) {
			f.add(p.name, "one", a.PerSecond/1000)
			f.add(p.name, "p50", a.Latency.P50)
			f.add(p.name, "p99", a.Latency.P99)
			f.add(p.name, "jain", a.Jain)
		})
		if err == nil {
			err = b.each(n, func(p *peer, a answer) {
				f.add(p.name, "most", a.PerSecond/1000)
				f.add(p.name, "cpu", a.PerCPU/1000)
			}, "--mode", "throughput", "--outstanding", waiting)
		}
		if err != nil {
			return err
		}
		for _, p := range b.peers {
			if f.has(p.name, "one") {
				t.Add(n, p.name, f.of(p.name, "one", "%.1f"), f.of(p.name, "p50", "%.0f"), f.of(p.name, "p99", "%.0f"), f.of(p.name, "jain", "%.4f"),
					f.of(p.name, "most", "%.0f"), f.of(p.name, "cpu", "%.0f"))
			}
		}
	}
	t.Print(os.Stdout)
	return nil
}

// versions has Sublet's answer in OpenFlow 1.0, as Cbench asks, and in 1.3.
func (b *bench) versions() error {
	f := figures{}
	t := harness.Table{Head: []string{"switches", "1.3: in a ms", "of its processor", "1.0: in a ms", "of its processor"}}
	for _, n := range []string{"1", "16", "64"} {
		for range *rounds {
			for _, version := range []string{"1.3", "1.0"} {
				a, err := b.load(b.peers[0], "--switches", n, "--mode", "throughput", "--outstanding", waiting, "--version", version)
				if err != nil {
					return err
				}
				f.add(n, version, a.PerSecond/1000)
				f.add(n, version+"cpu", a.PerCPU/1000)
			}
		}
		t.Add(n, f.of(n, "1.3", "%.0f"), f.of(n, "1.3cpu", "%.0f"), f.of(n, "1.0", "%.0f"), f.of(n, "1.0cpu", "%.0f"))
	}
	t.Print(os.Stdout)
	return nil
}

// threads is K5: Sublet's on one processor, and on both, of which the generator has one.
func (b *bench) threads() error {
	f := figures{}
	both, err := b.begin("both", "0,1", []string{"GOMAXPROCS=2"}, b.exe, "controller", "--listen", "127.0.0.1:{port}", "--app", "learning")
	if err != nil {
		return err
	}
	defer both.stop()
	for range *rounds {
		for _, n := range []string{"16", "64"} {
			for _, p := range []*peer{b.peers[0], both} {
				a, err := b.load(p, "--switches", n, "--mode", "throughput", "--outstanding", waiting)
				if err != nil {
					return err
				}
				f.add(p.name, n, a.PerSecond/1000)
				f.add(p.name, n+"cpu", a.PerCPU/1000)
			}
		}
	}
	t := harness.Table{Head: []string{"threads", "16 switches, in a ms", "of its processors", "64 switches, in a ms", "of its processors"}}
	for i, name := range []string{b.peers[0].name, both.name} {
		t.Add(i+1, f.of(name, "16", "%.0f"), f.of(name, "16cpu", "%.0f"), f.of(name, "64", "%.0f"), f.of(name, "64cpu", "%.0f"))
	}
	t.Print(os.Stdout)
	return nil
}

// fullBuffers is K7: how long an answer takes when one packet waits, and many.
func (b *bench) fullBuffers() error {
	f := figures{}
	err := b.each(1, func(p *peer, a answer) { f.add(p.name, "empty", a.Latency.P50/1000) })
	if err == nil {
		err = b.each(1, func(p *peer, a answer) { f.add(p.name, "full", a.Latency.P50/1000) }, "--mode", "throughput", "--outstanding", "1024")
	}
	t := harness.Table{Head: []string{"controller", "empty, ms", "1,024 waiting, ms", "ratio"}}
	for _, p := range b.peers {
		full, empty := f[p.name+" full"], f[p.name+" empty"]
		t.Add(p.name, empty.Format("%.3f"), full.Format("%.2f"), full.Over(empty).Format("%.0f"))
	}
	for _, r := range [][]any{{"Pox", 0.0417, 5.26, 126}, {"Ryu", 0.0385, 2.63, 68}, {"Nox", 0.0179, 149.0, 8358}, {"Floodlight", 0.022, 76.9, 3461}, {"Beacon", 0.0163, 50.0, 3050}} {
		t.Add(append([]any{fmt.Sprint(r[0], " (published)")}, r[1:]...)...)
	}
	t.Print(os.Stdout)
	return err
}

// partOfTheLoad is K8: latency at parts of what a controller answers at most, as packets
// are due and not as answers come.
func (b *bench) partOfTheLoad() error {
	f := figures{}
	parts := []float64{0.2, 0.4, 0.6, 0.8, 0.9}
	for range *rounds {
		for _, p := range b.peers {
			n := strconv.Itoa(servesAtOnce)
			most, err := b.load(p, "--switches", n, "--mode", "throughput", "--outstanding", waiting)
			if err != nil {
				return err
			}
			f.add(p.name, "most", most.PerSecond/1000)
			for _, part := range parts {
				a, err := b.load(p, "--switches", n, "--mode", "throughput", "--outstanding", "256", "--rate", fmt.Sprintf("%.0f", part*most.PerSecond))
				if err != nil {
					return err
				}
				f.add(p.name, fmt.Sprint(part), a.Latency.P50)
				f.add(p.name, fmt.Sprint("99", part), a.Latency.P99)
			}
		}
	}
	t := harness.Table{Head: []string{fmt.Sprintf("controller, %d switches", servesAtOnce), "at most, in a ms"}}
	for _, part := range parts {
		t.Head = append(t.Head, fmt.Sprintf("%.0f %%: p50 us", 100*part), "p99 us")
	}
	for _, p := range b.peers {
		row := []any{p.name, f.of(p.name, "most", "%.0f")}
		for _, part := range parts {
			row = append(row, f.of(p.name, fmt.Sprint(part), "%.0f"), f.of(p.name, fmt.Sprint("99", part), "%.0f"))
		}
		t.Add(row...)
	}
	t.Print(os.Stdout)
	return nil
}

// fairness is K9: how equally switches are served, and one that comes later.
func (b *bench) fairness() error {
	t := harness.Table{Head: []string{"switches", "controller", "Jain", "least served over most", "a newcomer: greeted, ms", "answered, ms", "its part of the others' mean"}}
	for _, n := range []int{7, 128, 255} {
		f := figures{}
		err := b.each(n, func(p *peer, a answer) {
			f.add(p.name, "jain", a.Jain)
			f.add(p.name, "least", float64(a.Least)/float64(max(a.Most, 1)))
			if a.Newcomer != nil {
				f.add(p.name, "greeted", a.Newcomer.GreetedMS)
				f.add(p.name, "first", a.Newcomer.FirstMS)
				f.add(p.name, "share", a.Newcomer.Share)
			}
		}, "--newcomer")
		if err != nil {
			return err
		}
		for _, p := range b.peers {
			if f.has(p.name, "jain") {
				t.Add(n, p.name, f.of(p.name, "jain", "%.4f"), f.of(p.name, "least", "%.3f"), f.of(p.name, "greeted", "%.1f"), f.of(p.name, "first", "%.1f"), f.of(p.name, "share", "%.2f"))
			}
		}
	}
	t.Print(os.Stdout)
	return nil
}

// longRun is K11: packets of new addresses without end, and the controller's memory.
func (b *bench) longRun() error {
	t := harness.Table{Head: []string{"controller", "packets answered", "in a ms, first tenth", "last tenth", "memory before, MiB", "after a tenth", "after all"}}
	for _, p := range b.peers {
		before, err := memory(p.pid())
		if err != nil {
			return err
		}
		var answered uint64
		var rates, mebibytes harness.Samples
		for answered < uint64(*packets) && len(rates) < 200 {
			a, err := b.load(p, "--switches", strconv.Itoa(servesAtOnce), "--mode", "throughput", "--outstanding", waiting, "--hosts", "0", "--duration", (2 * time.Second).String())
			if err != nil {
				return err
			}
			now, err := memory(p.pid())
			if err != nil {
				return err
			}
			answered += a.Responses
			rates, mebibytes = append(rates, a.PerSecond/1000), append(mebibytes, now)
			if len(rates) == 10 && answered < uint64(*packets)/10 {
				break // it would take minutes
			}
		}
		tenth := (len(rates) + 9) / 10
		t.Add(p.name, strconv.FormatUint(answered, 10), rates[:tenth].Format("%.1f"), rates[len(rates)-tenth:].Format("%.1f"),
			before, mebibytes[tenth-1], mebibytes[len(mebibytes)-1])
	}
	t.Print(os.Stdout)
	return nil
}

// memory of a process in MiB, resident.
func memory(pid int) (float64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	return float64(stat.ResidentMemory()) / (1 << 20), err
}

// processor time of a process.
func processor(pid int) (time.Duration, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

func (f figures) add(controller, what string, v float64) {
	f[controller+" "+what] = append(f[controller+" "+what], v)
}

func (f figures) has(controller, what string) bool { return len(f[controller+" "+what]) > 0 }

func (f figures) of(controller, what, verb string) string {
	return f[controller+" "+what].Format(verb)
}
