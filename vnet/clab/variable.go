package clab

import (
	"regexp"
	"slices"
)

// variable is one of a topology, with what holds where it is not set.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?[-=]([^}\n]*))?\}`)

// fillIn puts values in place of variables: those that are set, else those that the
// text itself states. Variables of the caller's own are no business of a topology
// that somebody else wrote. What has no value stays, and is returned.
func fillIn(text []byte, set map[string]string) (filled []byte, unset []string) {
	filled = variable.ReplaceAllFunc(text, func(found []byte) []byte {
		part := variable.FindSubmatch(found)
		if value, is := set[string(part[1])]; is {
			return []byte(value)
		}
		if part[2] != nil {
			return part[2]
		}
		if name := string(part[1]); !slices.Contains(unset, name) && len(unset) < 20 {
			unset = append(unset, name)
		}
		return found
	})
	return filled, unset
}
