package iplbd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/datapath/iplb"
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
		return nil, fmt.Errorf("read relay lists %s: %w", name, err)
	}
	again, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("%s: keys are words: %w", name, err)
	}
	var file struct {
		Spreads []json.RawMessage `json:"spreads"`
	}
	if err := decode(again, &file); err != nil {
		return nil, fmt.Errorf("read relay lists %s: %w", name, err)
	}
	spreads := make([]plan.Spread, len(file.Spreads))
	for i, text := range file.Spreads {
		if err := decode(text, &spreads[i]); err != nil {
			return nil, fmt.Errorf("%s: spreads[%d]: %w", name, i, err)
		}
	}
	return spreads, checkAll(name, spreads)
}

// decode reads JSON whose every word must be known; what is wrong is said in the
// words of the file.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		if kind.Field == "" {
			kind.Field = "it"
		}
		return fmt.Errorf("%s is of kind %s: write %s", kind.Field, kind.Value, kindName(kind.Type))
	}
	if field, unknown := strings.CutPrefix(fmt.Sprint(err), "json: unknown field "); unknown {
		return fmt.Errorf("unknown field %s: a list of spreads has prefix, also, mode, gap, by and paths, a path relays, weight, turn and back", field)
	}
	return err
}

// kindName is how a value of a type is written in a file.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list, in brackets or each item behind a dash"
	case reflect.Struct:
		return "words with values, such as prefix: 10.2.0.0/16"
	case reflect.Uint32:
		return "a whole number from 0 on"
	}
	return "text"
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
		if s.VNI != 0 {
			return fmt.Errorf("%s: spreads[%d]: vni %d: only the plan of an agent has paths of tunnels: state a prefix", name, i, s.VNI)
		}
		if err := iplb.Check(s); err != nil {
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
