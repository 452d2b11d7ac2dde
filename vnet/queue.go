package vnet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// QueueManager says which frames a buffer takes and which it drops. Zero
// figures are the defaults of vxswitch/sched.
type QueueManager struct {
	Kind             string // tail-drop, red, codel
	Min, Max         Bytes  // of red
	P, Weight        float64
	Target, Interval time.Duration // of codel
}

// ParseQueueManager reads a queue manager: its name, and behind a colon what
// differs from the defaults, for example "red:min=6000,max=18000,p=0.1".
func ParseQueueManager(text string) (m QueueManager, err error) {
	name, rest, _ := strings.Cut(text, ":")
	o, err := queueOptions(rest)
	if err != nil {
		return m, fmt.Errorf("queue manager %q: %w", text, err)
	}
	switch m.Kind = name; name {
	case "tail-drop":
	case "red":
		err = m.red(o)
	case "codel":
		err = m.codel(o)
	default:
		return m, fmt.Errorf("no queue manager %q: there are tail-drop, red, codel", name)
	}
	if err == nil {
		err = o.left()
	}
	if err != nil {
		return m, fmt.Errorf("queue manager %q: %w", text, err)
	}
	return m, nil
}

func (m *QueueManager) red(o options) error {
	low, err1 := o.number("min", 1, 1e12)
	high, err2 := o.number("max", 1, 1e12)
	p, err3 := o.number("p", 1e-9, 1)
	w, err4 := o.number("weight", 1e-9, 1)
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return err
	}
	if high > 0 && low >= high {
		return fmt.Errorf("min=%g, max=%g: min must be below max", low, high)
	}
	m.Min, m.Max, m.P, m.Weight = Bytes(low), Bytes(high), p, w
	return nil
}

func (m *QueueManager) codel(o options) error {
	target, err1 := o.duration("target")
	interval, err2 := o.duration("interval")
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	if target > 0 && interval > 0 && target >= interval {
		return fmt.Errorf("target=%v, interval=%v: target must be below interval", target, interval)
	}
	m.Target, m.Interval = target, interval
	return nil
}

// options are the settings "key=value,..." of a queue manager; what is read is
// taken out.
type options map[string]string

func queueOptions(text string) (options, error) {
	o := options{}
	if text == "" {
		return o, nil
	}
	for field := range strings.SplitSeq(text, ",") {
		k, v, ok := strings.Cut(field, "=")
		if _, twice := o[k]; !ok || twice || k == "" {
			return nil, fmt.Errorf("%q: write each setting once, as key=value", field)
		}
		o[k] = v
	}
	return o, nil
}

func (o options) left() error {
	var keys []string
	for k := range o {
		keys = append(keys, k)
	}
	if slices.Sort(keys); len(keys) > 0 {
		return fmt.Errorf("no setting %q", keys[0])
	}
	return nil
}

func (o options) number(key string, low, high float64) (float64, error) {
	text, ok := o[key]
	if !ok {
		return 0, nil
	}
	delete(o, key)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || f < low || f > high {
		return 0, fmt.Errorf("%s=%s: a number from %g to %g is possible", key, text, low, high)
	}
	return f, nil
}

func (o options) duration(key string) (time.Duration, error) {
	text, ok := o[key]
	if !ok {
		return 0, nil
	}
	delete(o, key)
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Microsecond || d > time.Hour {
		return 0, fmt.Errorf("%s=%s: a duration from 1us to 1h is possible", key, text)
	}
	return d, nil
}
