package scenario

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
	"sublet/vxswitch/sim"
)

const plainScenario = `scenario: s
duration: 10ms
switch: {ports: 4, rate: 1Gbit, crosspoint: 64KB}
virtual_switches:
  - {name: a, count: 3}
  - {name: b, ports: [1, 3], rate: 100Mbit, buffer: 3KB}
traffic:
  - {virtual_switches: {a: 2, b: 1/2}, load: 50%}
`

func noFiles(name string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("open %s: no such file", name)
}

// What is left out takes the documented defaults.
func TestDefaults(t *testing.T) {
	e, err := Parse("f", []byte(plainScenario), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	s := e.Points[0].Scenario
	if s.Seed != 1 || s.Runs != 1 || !s.Drain || s.Warmup != 0 || s.Switch.Scheduler.String() != "drr" || s.Switch.MaxFrame != 1514 {
		t.Errorf("scenario %+v", s)
	}
	var names []string
	for _, v := range s.VirtualSwitches {
		names = append(names, v.Name)
	}
	if want := []string{"a-1", "a-2", "a-3", "b"}; !reflect.DeepEqual(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
	if a := s.VirtualSwitches[0]; a.Rate != 250*vnet.Mbit || a.Buffer != 16000 || len(a.Ports) != 4 || a.InputQuantum != 1500 {
		t.Errorf("a is %+v", a)
	}
	traffic := s.Traffic[0]
	if traffic.Rate != 500*vnet.Mbit || traffic.Sizes != sim.Bimodal || !reflect.DeepEqual(traffic.Weights, []float64{2, 2, 2, 0.5}) {
		t.Errorf("traffic %+v", traffic)
	}
}

// Axes combine, the last fastest; fields of one change together.
func TestVary(t *testing.T) {
	e, err := Parse("f", []byte(plainScenario+`vary:
  - switch.scheduler: [drr, sp]
  - virtual_switches[1].buffer: [3KB, 6KB, 9KB]
    traffic[0].load: [0.1, 0.2, 30%]
`), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range e.Points {
		got = append(got, fmt.Sprintf("%v %v %v", p.Switch.Scheduler, p.VirtualSwitches[3].Buffer, p.Traffic[0].Rate))
	}
	want := []string{"drr 3KB 100Mbit", "drr 6KB 200Mbit", "drr 9KB 300Mbit", "sp 3KB 100Mbit", "sp 6KB 200Mbit", "sp 9KB 300Mbit"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("points %q, want %q", got, want)
	}
}

// A load of nothing is one: nothing comes, and no figure is made up.
func TestNoTraffic(t *testing.T) {
	for _, load := range []string{"load: 0", "rate: 0bit, arrivals: mmpp", "load: 0%, arrivals: constant"} {
		e, err := Parse("f", []byte(strings.Replace(plainScenario, "load: 50%", load, 1)), noFiles)
		if err != nil {
			t.Fatal(err)
		}
		o, err := sim.Run(&e.Points[0].Scenario, 1, sim.Watch{})
		if err != nil || o.Events != 0 || o.Total[sim.OfferedPackets] != 0 || !math.IsNaN(o.Total[sim.LossPackets]) {
			t.Errorf("%s: %v, %v", load, o, err)
		}
	}
}

// Every wrong text is refused in one line that says where and what instead.
func TestWrongScenarios(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"rate":             {"1Gbit", "1000", `f:3:26: rate: "1000" is not a rate`},
		"ports":            {"ports: 4", "ports: 0", "f:3:17: switch.ports: is 0"},
		"no ports":         {"ports: 4, ", "", "switch has no ports"},
		"port":             {"[1, 3]", "[1, 5]", "names port 5: the switch has 1 to 4"},
		"port twice":       {"[1, 3]", "[1, 1]", "names port 1 twice"},
		"same name":        {"name: b", "name: a-1", `"a-1" is taken`},
		"memory":           {"3KB", "60KB", "memory of crosspoint 1-1"},
		"capacity":         {"100Mbit", "300Mbit", "capacity of port 1"},
		"unknown switch":   {"b: 1/2", "c: 1", "names one that is not there"},
		"no load":          {"load: 50%", "start: 1ms", "states no load"},
		"no runs":          {"duration: 10ms", "duration: 10ms\nruns: 0", "runs: is 0: choose 1"},
		"no size":          {"load: 50%", "load: 1, size: 0B", "go from 0 to 0"},
		"too fast":         {"load: 50%", "load: 1e200", "has a rate of 1e+209 bit/s"},
		"too slow":         {"load: 50%", "load: 1e-10", "choose 0, or 1 bit/s"},
		"two loads":        {"load: 50%", "load: 50%, rate: 1Mbit", "stands beside load"},
		"no process":       {"load: 50%", "load: 1, arrivals: pareto", "choose one of [mmpp poisson constant]"},
		"peak":             {"load: 50%", "load: 1, arrivals: mmpp, peak: 0.5", "the mean, 1, must lie between"},
		"sizes":            {"load: 50%", "load: 1, sizes: {small: [64, 60], large: [100, 200]}", "go from 64 to 60"},
		"lambda":           {"load: 50%", "arrivals: mmpp, arrival_rates: [1, 2]", "are pairs"},
		"trace":            {"load: 50%", "trace: none.jsonl", "no such file"},
		"manager":          {"buffer: 3KB", "buffer: 3KB, manager: \"red:mix=3\"", `no setting "mix"`},
		"warm-up":          {"duration: 10ms", "duration: 10ms\nwarmup: 10ms", "leave something to measure"},
		"too large":        {"ports: 4, rate: 1Gbit, crosspoint: 64KB}\nvirtual_switches:\n  - {name: a, count: 3}", "ports: 256, rate: 1Gbit, crosspoint: 64KB}\nvirtual_switches:\n  - {name: a, count: 200}", "crosspoints together"},
		"vary nothing":     {"traffic:", "vary: [{switch.colour: [red]}]\ntraffic:", `there is no field "colour"`},
		"vary beyond":      {"traffic:", "vary: [{\"virtual_switches[7].count\": [1]}]\ntraffic:", "there is no virtual_switches[7]"},
		"vary unevenly":    {"traffic:", "vary: [{switch.rate: [1Gbit], switch.crosspoint: [1KB, 2KB]}]\ntraffic:", "give each as many"},
		"vary too much":    {"traffic:", "vary: [{seed: [" + strings.Repeat("1, ", 2_001) + "]}]\ntraffic:", "more than 2000 points"},
		"vary wrongly":     {"traffic:", "vary: [{switch.rate: [fast]}]\ntraffic:", `"fast" is not a rate`},
		"expect nothing":   {"traffic:", "expect: [{says: x, measure: delay_max_ns}]\ntraffic:", "allows anything"},
		"expect elsewhere": {"traffic:", "expect: [{says: x, measure: delay_max_ns, above: 1, where: {seed: [\"1\"]}}]\ntraffic:", "which does not vary"},
		"plot":             {"traffic:", "plots: [{x: seed, measure: delay_max_ns}]\ntraffic:", "does not vary"},
		"split":            {"traffic:", "split: {virtual_switch: b, input: 2, paths: [{output: 1, buffer: 1KB}]}\ntraffic:", `uses port 2, which "b" does not have`},
		"split of nobody":  {"traffic:", "split: {virtual_switch: c, input: 2, paths: [{output: 1, buffer: 1KB}]}\ntraffic:", `"c" is not there`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(plainScenario, c.from, c.to, 1)
			if text == plainScenario {
				t.Fatalf("%s changes nothing", name)
			}
			_, err := Parse("f", []byte(text), noFiles)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: got %v, want %q", name, err, c.want)
			}
		})
	}
}

