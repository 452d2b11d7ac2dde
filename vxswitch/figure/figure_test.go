package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"sublet/vxswitch/scenario"
	"sublet/vxswitch/sim"
)

const varied = `scenario: s
duration: 10ms
runs: 2
switch: {ports: 2, rate: 1Gbit, crosspoint: 64KB}
virtual_switches: [{name: a}, {name: b}]
traffic: [{load: 0.5}]
vary:
  - switch.scheduler: [drr, sp]
  - switch.crosspoint: [16KB, 32KB, 64KB]
`

// experiment has six points, whose throughput is their index.
func experiment(t *testing.T, text string) (*scenario.Experiment, []*sim.Result) {
	t.Helper()
	e, err := scenario.Parse("f", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	var results []*sim.Result
	for i := range e.Points {
		r := &sim.Result{VirtualSwitches: []sim.Switch{{Name: "a"}, {Name: "b"}}}
		r.Total.Mean[sim.ThroughputPackets] = float64(i)
		r.Total.Half = &sim.Figures{sim.ThroughputPackets: 0.5}
		r.VirtualSwitches[0].Mean[sim.DelayMean] = math.NaN()
		r.VirtualSwitches[1].Mean[sim.DelayMean] = float64(10 * i)
		results = append(results, r)
	}
	return e, results
}

// A line for each combination of the other axes, over the values as numbers.
// An experiment of one point is drawn over its virtual switches.
func TestChartsOfOnePoint(t *testing.T) {
	text := varied[:strings.Index(varied, "vary:")]
	charts := Charts(experiment(t, text))
	if len(charts) != 2 || len(charts[0].Lines) != 1 || !slices.Equal(charts[0].Lines[0].Labels, []string{"a", "b"}) {
		t.Errorf("charts %+v", charts)
	}
}

func TestCharts(t *testing.T) {
	charts := Charts(experiment(t, varied))
	if len(charts) != 1 || len(charts[0].Lines) != 2 {
		t.Fatalf("charts %+v", charts)
	}
	l := charts[0].Lines[1]
	if l.Name != "total sp" || len(l.X) != 3 || l.X[2] != 64000 || l.Y[0] != 3 || l.Half[0] != 0.5 || l.Labels[1] != "32KB" {
		t.Errorf("line %+v", l)
	}
	asked := Charts(experiment(t, varied+"plots: [{title: T, x: switch.scheduler, measure: delay_mean_ns, of: [a, b, z], log_x: true}]\n"))
	if c := asked[0]; c.Title != "T" || c.X != "switch.scheduler" || len(c.Lines) != 6 || c.Lines[1].Name != "b 16KB" || c.Lines[1].X[1] != 1 {
		t.Errorf("chart %+v", c)
	}
}

// Every format can be read by others, and what is not defined is left out.
func TestDraw(t *testing.T) {
	charts := Charts(experiment(t, varied+"plots: [{x: switch.crosspoint, measure: delay_mean_ns, of: [a, b], log_x: true}, {x: switch.crosspoint, measure: throughput_packets}]\n"))
	var svg, pixels bytes.Buffer
	if err := Draw(&svg, "svg", charts); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(svg.Bytes()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(svg.String(), "b sp") || !strings.Contains(svg.String(), "64KB") || strings.Contains(svg.String(), "NaN") {
		t.Error("the figure lacks its legend or ticks, or has what is no number")
	}
	if err := Draw(&pixels, "png", charts); err != nil {
		t.Fatal(err)
	}
	if image, err := png.Decode(&pixels); err != nil || image.Bounds().Dy() < image.Bounds().Dx() {
		t.Errorf("two figures are not below one another: %v", err)
	}
	if err := Draw(io.Discard, "gif", charts); err == nil {
		t.Error("drew a gif")
	}
}

// Terminals get letters, with and without colors.
func TestTerminal(t *testing.T) {
	charts := Charts(experiment(t, varied))
	for _, colored := range []bool{true, false} {
		text := Terminal(charts, colored)
		if !strings.Contains(text, "total drr") || !strings.Contains(text, "switch.crosspoint = 16KB, 32KB, 64KB") || strings.Contains(text, "\x1b") != colored {
			t.Errorf("colored %v: %q", colored, text)
		}
	}
}
