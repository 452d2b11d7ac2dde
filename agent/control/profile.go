package control

import (
	"errors"
	"math"
)

// Profile is what a packet costs a function, in seconds of a core: Fixed for
// each packet, and PerByte for each byte of it. Only the ratio counts once
// samples come in, so Fixed 1 alone stands for a function nobody measured.
type Profile struct {
	Fixed   float64 `json:"fixed_s"`
	PerByte float64 `json:"per_byte_s"`
}

// Cost of packets with so many bytes together.
func (p Profile) Cost(packets, bytes float64) float64 { return p.Fixed*packets + p.PerByte*bytes }

// Known says whether anything was measured.
func (p Profile) Known() bool { return p.Fixed > 0 || p.PerByte > 0 }

// Point is a measured cost of packets of a size.
type Point struct {
	Bytes float64 `json:"bytes"`
	Cost  float64 `json:"cost_s"`
}

// Fit is the profile with the least squares of relative errors over points, and
// the largest relative error that is left. Neither term is negative.
func Fit(points []Point) (p Profile, worst float64, err error) {
	var w, x, y, xx, xy float64
	for _, q := range points {
		if !(q.Bytes > 0 && q.Cost > 0) || math.IsInf(q.Bytes+q.Cost, 0) {
			return p, 0, errors.New("a point of a profile has no bytes or no cost")
		}
		k := 1 / (q.Cost * q.Cost)
		w, x, y, xx, xy = w+k, x+k*q.Bytes, y+k*q.Cost, xx+k*q.Bytes*q.Bytes, xy+k*q.Bytes*q.Cost
	}
	if len(points) == 0 {
		return p, 0, errors.New("a profile needs a point")
	}
	p.Fixed = y / w
	if d := w*xx - x*x; d > 1e-9*w*xx {
		p.PerByte = (w*xy - x*y) / d
		p.Fixed = (y - p.PerByte*x) / w
	}
	switch {
	case p.PerByte < 0:
		p = Profile{Fixed: y / w}
	case p.Fixed < 0:
		p = Profile{PerByte: xy / xx}
	}
	for _, q := range points {
		worst = max(worst, math.Abs(p.Cost(1, q.Bytes)/q.Cost-1))
	}
	return p, worst, nil
}
