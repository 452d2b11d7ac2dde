package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sublet/plan"
)

// RepairText says in words what a repairing step found: "link a-b: rate_bps was
// 7000, is 8000 again".
func RepairText(s plan.Step) string {
	subject := subjectOf(s.Item)
	if link, ok := s.Item.(plan.VxLink); ok && s.Op == plan.Set {
		if port := changedPort(link, s.Was); port != nil {
			_, node, _ := plan.ParseNamespace(port.Namespace)
			return fmt.Sprintf("%s: %s of %s was down or set differently, is as planned again", subject, port.Interface, node)
		}
	}
	switch s.Op {
	case plan.Add:
		return subject + " was gone, is there again"
	case plan.Delete:
		return subject + " was there, is gone again"
	}
	was, is := leaves(s.Was), leaves(s.Item)
	for _, path := range slices.Sorted(maps.Keys(is)) {
		if before, read := was[path]; read && before != is[path] {
			return fmt.Sprintf("%s: %s was %v, is %v again", subject, lastWord(path), before, is[path])
		}
	}
	return subject + " was not as planned, is again"
}

func subjectOf(item plan.Item) string {
	switch item := item.(type) {
	case plan.VNode:
		return "node " + item.Node
	case plan.VxLink:
		return "link " + item.Link
	case plan.Flow:
		return fmt.Sprintf("entry of link %s from %s", item.Link, item.From)
	case plan.VxRouter:
		return "routing of " + item.Node
	}
	return string(item.Kind()) + " " + item.Key()
}

// changedPort is the port of a node that was not found as it shall be.
func changedPort(want plan.VxLink, was plan.Item) *plan.Port {
	had, ok := was.(plan.VxLink)
	if !ok {
		return nil
	}
	for i, end := range want.Ends {
		if end.Port != nil && had.Ends[i] == (plan.End{}) {
			return end.Port
		}
	}
	return nil
}

// leaves lists the values of an item by their places, "ends.0.port.mtu".
func leaves(item plan.Item) map[string]any {
	text, err := json.Marshal(item)
	var tree any
	if err != nil || json.Unmarshal(text, &tree) != nil {
		return nil
	}
	found := make(map[string]any)
	gather(found, "", tree)
	return found
}

func gather(found map[string]any, at string, tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, sub := range tree {
			gather(found, at+"."+name, sub)
		}
	case []any:
		for i, sub := range tree {
			gather(found, fmt.Sprintf("%s.%d", at, i), sub)
		}
	default:
		found[at] = tree
	}
}

// lastWord is the name of a place: mtu of .ends.0.port.mtu.
func lastWord(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
