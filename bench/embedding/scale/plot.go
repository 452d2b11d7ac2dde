package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"sublet/vxswitch/figure"
)

// point of the plot: what the 99th percentile is on a substrate of a size.
type point struct {
	name  string
	nodes float64
	mean  float64 // ms
	ms    float64 // the 99th percentile
}

func pointOf(cells []string) point {
	nodes, _ := strconv.ParseFloat(cells[1], 64)
	mean, _ := strconv.ParseFloat(cells[9], 64)
	ms, _ := strconv.ParseFloat(cells[10], 64)
	return point{cells[0], nodes, mean, ms}
}

// draw writes the same as a figure, with the means.
func draw(name string, points []point) error {
	chart := figure.Chart{Title: "admission of 10 nodes", X: "nodes of the substrate", Y: "processor ms", LogX: true}
	for _, family := range []string{"fat-tree", "jellyfish"} {
		mean, p99 := figure.Line{Name: family + ", mean"}, figure.Line{Name: family + ", p99"}
		for _, p := range points {
			if strings.HasPrefix(p.name, family) {
				add(&mean, p.nodes, p.mean)
				add(&p99, p.nodes, p.ms)
			}
		}
		chart.Lines = append(chart.Lines, mean, p99)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := figure.Draw(f, "svg", []figure.Chart{chart}); err != nil {
		return err
	}
	return f.Close()
}

func add(l *figure.Line, x, y float64) {
	l.X, l.Y, l.Half = append(l.X, x), append(l.Y, y), append(l.Half, math.NaN())
	l.Labels = append(l.Labels, fmt.Sprint(x))
}

// Size of the picture, in characters.
const (
	width  = 60
	height = 16
)

// plot draws milliseconds over nodes, both logarithmic.
func plot(out io.Writer, points []point) {
	var grid [height][width]byte
	for y := range grid {
		for x := range grid[y] {
			grid[y][x] = ' '
		}
	}
	const left, right, low, high = 2, 4.5, -1, 3 // powers of ten
	for _, p := range points {
		x := int((math.Log10(p.nodes) - left) / (right - left) * (width - 1))
		y := int((math.Log10(max(p.ms, 0.1)) - low) / (high - low) * (height - 1))
		mark := byte('F')
		if strings.HasPrefix(p.name, "jelly") {
			mark = 'J'
		}
		grid[height-1-min(max(y, 0), height-1)][min(max(x, 0), width-1)] = mark
	}
	fmt.Fprintln(out, "p99 of the processor time of an admission, ms (F fat-tree, J Jellyfish)")
	for y := range grid {
		label := "      "
		if power := high - float64(y)*(high-low)/(height-1); math.Abs(power-math.Round(power)) < 0.1 {
			label = fmt.Sprintf("%6g", math.Pow(10, math.Round(power)))
		}
		fmt.Fprintf(out, "%s |%s\n", label, strings.TrimRight(string(grid[y][:]), " "))
	}
	fmt.Fprintf(out, "       +%s\n        100%s1000%s10000   nodes\n", strings.Repeat("-", width), strings.Repeat(" ", 20), strings.Repeat(" ", 20))
}
