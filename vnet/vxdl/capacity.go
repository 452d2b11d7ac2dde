package vxdl

import (
	"math"
	"strconv"
	"strings"

	"sublet/vnet"
)

// unit words, lower case, as factors of our unit of the quantity.
type units map[string]float64

var (
	rateUnits    = units{"bps": 1, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9}
	latencyUnits = units{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
	byteUnits    = units{"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
	coreUnits    = units{"": float64(vnet.Core)}
	clockUnits   = units{"hz": 1, "mhz": 1e6, "ghz": 1e9}
)

func (u units) words() string {
	for _, words := range []struct{ probe, list string }{
		{"bps", "bps, Kbps, Mbps or Gbps"}, {"ms", "ns, us, ms or s"}, {"kib", "B, KB, MB, GB, TB, KiB, MiB, GiB or TiB"}, {"ghz", "Hz, MHz or GHz"},
	} {
		if _, ok := u[words.probe]; ok {
			return words.list
		}
	}
	return "no unit"
}

// amount is one value of a capacity, in our unit. A bound that is not stated
// is negative.
type amount struct {
	element *element
	low     float64
	high    float64
	simple  bool
	choice  bool // a set or scale of more than one value
}

// capacity is a value from the start, if stated, and values from events on.
type capacity struct {
	element *element
	start   *amount
	stages  map[int]*amount
}

// capacity reads a capacity whose unit is one of u.
func (r *reader) capacity(e *element, u units) (capacity, error) {
	c := capacity{element: e, stages: make(map[int]*amount)}
	f, err := r.fields(e, "capacity")
	if err != nil {
		return c, err
	}
	factor, err := r.factor(e, f, u)
	if err != nil {
		return c, err
	}
	if len(e.children) == 0 && e.value() != "" && !r.strict {
		r.note(e, "a plain number is an older form of VXDL, read as simple")
		n, err := r.number(e, factor)
		c.start = &amount{element: e, low: n, high: n, simple: true}
		return c, err
	}
	return c, r.values(&c, factor)
}

// factor finds the unit's factor; values without a unit are not guessed.
func (r *reader) factor(e *element, f fields, u units) (float64, error) {
	word := f.value("unit")
	factor, ok := u[strings.ToLower(word)]
	switch {
	case ok:
		return factor, nil
	case f.one("unit") != nil:
		return 0, r.fail(f.one("unit"), "%q is not a unit of %s: use %s", short(word), e.name, u.words())
	case r.wordless(f):
		return 0, nil
	}
	return 0, r.fail(e, "has no unit: add one of %s", u.words())
}

// wordless says that a capacity states no number: its intervals are empty.
func (r *reader) wordless(f fields) bool {
	for _, interval := range f["interval"] {
		if len(interval.children) > 0 {
			return false
		}
	}
	return len(f["interval"]) > 0 && len(f["simple"])+len(f["set"])+len(f["scale"]) == 0
}

// values reads events and values in the order they are written.
func (r *reader) values(c *capacity, factor float64) error {
	stage, waiting := -1, c.element // waiting for a value: the capacity or an event
	var last *amount
	for _, e := range c.element.children {
		if e.space != r.space() {
			continue
		}
		switch e.name {
		case "event":
			if waiting != nil && waiting != c.element {
				return r.fail(waiting, "%q has no value behind it: add one", short(waiting.value()))
			}
			index, err := r.eventIn(c, e)
			if err != nil {
				return err
			}
			stage, waiting, last = index, e, nil
		case "set", "interval", "simple", "scale":
			made, err := r.next(c, last, e, factor)
			if err != nil {
				return err
			}
			last, waiting = made, nil
			if stage < 0 {
				c.start = made
			} else {
				c.stages[stage] = made
			}
		}
	}
	if waiting != nil {
		return r.fail(waiting, "states no value: add simple, interval, set or scale")
	}
	return nil
}

// eventIn returns the stage an event in a capacity speaks of.
func (r *reader) eventIn(c *capacity, e *element) (int, error) {
	index, ok := r.events[e.value()]
	if !ok {
		return 0, r.fail(e, "%q is no event of the timeline: add it there", short(e.value()))
	}
	if _, twice := c.stages[index]; twice {
		return 0, r.fail(e, "%q stands twice: keep one", short(e.value()))
	}
	return index, nil
}

// next reads a value; a further one of a set joins the last.
func (r *reader) next(c *capacity, last *amount, e *element, factor float64) (*amount, error) {
	switch {
	case last == nil:
		return r.amount(e, factor)
	case e.name == "set" && last.element.name == "set":
		return last, r.widen(last, e, factor)
	}
	return nil, r.fail(e, "is a second value of %s, first on line %d: keep one, or put an event between", c.element.name, last.element.line)
}

// amount reads one value.
func (r *reader) amount(e *element, factor float64) (*amount, error) {
	a := &amount{element: e, low: -1, high: -1, simple: e.name == "simple", choice: e.name == "scale"}
	if e.name == "simple" || e.name == "set" {
		n, err := r.number(e, factor)
		a.low, a.high = n, n
		return a, err
	}
	f, err := r.fields(e, e.name)
	if err != nil {
		return nil, err
	}
	if e.name == "scale" && (f.one("min") == nil || f.one("max") == nil || f.one("step") == nil) {
		return nil, r.fail(e, "needs min, max and step")
	}
	if a.low, err = r.bound(f.one("min"), factor); err != nil {
		return nil, err
	}
	if a.high, err = r.bound(f.one("max"), factor); err != nil {
		return nil, err
	}
	if a.high >= 0 && a.low > a.high {
		return nil, r.fail(e, "min is above max: lower min or raise max")
	}
	return a, nil
}

// bound reads one end of an interval, negative when it is not stated.
func (r *reader) bound(e *element, factor float64) (float64, error) {
	if e == nil {
		return -1, nil
	}
	return r.number(e, factor)
}

// widen takes one more value of a set.
func (r *reader) widen(a *amount, e *element, factor float64) error {
	n, err := r.number(e, factor)
	if n < a.low || n > a.high {
		a.choice = true
	}
	a.low, a.high = min(a.low, n), max(a.high, n)
	return err
}

// number reads an xs:double times the unit's factor. The bound, 2^53, is the
// largest below which every whole number is exact.
func (r *reader) number(e *element, factor float64) (float64, error) {
	n, err := strconv.ParseFloat(e.value(), 64)
	if err != nil || !(n >= 0) {
		return 0, r.fail(e, "%q is not a number of at least 0", short(e.value()))
	}
	if n *= factor; n > 1<<53 {
		return 0, r.fail(e, "%q is too large", short(e.value()))
	}
	return math.Round(n), nil
}
