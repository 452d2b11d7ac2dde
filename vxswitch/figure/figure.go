// Package figure draws the results of experiments with a switch: as SVG, as
// PNG, and with letters for terminals.
package figure

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"sublet/vnet"
	"sublet/vxswitch/scenario"
	"sublet/vxswitch/sim"
)

// Chart is one figure: lines over a field that varies.
type Chart struct {
	Title, X, Y string
	LogX        bool
	Lines       []Line
}

// Line is one curve; Half are half-widths of confidence intervals, NaN where
// there is none.
type Line struct {
	Name       string
	X, Y, Half []float64
	Labels     []string // X as it is written
}

// Charts makes the figures an experiment asks for; without any, the
// throughput of everybody over its last axis. An experiment of one point is
// drawn over its virtual switches.
func Charts(e *scenario.Experiment, results []*sim.Result) []Chart {
	plots := e.Plots
	if len(plots) == 0 && len(e.Axes) > 0 {
		last := e.Axes[len(e.Axes)-1]
		plots = []scenario.Plot{{X: last.Fields[0], Measure: sim.ThroughputPackets, Of: []string{"total"}}}
	}
	var charts []Chart
	if len(plots) == 0 && len(results) > 0 {
		for _, m := range []sim.Measure{sim.ThroughputPackets, sim.DelayMean} {
			charts = append(charts, bySwitch(e, results[0], m))
		}
	}
	for _, p := range plots {
		charts = append(charts, chart(e, p, results))
	}
	return charts
}

// bySwitch draws one figure of every virtual switch beside each other.
func bySwitch(e *scenario.Experiment, r *sim.Result, m sim.Measure) Chart {
	l := Line{Name: "virtual switches"}
	for i, v := range r.VirtualSwitches {
		l.add(v.Name, i, v.Estimate, m)
	}
	return Chart{Title: e.Name, X: "virtual switch", Y: m.String(), Lines: []Line{l}}
}

func chart(e *scenario.Experiment, p scenario.Plot, results []*sim.Result) Chart {
	c := Chart{Title: cmp.Or(p.Title, e.Name), X: p.X, Y: p.Measure.String(), LogX: p.LogX}
	lines := make(map[string]*Line)
	var order []string
	for i, r := range results {
		set := e.Points[i].Set
		for _, of := range p.Of {
			s, ok := find(r, of)
			if !ok {
				continue
			}
			name := strings.TrimSpace(of + others(e, p.X, set))
			l := lines[name]
			if l == nil {
				l = &Line{Name: name}
				lines[name], order = l, append(order, name)
			}
			l.add(set[p.X], len(l.X), s, p.Measure)
		}
	}
	for _, name := range order {
		c.Lines = append(c.Lines, *lines[name])
	}
	return c
}

func (l *Line) add(label string, index int, s sim.Estimate, m sim.Measure) {
	half := math.NaN()
	if s.Half != nil {
		half = s.Half[m]
	}
	l.X, l.Y, l.Half = append(l.X, quantity(label, index)), append(l.Y, s.Mean[m]), append(l.Half, half)
	l.Labels = append(l.Labels, label)
}

