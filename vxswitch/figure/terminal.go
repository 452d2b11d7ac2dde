package figure

import (
	"fmt"
	"math"
	"strings"

	"github.com/guptarohit/asciigraph"
)

// colors of lines on a terminal, also named in the legend.
var colors = []asciigraph.AnsiColor{
	asciigraph.Blue, asciigraph.Red, asciigraph.Green, asciigraph.Orange, asciigraph.Magenta, asciigraph.Cyan, asciigraph.Yellow,
}

// Terminal draws charts with letters. Values are spaced evenly, whatever they
// are; without colors only lines of their own are drawn.
func Terminal(charts []Chart, colored bool) string {
	var b strings.Builder
	for _, c := range charts {
		fmt.Fprintf(&b, "%s: %s over %s\n", c.Title, c.Y, c.X)
		if colored {
			c.together(&b)
		} else {
			c.apart(&b)
		}
	}
	return b.String()
}

const columns, rows = 60, 12

func (c *Chart) together(b *strings.Builder) {
	var series [][]float64
	var names []string
	var used []asciigraph.AnsiColor
	for i, l := range c.Lines {
		series, names = append(series, l.Y), append(names, l.Name)
		used = append(used, colors[i%len(colors)])
	}
	if len(series) == 0 || len(series[0]) == 0 {
		return
	}
	fmt.Fprintln(b, asciigraph.PlotMany(series, options(asciigraph.SeriesColors(used...), asciigraph.SeriesLegends(names...))...))
	c.scale(b, c.Lines[0])
}

func (c *Chart) apart(b *strings.Builder) {
	for _, l := range c.Lines {
		if empty(l.Y) {
			continue
		}
		fmt.Fprintf(b, "%s\n%s\n", l.Name, asciigraph.Plot(l.Y, options()...))
		c.scale(b, l)
	}
}

func empty(values []float64) bool {
	for _, v := range values {
		if !math.IsNaN(v) {
			return false
		}
	}
	return true
}

func options(more ...asciigraph.Option) []asciigraph.Option {
	return append([]asciigraph.Option{asciigraph.Height(rows), asciigraph.Width(columns), asciigraph.Precision(4)}, more...)
}

func (c *Chart) scale(b *strings.Builder, l Line) {
	fmt.Fprintf(b, "  %s = %s\n\n", c.X, strings.Join(l.Labels, ", "))
}
