package iplbd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"

	"sublet/plan"
)

// maxSpreads bounds a file.
const maxSpreads = 1 << 16

// ParseLists reads static relay lists, YAML or JSON:
//
//	spreads:
//	- prefix: 10.2.0.0/16
//	  mode: flow
//	  paths:
//	  - {relays: [10.255.0.1], turn: 10.255.2.1}
func ParseLists(name string, text []byte) ([]plan.Spread, error) {
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	again, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("%s: keys are words: %w", name, err)
	}
	var file struct {
		Spreads []plan.Spread `json:"spreads"`
	}
	d := json.NewDecoder(bytes.NewReader(again))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return file.Spreads, checkAll(name, file.Spreads)
}

func checkAll(name string, spreads []plan.Spread) error {
	if len(spreads) > maxSpreads {
		return fmt.Errorf("%s: %d spreads: at most %d", name, len(spreads), maxSpreads)
	}
	seen := make(map[string]bool)
	for i, s := range spreads {
		if err := s.Check(); err != nil {
			return fmt.Errorf("%s: spreads[%d]: %w", name, i, err)
		}
		if err := RuleOf(s).Check(); err != nil {
			return fmt.Errorf("%s: spreads[%d]: %w", name, i, err)
		}
		for _, p := range prefixesOf(s) {
			if seen[p.String()] {
				return fmt.Errorf("%s: spreads[%d]: prefix %s twice", name, i, p)
			}
			seen[p.String()] = true
		}
	}
	return nil
}

// Merge adds spreads to those that come first: prefixes that these have are
// taken out of the others.
func Merge(first, others []plan.Spread) []plan.Spread {
	all := slices.Clone(first)
	taken := make(map[netip.Prefix]bool)
	for _, s := range first {
		for _, p := range prefixesOf(s) {
			taken[p] = true
		}
	}
	for _, s := range others {
		rest := slices.DeleteFunc(prefixesOf(s), func(p netip.Prefix) bool { return taken[p] })
		if len(rest) > 0 {
			s.Prefix, s.Also = rest[0], rest[1:]
			all = append(all, s)
		}
	}
	return all
}
