package harness

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Table is printed in Markdown.
type Table struct {
	Head []string
	Rows [][]string
}

// Add appends a row; floats are printed with up to four digits.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case float64:
			row[i] = fmt.Sprintf("%.4g", c)
		default:
			row[i] = fmt.Sprint(c)
		}
	}
	t.Rows = append(t.Rows, row)
}

// Print writes the table, columns aligned.
func (t Table) Print(w io.Writer) {
	width := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, c := range row {
			width[i] = max(width[i], len(c))
		}
	}
	line := func(row []string, pad string) {
		for i, c := range row {
			fmt.Fprintf(w, "|%s%s%s", pad, c+strings.Repeat(pad, width[i]-len(c)), pad)
		}
		fmt.Fprintln(w, "|")
	}
	line(t.Head, " ")
	line(make([]string, len(t.Head)), "-")
	for _, row := range t.Rows {
		line(row, " ")
	}
	fmt.Fprintln(w)
}

// Samples are repeated measurements of one quantity.
type Samples []float64

// Median is the middle sample, or the mean of the middle two; NaN of none.
func (s Samples) Median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Over divides by samples of the same rounds, round by round: what drifts between
// rounds cancels.
func (s Samples) Over(base Samples) Samples {
	ratio := make(Samples, len(s))
	for i := range s {
		ratio[i] = s[i] / base[i]
	}
	return ratio
}

// Format gives the median and, in brackets, the smallest and largest sample.
func (s Samples) Format(verb string) string {
	if len(s) == 0 || math.IsNaN(s[0]) {
		return "-"
	}
	if len(s) == 1 {
		return fmt.Sprintf(verb, s[0])
	}
	return fmt.Sprintf(verb+" ("+verb+" to "+verb+")", s.Median(), slices.Min(s), slices.Max(s))
}

// Machine describes where and when a measurement was made, and how busy the
// machine was then.
func Machine() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	load, _ := os.ReadFile("/proc/loadavg")
	return fmt.Sprintf("%d processors (%s), Linux %s, %s, load average %s",
		runtime.NumCPU(), processor(), unix.ByteSliceToString(u.Release[:]), time.Now().UTC().Format("2006-01-02 15:04 MST"),
		strings.Join(strings.Fields(string(load))[:min(1, len(load))], ""))
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
