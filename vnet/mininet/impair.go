package mininet

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// impaired are the words that make a link worse on purpose.
var impaired = []string{"delay", "jitter", "loss"}

// impair reads what TCLink hands to netem, for one direction: each word from the
// first place that has it. Without a distribution, netem's is uniform.
func (r *reader) impair(where string, places ...*yaml.Node) (made vnet.Impairment, err error) {
	for _, w := range impaired {
		text, at := "", &yaml.Node{}
		for _, p := range places {
			if text = word(p, w); text != "" {
				at = value(p, w)
				break
			}
		}
		if text == "" || text == "0" {
			continue
		}
		switch w {
		case "delay":
			made.Delay, err = tcTime(text)
		case "jitter":
			made.Jitter, err = tcTime(text)
		case "loss":
			made.Loss, err = vnet.ParseShare(strings.TrimSuffix(text, "%") + "%")
		}
		if err != nil {
			return made, r.fail(at, "%s: %s: %v", where, w, err)
		}
	}
	return made, nil
}

// tcTime reads a time as tc(8) does: microseconds where no unit is stated.
func tcTime(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	unit, known := map[string]string{"": "us", "us": "us", "usec": "us", "usecs": "us", "ms": "ms", "msec": "ms", "msecs": "ms", "s": "s", "sec": "s", "secs": "s"}[text[len(number):]]
	if !known {
		unit = text[len(number):]
	}
	return vnet.ParseDuration(number + unit)
}
