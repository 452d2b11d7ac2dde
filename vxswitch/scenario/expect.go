package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sublet/vnet"
	"sublet/vxswitch/sim"
)

// Expectation is a statement about the outcome, at every point it speaks of.
type Expectation struct {
	Says, Source string
	Of           string // total, split, each or a virtual switch
	Measure      sim.Measure
	Where        map[string][]string // values that points must have; nil: all
	Buffer       vnet.Bytes          // least virtual crosspoint buffer
	Minus        map[string]string   // take the difference to the point with these values
	Relative     bool                // divide the difference by that point's value
	Bounds       []Bound
}

// Bound is one side of what is allowed.
type Bound struct {
	Words string
	Value float64
	holds func(a, b float64) bool
}

// Verdict is whether an expectation holds.
type Verdict struct {
	Says    string `json:"says"`
	Source  string `json:"source,omitempty"`
	Met     bool   `json:"met"`
	Least   Value  `json:"least"`
	Most    Value  `json:"most"`
	Points  int    `json:"points"` // how many values were looked at
	Allowed string `json:"allowed"`
	Why     string `json:"why,omitempty"` // the first value out of bounds
}

// Value is a number, null if it is not one.
type Value float64

// MarshalJSON writes null for what is not defined.
func (v Value) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(v), 'g', -1, 64), nil
}

func (e *Experiment) expectation(f *expectation) (Expectation, error) {
	x := Expectation{Says: f.Says, Source: f.Source, Of: cmp.Or(f.Of, "total"), Where: f.Where, Minus: f.Minus, Relative: f.Divide}
	m, ok := sim.MeasureNamed(f.Measure)
	if !ok {
		return x, unknownMeasure(f.Measure)
	}
	x.Measure = m
	if f.Buffer != nil {
		x.Buffer = vnet.Bytes(*f.Buffer)
	}
	for _, path := range append(sorted(f.Where), sorted(f.Minus)...) {
		if !e.varies(path) {
			return x, fail("", "speaks of %q, which does not vary: name a field of vary", path)
		}
	}
	if f.Divide && f.Minus == nil {
		return x, fail("relative", "is for differences: add minus, or leave it out")
	}
	x.Bounds = f.bounds()
	if len(x.Bounds) == 0 {
		return x, fail("", "allows anything: add at_least, at_most, above or below")
	}
	return x, nil
}

func (f *expectation) bounds() []Bound {
	var list []Bound
	add := func(words string, n *number, holds func(a, b float64) bool) {
		if n != nil {
			list = append(list, Bound{words, float64(*n), holds})
		}
	}
	add("at least", f.AtLeast, func(a, b float64) bool { return a >= b })
	add("above", f.Above, func(a, b float64) bool { return a > b })
	add("at most", f.AtMost, func(a, b float64) bool { return a <= b })
	add("below", f.Below, func(a, b float64) bool { return a < b })
	return list
}

// Judge says of every expectation whether it holds for the results of the
// points. Means over runs are compared. An expectation that no point meets the
// conditions of does not hold.
func (e *Experiment) Judge(results []*sim.Result) []Verdict {
	var list []Verdict
	for _, x := range e.Expect {
		list = append(list, e.judge(x, results))
	}
	return list
}

func (e *Experiment) judge(x Expectation, results []*sim.Result) Verdict {
	v := Verdict{Says: x.Says, Source: x.Source, Met: true, Least: Value(math.NaN()), Most: Value(math.NaN()), Allowed: x.allowed()}
	for i := range e.Points {
		p := &e.Points[i]
		if !x.speaksOf(p) {
			continue
		}
		other := e.other(x, p, results)
		if x.Minus != nil && other == nil {
			continue
		}
		for _, s := range values(x, results[i], other) {
			v.see(x, s.value, fmt.Sprintf("%s of %s%s", x.Measure, s.name, describe(p.Set)))
		}
	}
	if v.Points == 0 {
		v.Met, v.Why = false, "no point is like that"
	}
	return v
}

// see takes one value.
func (v *Verdict) see(x Expectation, value float64, what string) {
	v.Points++
	if !(value >= float64(v.Least)) {
		v.Least = Value(value)
	}
	if !(value <= float64(v.Most)) {
		v.Most = Value(value)
	}
	for _, b := range x.Bounds {
		if !b.holds(value, b.Value) && v.Met {
			v.Met, v.Why = false, fmt.Sprintf("%s is %.6g", what, value)
		}
	}
}

func (x *Expectation) allowed() string {
	var words []string
	for _, b := range x.Bounds {
		words = append(words, fmt.Sprintf("%s %g", b.Words, b.Value))
	}
	return strings.Join(words, ", ")
}

// speaksOf says whether a point meets the conditions.
func (x *Expectation) speaksOf(p *Point) bool {
	for path, allowed := range x.Where {
		if !slices.Contains(allowed, p.Set[path]) {
			return false
		}
	}
	for path, value := range x.Minus {
		if p.Set[path] == value {
			return false // it is the other
		}
	}
	return !slices.ContainsFunc(p.VirtualSwitches, func(v sim.VirtualSwitch) bool { return v.Buffer < x.Buffer })
}

// other is the result of the point a difference is taken to.
func (e *Experiment) other(x Expectation, p *Point, results []*sim.Result) *sim.Result {
	for i := range e.Points {
		if x.Minus != nil && e.Points[i].like(p.Set, x.Minus) {
			return results[i]
		}
	}
	return nil
}

// like says whether a point has the values of set, but those of instead.
func (p *Point) like(set, instead map[string]string) bool {
	for path, value := range set {
		if other, ok := instead[path]; ok {
			value = other
		}
		if p.Set[path] != value {
			return false
		}
	}
	return true
}

type named struct {
	name  string
	value float64
}

// values that an expectation looks at in a result.
func values(x Expectation, r, other *sim.Result) []named {
	list := pick(r, x.Of, x.Measure)
	if other == nil {
		return list
	}
	for i, o := range pick(other, x.Of, x.Measure) {
		if i >= len(list) {
			break
		}
		list[i].value -= o.value
		if x.Relative {
			list[i].value /= o.value
		}
	}
	return list
}

// pick reads a measure: of total, split, one virtual switch or each.
func pick(r *sim.Result, of string, m sim.Measure) []named {
	switch {
	case of == "total":
		return []named{{of, r.Total.Mean[m]}}
	case of == "split" && r.Split != nil:
		return []named{{of, r.Split.EndToEnd.Mean[m]}}
	}
	var list []named
	for _, v := range r.VirtualSwitches {
		if of == "each" || of == v.Name {
			list = append(list, named{v.Name, v.Mean[m]})
		}
	}
	return list
}

// describe a point by its values.
func describe(set map[string]string) string {
	var words []string
	for _, path := range sorted(set) {
		words = append(words, path+" "+set[path])
	}
	if len(words) == 0 {
		return ""
	}
	return " at " + strings.Join(words, ", ")
}
