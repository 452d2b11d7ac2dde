package main

import (
	"fmt"
	"strings"
	"time"

	"sublet/vnet"
)

// picture is a calendar drawn with characters: time from left to right.
type picture struct {
	window vnet.Window // with an end
	rows   []pictureRow
}

type pictureRow struct {
	name string
	cell func(vnet.Window) rune
	note string
}

// cells is the width of a picture: with a name and a note it fits 100 columns.
const cells = 60

// levels are eighths of what may be leased.
var levels = []rune("▁▂▃▄▅▆▇█")

// span draws when something lasts.
func (p *picture) span(name string, w vnet.Window, note string) {
	p.rows = append(p.rows, pictureRow{name, func(cell vnet.Window) rune {
		if w.Overlaps(cell) {
			return '='
		}
		return ' '
	}, note})
}

// load draws how full one direction of a link is.
func (p *picture) load(l vnet.Load) {
	peak := l.Peak(p.window)
	note := fmt.Sprintf("up to %s of %s", readable(peak.Booked), readable(l.Leasable))
	if strings.HasPrefix(l.Link, "device:") { // one lease's or nobody's
		note = map[bool]string{true: "taken", false: "free"}[peak.Booked > 0]
	}
	if strings.HasPrefix(l.Link, "entries:") || strings.HasPrefix(l.Link, "meters:") || strings.HasPrefix(l.Link, "queues:") {
		note = fmt.Sprintf("up to %d of %d", int64(peak.Booked), int64(l.Leasable))
	}
	if l.Down {
		note = "down"
	}
	p.rows = append(p.rows, pictureRow{l.Link + " to " + l.To, func(cell vnet.Window) rune {
		return level(l.Peak(cell).Booked, l.Leasable)
	}, note})
}

// host draws how full a host's processors and memory are; x is a host that
// one network has for itself.
func (p *picture) host(l vnet.HostLoad) {
	peak := l.Peak(p.window)
	row := func(what, note string, taken func(vnet.HostStep) int64, of int64) {
		switch {
		case l.Down:
			note = "down"
		case peak.Exclusive:
			note += "; x: exclusive"
		}
		p.rows = append(p.rows, pictureRow{string(l.Host) + " " + what, func(cell vnet.Window) rune {
			if now := l.Peak(cell); !now.Exclusive {
				return level(taken(now), of)
			}
			return 'x'
		}, note})
	}
	row("cpu", fmt.Sprintf("up to %s of %s cores", peak.CPU, l.CPU), func(s vnet.HostStep) int64 { return int64(s.CPU) }, int64(l.CPU))
	row("memory", fmt.Sprintf("up to %s of %s", peak.Memory, l.Memory), func(s vnet.HostStep) int64 { return int64(s.Memory) }, int64(l.Memory))
}

// level is a character for how much of something is taken; blank is none.
func level[amount ~int64](taken, of amount) rune {
	if taken <= 0 || of <= 0 {
		return ' '
	}
	full := float64(taken) / float64(of) * float64(len(levels))
	return levels[min(max(int(full+0.999999)-1, 0), len(levels)-1)]
}

// String draws it under a line of times.
func (p *picture) String() string {
	wide := 0
	for _, r := range p.rows {
		wide = max(wide, len(r.name))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%*s  %s\n", wide, "", p.times())
	for _, r := range p.rows {
		fmt.Fprintf(&b, "%-*s |", wide, r.name)
		for i := range cells {
			b.WriteRune(r.cell(vnet.Window{Start: p.at(i), End: p.at(i + 1)}))
		}
		b.WriteString(strings.TrimRight("| "+r.note, " ") + "\n")
	}
	return b.String()
}

// at is when a cell begins.
func (p *picture) at(i int) time.Time {
	return p.window.Start.Add(time.Duration(float64(p.window.End.Sub(p.window.Start)) * float64(i) / cells))
}

// times labels every fifteenth cell, with the date when a picture spans days.
func (p *picture) times() string {
	const every = 15
	form := "15:04"
	switch length := p.window.End.Sub(p.window.Start); {
	case length > 7*24*time.Hour:
		form = "2006-01-02"
	case length > 20*time.Hour:
		form = "Jan 2 15:04"
	case length < 10*time.Minute:
		form = "15:04:05"
	}
	var b strings.Builder
	for i := 0; i < cells; i += every {
		fmt.Fprintf(&b, "%-*s", every, p.at(i).Local().Format(form))
	}
	return strings.TrimRight(b.String(), " ")
}
