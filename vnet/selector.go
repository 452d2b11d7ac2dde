package vnet

import (
	"fmt"
	"strings"
)

// Selector chooses among what has labels: all its requirements must hold. The
// empty one chooses everything.
type Selector []requirement

// requirement is one on the label of a key.
type requirement struct {
	key, value string
	any        bool // whatever its value
	not        bool // it must not hold
}

// ParseSelector reads requirements that are separated by commas: KEY=VALUE,
// KEY!=VALUE (also of what lacks the key), KEY (has it) and !KEY (lacks it), as
// equality-based requirements of Kubernetes are written.
func ParseSelector(text string) (Selector, error) {
	if text == "" {
		return nil, nil
	}
	var s Selector
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		var r requirement
		before, after, equal := strings.Cut(part, "=")
		if key, not := strings.CutSuffix(before, "!"); equal {
			r = requirement{key: key, value: strings.TrimPrefix(after, "="), not: not}
		} else {
			key, not := strings.CutPrefix(part, "!")
			r = requirement{key: key, any: true, not: not}
		}
		r.key, r.value = strings.TrimSpace(r.key), strings.TrimSpace(r.value)
		if err := CheckLabel(r.key, r.value); err != nil || strings.ContainsAny(r.key, "!=") {
			return nil, fmt.Errorf("%q chooses nothing: write KEY=VALUE, KEY!=VALUE, KEY or !KEY, separated by commas", part)
		}
		s = append(s, r)
	}
	return s, nil
}

// Chooses says whether labels meet all requirements.
func (s Selector) Chooses(labels map[string]string) bool {
	for _, r := range s {
		value, has := labels[r.key]
		if (has && (r.any || value == r.value)) == r.not {
			return false
		}
	}
	return true
}
