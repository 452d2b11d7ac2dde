package vnet

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Share is a part of all frames, in millionths: 1 % is 10,000.
type Share int64

// WholeShare is all frames.
const WholeShare Share = 1_000_000

// ParseShare reads a percentage such as "1%" or "0.01%", to a millionth.
func ParseShare(s string) (Share, error) {
	text, found := strings.CutSuffix(strings.TrimSpace(s), "%")
	percent, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if !found || err != nil || !(percent >= 0 && percent <= 100) {
		return 0, fmt.Errorf("%q is not a percentage from 0%% to 100%%, such as 0.1%%", s)
	}
	share := Share(math.Round(percent / 100 * float64(WholeShare)))
	if share == 0 && percent > 0 {
		return 0, fmt.Errorf("%q is less than one frame in a million (0.0001%%): state 0%% or more", s)
	}
	return share, nil
}

// Of is the share of a number.
func (s Share) Of(n uint64) uint64 { return uint64(float64(n) * float64(s) / float64(WholeShare)) }

func (s Share) String() string {
	return strconv.FormatFloat(float64(s)*100/float64(WholeShare), 'f', -1, 64) + "%"
}

// Impairment makes one direction of a link worse on purpose. What it does to a
// frame depends on no other frame: it is lost, or else delayed, and perhaps
// duplicated or corrupted. Frames whose delays differ overtake each other.
type Impairment struct {
	Delay        time.Duration `json:"delay_ns,omitempty"`  // mean, one way, on top of the path's latency
	Jitter       time.Duration `json:"jitter_ns,omitempty"` // standard deviation of the delay; of Uniform: half its range
	Distribution Distribution  `json:"distribution,omitempty"`
	Loss         Share         `json:"loss_ppm,omitempty"`
	Corrupt      Share         `json:"corrupt_ppm,omitempty"`   // one bit of the frame is flipped
	Duplicate    Share         `json:"duplicate_ppm,omitempty"` // the frame arrives twice
	Reorder      Share         `json:"reorder_ppm,omitempty"`   // the frame is not delayed and overtakes the others
}

func (i Impairment) String() string {
	var words []string
	for _, part := range []struct {
		name, value string
		stated      bool
	}{
		{"delay", FormatDuration(i.Delay), i.Delay != 0}, {"jitter", FormatDuration(i.Jitter), i.Jitter != 0},
		{"distribution", string(i.Distribution), i.Distribution != ""}, {"loss", i.Loss.String(), i.Loss != 0},
		{"corrupt", i.Corrupt.String(), i.Corrupt != 0}, {"duplicate", i.Duplicate.String(), i.Duplicate != 0},
		{"reorder", i.Reorder.String(), i.Reorder != 0},
	} {
		if part.stated {
			words = append(words, part.name+"="+part.value)
		}
	}
	return strings.Join(words, " ")
}

// Distribution of a delay around its mean.
type Distribution string

// Distributions, as tc-netem(8) has them. "" is Uniform.
const (
	Uniform      Distribution = "uniform"
	Normal       Distribution = "normal"
	Pareto       Distribution = "pareto"
	ParetoNormal Distribution = "paretonormal"
)

// Distributions are all of them.
var Distributions = []Distribution{Uniform, Normal, Pareto, ParetoNormal}

// MaxImpairmentDelay bounds delay and jitter.
const MaxImpairmentDelay = 10 * time.Second

// check checks one direction.
func (i Impairment) check(path string) error {
	switch {
	case i.Delay < 0 || i.Delay > MaxImpairmentDelay:
		return fieldf(path+".delay", "%s is not between 0 and %s: state a delay such as 20ms", i.Delay, FormatDuration(MaxImpairmentDelay))
	case i.Jitter < 0 || i.Jitter > i.Delay:
		return fieldf(path+".jitter", "%s is not between 0 and the delay (%s): state a larger delay, or less jitter", i.Jitter, FormatDuration(i.Delay))
	case i.Distribution != "" && !slices.Contains(Distributions, i.Distribution):
		return fieldf(path+".distribution", "%q is not a distribution: use uniform, normal, pareto or paretonormal", string(i.Distribution))
	case i.Distribution != "" && i.Jitter == 0:
		return fieldf(path+".distribution", "says how the delay varies: state jitter too, or leave it out")
	case i.Reorder != 0 && i.Delay == 0:
		return fieldf(path+".reorder", "lets frames overtake delayed ones: state delay too, or leave it out")
	}
	for _, s := range []struct {
		name  string
		share Share
	}{{"loss", i.Loss}, {"corrupt", i.Corrupt}, {"duplicate", i.Duplicate}, {"reorder", i.Reorder}} {
		if s.share < 0 || s.share > WholeShare {
			return fieldf(path+"."+s.name, "%s is not between 0%% and 100%%: state a percentage such as 1%%", s.share)
		}
	}
	return nil
}

// checkImpairment checks both directions of what is written at path.
func checkImpairment(path string, both [2]Impairment) error {
	for d, i := range both {
		where := path
		if Direction(d) == Reverse && both[Reverse] != both[Forward] {
			where = path + ".reverse"
		}
		if err := i.check(where); err != nil {
			return err
		}
	}
	return nil
}

// CheckImpairment checks both directions of what is stated at path.
func CheckImpairment(path string, both [2]Impairment) error { return checkImpairment(path, both) }

// ParseImpairment reads words such as delay=20ms, jitter=2ms, loss=1%.
func ParseImpairment(words []string) (i Impairment, err error) {
	seen := make(map[string]bool)
	for _, word := range words {
		name, value, found := strings.Cut(word, "=")
		if !found {
			return i, fmt.Errorf("%q is no NAME=VALUE: state words such as delay=20ms loss=1%%, or off", word)
		}
		if seen[name] {
			return i, fmt.Errorf("%s is stated twice: state it once", name)
		}
		seen[name] = true
		if err := i.set(name, value); err != nil {
			return i, fmt.Errorf("%s: %w", name, err)
		}
	}
	return i, i.check("impair")
}

var impairments = []string{"delay", "jitter", "distribution", "loss", "corrupt", "duplicate", "reorder"}

// set sets what is called name.
func (i *Impairment) set(name, value string) (err error) {
	switch name {
	case "delay":
		i.Delay, err = ParseDuration(value)
	case "jitter":
		i.Jitter, err = ParseDuration(value)
	case "distribution":
		i.Distribution = Distribution(value)
	case "loss":
		i.Loss, err = ParseShare(value)
	case "corrupt":
		i.Corrupt, err = ParseShare(value)
	case "duplicate":
		i.Duplicate, err = ParseShare(value)
	case "reorder":
		i.Reorder, err = ParseShare(value)
	default:
		if near := Nearest(name, impairments); near != "" {
			return fmt.Errorf("no such impairment: did you mean %q?", near)
		}
		err = errors.New("no such impairment: use " + strings.Join(impairments, ", "))
	}
	return err
}