// others names the values of the other axes; of fields that change together
// the first.
func others(e *scenario.Experiment, x string, set map[string]string) string {
	var words []string
	for _, a := range e.Axes {
		if !slices.Contains(a.Fields, x) {
			words = append(words, set[a.Fields[0]])
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " " + strings.Join(words, ", ")
}

func find(r *sim.Result, of string) (sim.Estimate, bool) {
	switch of {
	case "total":
		return r.Total, true
	case "split":
		if r.Split == nil {
			return sim.Estimate{}, false
		}
		return r.Split.EndToEnd, true
	}
	for _, v := range r.VirtualSwitches {
		if v.Name == of {
			return v.Estimate, true
		}
	}
	return sim.Estimate{}, false
}

// quantity reads a value as a number, else takes its place among the others.
func quantity(text string, index int) float64 {
	var f float64
	var rest string
	if n, _ := fmt.Sscanf(text, "%g%s", &f, &rest); n == 1 && rest == "" {
		return f
	}
	if b, err := vnet.ParseBytes(text); err == nil {
		return float64(b)
	}
	if d, err := vnet.ParseDuration(text); err == nil {
		return float64(d)
	}
	if r, err := vnet.ParseRate(text); err == nil {
		return float64(r)
	}
	return float64(index)
}

// Formats of files.
var Formats = []string{"svg", "png"}

const (
	width  = 16 * vg.Centimeter
	height = 10 * vg.Centimeter
)

// Draw writes charts below one another, as svg or png.
func Draw(w io.Writer, format string, charts []Chart) error {
	tall := height * vg.Length(len(charts))
	var canvas vg.CanvasWriterTo
	switch format {
	case "svg":
		canvas = vgsvg.New(width, tall)
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.New(width, tall)}
	default:
		return fmt.Errorf("%q is no format of figures: choose one of %v", format, slices.Sorted(slices.Values(Formats)))
	}
	all := draw.New(canvas)
	for i, c := range charts {
		p, err := c.plot()
		if err != nil {
			return err
		}
		top := tall - height*vg.Length(i)
		p.Draw(draw.Crop(all, 0, 0, top-height, top-tall))
	}
	_, err := canvas.WriteTo(w)
	return err
}

func (c *Chart) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	p.Legend.Top, p.Legend.XOffs = c.falls(), vg.Points(-6)
	p.Legend.TextStyle.Font.Size = vg.Points(7)
	if c.LogX {
		p.X.Scale = plot.LogScale{}
	}
	c.ticks(p)
	p.Add(plotter.NewGrid())
	for i, l := range c.Lines {
		points := l.points(c.LogX)
		if len(points.XYs) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i/7)
		dots.Color, dots.Shape = plotutil.Color(i), plotutil.Shape(i)
		bars, err := plotter.NewYErrorBars(points)
		if err != nil {
			return nil, err
		}
		bars.Color = plotutil.Color(i)
		p.Add(line, dots, bars)
		p.Legend.Add(l.Name, line, dots)
	}
	return p, nil
}

// falls says whether the lines end below the middle, so that there is room for
// the legend above their ends.
func (c *Chart) falls() bool {
	low, high, ends, n := math.Inf(1), math.Inf(-1), 0.0, 0.0
	for _, l := range c.Lines {
		for i, y := range l.Y {
			if math.IsNaN(y) {
				continue
			}
			low, high = min(low, y), max(high, y)
			if i == len(l.Y)-1 {
				ends, n = ends+y, n+1
			}
		}
	}
	return n > 0 && ends/n < (low+high)/2
}

// ticks are at the values that vary, as they are written, unless too many.
func (c *Chart) ticks(p *plot.Plot) {
	labels := make(map[float64]string)
	for _, l := range c.Lines {
		for i, x := range l.X {
			labels[x] = l.Labels[i]
		}
	}
	if len(labels) > 12 {
		return
	}
	var ticks plot.ConstantTicks
	for _, x := range slices.Sorted(maps.Keys(labels)) {
		ticks = append(ticks, plot.Tick{Value: x, Label: labels[x]})
	}
	p.X.Tick.Marker = ticks
}

// points of a line that can be drawn.
type points struct {
	plotter.XYs
	plotter.YErrors
}

func (l *Line) points(logX bool) points {
	var p points
	for i, y := range l.Y {
		if math.IsNaN(y) || logX && l.X[i] <= 0 {
			continue
		}
		half := l.Half[i]
		if math.IsNaN(half) {
			half = 0
		}
		p.XYs = append(p.XYs, plotter.XY{X: l.X[i], Y: y})
		p.YErrors = append(p.YErrors, struct{ Low, High float64 }{half, half})
	}
	return p
}
