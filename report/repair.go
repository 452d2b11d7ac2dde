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
		if port, lost := changedPort(link, s.Was); port != nil {
			_, node, _ := plan.ParseNamespace(port.Namespace)
			if lost && plan.TenantsNode(port.Namespace) {
				return fmt.Sprintf("%s: %s of %s was deleted, is there again: addresses, routes, queues and settings that were made at it by hand are lost, make them again", subject, port.Interface, node)
			}
			return fmt.Sprintf("%s: %s of %s was down or set differently, is as planned again", subject, port.Interface, node)
		}
	}
	if setup, ok := s.Item.(plan.Setup); ok && s.Op == plan.Set {
		return fmt.Sprintf("programs of node %s had ended, or not all was as planned: they are started again", setup.Node)
	}
	if sw, ok := s.Item.(plan.Switch); ok && s.Op == plan.Set && sw.OpenFlow != nil {
		if was, ok := s.Was.(plan.Switch); ok && was.OpenFlow != nil && was.OpenFlow.DatapathID == 0 {
			if was.OpenFlow.Told != "" {
				return subject + ": " + was.OpenFlow.Told
			}
			text := subject + ": its process had ended or did not answer, perhaps for want of memory: it was started again"
			if was.OpenFlow.Lost != "" {
				text += "; entries, groups and meters are lost, make them again: " + was.OpenFlow.Lost
			}
			return text
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

// subjectOf is what users call an item.
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
	case plan.Setup:
		return "what node " + item.Node + " is given"
	case plan.Pause:
		return "standstill of node " + item.Node
	case plan.Switch:
		return "switch " + item.Switch
	case plan.SwitchPort:
		return fmt.Sprintf("port %s of switch %s", item.Interface, item.Switch)
	case plan.Overlay:
		return "tunnel of link " + item.Link
	case plan.Gateway:
		return "way out of " + item.Node
	case plan.Join:
		return "place to join as " + item.Node
	case plan.Device:
		return "device of " + item.Node
	case plan.Access:
		return "exit at switch " + item.Switch
	case plan.Uplink:
		return "interface " + item.Interface + " of the host"
	}
	return nounOf(item.Kind())
}

// nouns are what users call items of a kind, several or of which only one is.
var nouns = map[plan.Kind]string{
	plan.KindUplink: "interfaces of the host", plan.KindNames: "names of nodes", plan.KindVNode: "nodes",
	plan.KindSwitch: "switches", plan.KindVxSwitch: "switches", plan.KindOpenFlow: "switches",
	plan.KindVxLink: "links", plan.KindOverlay: "tunnels", plan.KindVxRouter: "routing",
	plan.KindGateway: "ways out", plan.KindJoin: "places to join", plan.KindDevice: "devices", plan.KindAccess: "exits",
	plan.KindSwitchPort: "ports of switches", plan.KindVxSwitchPort: "ports of switches",
	plan.KindSpread: "paths of tunnels", plan.KindPrefixSpread: "paths", plan.KindSetup: "what nodes are given",
	plan.KindPause: "standstill of nodes", plan.KindChains: "service chains", plan.KindFlow: "entries of switches",
	plan.KindReach: "who reaches whom",
}

// nounOf is a kind's, or the kind if it is one of a later version.
func nounOf(k plan.Kind) string {
	if noun, known := nouns[k]; known {
		return noun
	}
	return string(k)
}

// changedPort is the port of a node that was not found as it shall be; lost: not at all.
func changedPort(want plan.VxLink, was plan.Item) (port *plan.Port, lost bool) {
	had, ok := was.(plan.VxLink)
	if !ok {
		return nil, false
	}
	for i, end := range want.Ends {
		if is := had.Ends[i]; end.Port != nil && is.Port == nil && is.Tunnel == nil {
			return end.Port, is.Lost
		}
	}
	return nil, false
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