// No text makes the reader fail otherwise than by an error.
func FuzzParse(f *testing.F) {
	f.Add(plainScenario)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse("f", []byte(text), noFiles)
		if err == nil && len(e.Points) == 0 {
			t.Error("it has no points")
		}
	})
}

// result is what a point came to: throughput of everybody, and of a.
func result(total, a float64) *sim.Result {
	r := &sim.Result{VirtualSwitches: []sim.Switch{{Name: "a"}}}
	r.Total.Mean[sim.ThroughputPackets], r.VirtualSwitches[0].Mean[sim.ThroughputPackets] = total, a
	return r
}

// Expectations hold for what they speak of, and only that.
func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		expect string
		met    bool
		points int
	}{
		"all above":        {"measure: throughput_packets, above: 0.8", true, 4},
		"one below":        {"measure: throughput_packets, at_least: 0.92", false, 4},
		"where":            {"measure: throughput_packets, above: 0.92, where: {switch.scheduler: [sp]}", true, 2},
		"of one":           {"measure: throughput_packets, of: a, at_most: 0.5", true, 4},
		"difference":       {"measure: throughput_packets, where: {switch.scheduler: [sp]}, minus: {switch.scheduler: drr}, above: 0.0399, below: 0.0501", true, 2},
		"relative":         {"measure: throughput_packets, minus: {switch.scheduler: drr}, relative: true, at_most: 0.045", false, 2},
		"buffer":           {"measure: throughput_packets, above: 0.92, buffer_from: 6KB", true, 2},
		"nowhere":          {"measure: throughput_packets, above: 0, buffer_from: 60KB", false, 0},
		"nobody":           {"measure: throughput_packets, above: 0, of: z", false, 0},
		"bound is outside": {"measure: throughput_packets, of: a, below: 0.5", false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(plainScenario, "traffic:", "vary: [{switch.scheduler: [drr, sp]}, {\"virtual_switches[0].buffer\": [3KB, 6KB], \"virtual_switches[1].buffer\": [3KB, 6KB]}]\nexpect: [{says: x, "+c.expect+"}]\ntraffic:", 1)
			e, err := Parse("f", []byte(text), noFiles)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			v := e.Judge([]*sim.Result{result(0.90, 0.5), result(0.925, 0.5), result(0.95, 0.5), result(0.965, 0.5)})[0]
			if v.Met != c.met || v.Points != c.points || v.Met == (v.Why != "") {
				t.Errorf("%s: %+v", name, v)
			}
		})
	}
}

func TestQuantities(t *testing.T) {
	for text, want := range map[string]float64{"0.5": 0.5, "50%": 0.5, "1/32": 1. / 32, "7": 7, "1e3": 1000, "-1": math.NaN(), "1/0": math.NaN(), "x": math.NaN(), "NaN": math.NaN(), "Inf": math.NaN()} {
		t.Run(text, func(t *testing.T) {
			var f fraction
			err := f.UnmarshalText([]byte(text))
			if (err != nil) != math.IsNaN(want) || err == nil && float64(f) != want {
				t.Errorf("%s is %v, %v", text, f, err)
			}
		})
	}
	for text, want := range map[string]float64{"-0.6ms": -6e5, "0.99": 0.99, "0": 0, "2s": float64(2 * time.Second)} {
		t.Run(text, func(t *testing.T) {
			var n number
			if err := n.UnmarshalText([]byte(text)); err != nil || float64(n) != want {
				t.Errorf("%s is %v, %v", text, n, err)
			}
		})
	}
}
