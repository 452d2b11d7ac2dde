package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// point of the plot: what the 99th percentile is on a substrate of a size.
type point struct {
	name  string
	nodes float64
	ms    float64
}

func pointOf(cells []string) point {
	nodes, _ := strconv.ParseFloat(cells[1], 64)
	ms, _ := strconv.ParseFloat(cells[10], 64)
	return point{cells[0], nodes, ms}
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
