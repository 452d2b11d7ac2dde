package sched

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/vnet"
	"sublet/vxswitch"
)

// options are the settings "key=value,..." of a queue manager; what is read is
// taken out.
type options map[string]string

func settings(text string) (options, error) {
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

func parseRED(o options) (vxswitch.ManagerKind, error) {
	low, err1 := o.number("min", 1, 1e12)
	high, err2 := o.number("max", 1, 1e12)
	p, err3 := o.number("p", 1e-9, 1)
	w, err4 := o.number("weight", 1e-9, 1)
	if err := first(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	if high > 0 && low >= high {
		return nil, fmt.Errorf("min=%g, max=%g: min must be below max", low, high)
	}
	return RED{vnet.Bytes(low), vnet.Bytes(high), p, w}, nil
}

func parseCoDel(o options) (vxswitch.ManagerKind, error) {
	target, err1 := o.duration("target")
	interval, err2 := o.duration("interval")
	if err := first(err1, err2); err != nil {
		return nil, err
	}
	if target > 0 && interval > 0 && target >= interval {
		return nil, fmt.Errorf("target=%v, interval=%v: target must be below interval", target, interval)
	}
	return CoDel{target, interval}, nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
