package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"sublet/vnet/file"
)

// Quantities as they are written.
type (
	rate     = file.Rate
	size     = file.Size
	span     = file.Span
	fraction float64 // not negative: 0.5, 50%, 1/32
	number   float64 // any, or a duration, which counts in ns
	whole    uint64
)

func (w *whole) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return fmt.Errorf("%q is not a whole number such as 7", text)
	}
	*w = whole(v)
	return nil
}

func (f *fraction) UnmarshalText(text []byte) error {
	v, err := parseFraction(strings.TrimSpace(string(text)))
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a number such as 0.5, 50%% or 1/32", text)
	}
	*f = fraction(v)
	return nil
}

func parseFraction(text string) (float64, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		return v / 100, err
	}
	over, under, found := strings.Cut(text, "/")
	v, err := strconv.ParseFloat(strings.TrimSpace(over), 64)
	if !found || err != nil {
		return v, err
	}
	divisor, err := strconv.ParseFloat(strings.TrimSpace(under), 64)
	return v / divisor, err
}

func (n *number) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	if d, err := time.ParseDuration(s); err == nil {
		*n = number(d)
		return nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a number such as 0.99 or a duration such as 0.1ms", text)
	}
	*n = number(v)
	return nil
}
