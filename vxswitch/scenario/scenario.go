// Package scenario reads experiments with a switch: the YAML of
// docs/schema/scenario.schema.json into scenarios of vxswitch/sim, one for
// each combination of the values that vary, and judges what came out of them.
//
// Every error is a *vnet.InputError: one line, FILE:LINE:COLUMN, what is wrong
// and what to do instead.
package scenario

//go:generate go test -run TestSchemas -update .

import (
	"fmt"
	"io"
	"slices"

	"sublet/vnet"
	"sublet/vnet/file"
	"sublet/vxswitch/sim"
)

// Experiment is a scenario file.
type Experiment struct {
	Name   string
	About  string
	Axes   []Axis
	Points []Point
	Expect []Expectation
	Plots  []Plot
}

// Axis is fields that change together.
type Axis struct {
	Fields []string // sorted
	Length int
}

// Point is one scenario and the values that make it differ from the others.
type Point struct {
	Set map[string]string
	sim.Scenario
}

// Plot is one figure: a measure over a field that varies, one line for each
// switch and combination of the other fields.
type Plot struct {
	Title, X string
	Measure  sim.Measure
	Of       []string
	LogX     bool
}

// MaxPoints bounds the combinations of an experiment.
const MaxPoints = 2_000

// Open opens a file that a scenario names, relative to its own folder.
type Open func(name string) (io.ReadCloser, error)

// Parse reads an experiment. The name is used in errors only.
func Parse(name string, text []byte, open Open) (*Experiment, error) {
	var f form
	e := &Experiment{}
	err := file.Decode(name, text, &f, func() error {
		if err := e.describe(&f); err != nil {
			return err
		}
		return e.combine(name, text, &f, open)
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// describe reads all but the points.
func (e *Experiment) describe(f *form) error {
	e.Name, e.About = f.Scenario, f.About
	if err := e.readAxes(f.Vary); err != nil {
		return err
	}
	for i := range f.Expect {
		x, err := e.expectation(&f.Expect[i])
		if err != nil {
			return within(err, "expect[%d]", i)
		}
		e.Expect = append(e.Expect, x)
	}
	for i := range f.Plots {
		p, err := e.plot(&f.Plots[i])
		if err != nil {
			return within(err, "plots[%d]", i)
		}
		e.Plots = append(e.Plots, p)
	}
	return nil
}

// combine makes the points; each is read anew from the text with its values.
func (e *Experiment) combine(name string, text []byte, f *form, open Open) error {
	for i := range e.size() {
		set := e.values(f.Vary, i)
		var point form
		err := file.Decode(name, text, &point, func() error { return nil })
		if err != nil {
			return err
		}
		for _, path := range sorted(set) {
			if err := assign(&point, path, set[path]); err != nil {
				return fail("vary", "%s: %v", path, err)
			}
		}
		s, err := point.scenario(open)
		if err != nil {
			return err
		}
		if err := s.Check(); err != nil {
			return fail("virtual_switches", "%v", err)
		}
		e.Points = append(e.Points, Point{set, s})
	}
	return nil
}

func (e *Experiment) size() int {
	n := 1
	for _, a := range e.Axes {
		n *= a.Length
	}
	return n
}

// values of point i; the last axis changes fastest.
func (e *Experiment) values(vary []map[string][]string, i int) map[string]string {
	set := make(map[string]string)
	for axis := len(e.Axes) - 1; axis >= 0; axis-- {
		a := e.Axes[axis]
		for _, path := range a.Fields {
			set[path] = vary[axis][path][i%a.Length]
		}
		i /= a.Length
	}
	return set
}

func (e *Experiment) readAxes(vary []map[string][]string) error {
	seen := make(map[string]bool)
	for i, fields := range vary {
		a := Axis{Fields: sorted(fields)}
		for _, path := range a.Fields {
			if seen[path] {
				return fail(fmt.Sprintf("vary[%d]", i), "%s varies twice: name it once", path)
			}
			seen[path] = true
			if n := len(fields[path]); n == 0 || a.Length > 0 && n != a.Length {
				return fail(fmt.Sprintf("vary[%d]", i), "%s has %d values, %s has %d: fields of one axis change together, give each as many", path, n, a.Fields[0], a.Length)
			}
			a.Length = len(fields[path])
		}
		if len(a.Fields) == 0 {
			return fail(fmt.Sprintf("vary[%d]", i), "names no field: write one, such as switch.crosspoint: [3KB, 6KB]")
		}
		e.Axes = append(e.Axes, a)
		if e.size() > MaxPoints {
			return fail("vary", "makes more than %d points: vary less", MaxPoints)
		}
	}
	return nil
}

func (e *Experiment) varies(path string) bool {
	return slices.ContainsFunc(e.Axes, func(a Axis) bool { return slices.Contains(a.Fields, path) })
}

func (e *Experiment) plot(f *plot) (Plot, error) {
	m, ok := sim.MeasureNamed(f.Measure)
	if !ok {
		return Plot{}, unknownMeasure(f.Measure)
	}
	if !e.varies(f.X) {
		return Plot{}, fail("x", "%q does not vary: name a field of vary", f.X)
	}
	of := f.Of
	if len(of) == 0 {
		of = []string{"total"}
	}
	return Plot{Title: f.Title, X: f.X, Measure: m, Of: of, LogX: f.LogX}, nil
}

func unknownMeasure(name string) error {
	var names []string
	for _, m := range sim.Measures {
		names = append(names, m.Name)
	}
	if near := vnet.Nearest(name, names); near != "" {
		return fail("measure", "%q is no figure: did you mean %q?", name, near)
	}
	return fail("measure", "%q is no figure: take one of those of docs/vxswitch.md, such as throughput_packets", name)
}

// fail is an error at a field.
func fail(path, format string, args ...any) error {
	return &vnet.FieldError{Path: path, Problem: fmt.Sprintf(format, args...)}
}

// within puts the path of a part before that of an error in it.
func within(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	path := fmt.Sprintf(format, args...)
	field, ok := err.(*vnet.FieldError)
	if !ok {
		return fail(path, "%v", err)
	}
	if field.Path != "" {
		path += "." + field.Path
	}
	return &vnet.FieldError{Path: path, Problem: field.Problem}
}
