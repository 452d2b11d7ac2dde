package vnet

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxDuration bounds every stated time: ten years, far inside what a
// time.Duration holds, so that sums of two cannot overflow.
const MaxDuration = 3650 * day

const day = 24 * time.Hour

// ParseDuration reads Go's form plus weeks and days: "90m", "6h", "2d", "1w2d12h".
// A number without a unit is refused rather than guessed.
func ParseDuration(s string) (time.Duration, error) {
	text := strings.TrimSpace(s)
	var total time.Duration
	found := false
	for _, unit := range []struct {
		name string
		d    time.Duration
	}{{"w", 7 * day}, {"d", day}} {
		number, rest, has := strings.Cut(text, unit.name)
		if !has {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil || !(n >= 0):
			return 0, notDuration(s)
		case n > float64(MaxDuration/unit.d):
			return 0, tooLong(s)
		}
		total, text, found = total+time.Duration(n*float64(unit.d)), rest, true
	}
	if text != "" || !found {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return 0, notDuration(s)
		}
		total += d
	}
	if total < 0 || total > MaxDuration {
		return 0, tooLong(s)
	}
	return total, nil
}

func notDuration(s string) error {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return fmt.Errorf("%q is not a duration without its unit: write one such as 10ms, 90m, 6h or 2d", s)
	}
	return fmt.Errorf("%q is not a duration such as 10ms, 90m, 6h or 2d", s)
}

func tooLong(s string) error { return fmt.Errorf("%q is longer than ten years", s) }

// FormatDuration prints d in the shortest form ParseDuration reads back.
func FormatDuration(d time.Duration) string {
	days, rest := "", d
	if d >= day {
		days, rest = strconv.FormatInt(int64(d/day), 10)+"d", d%day
		if rest == 0 {
			return days
		}
	}
	text := strings.Replace(rest.String(), "µ", "u", 1)
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return days + text
}
