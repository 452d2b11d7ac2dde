package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sublet/plan"
	"sublet/vnet"
)

// RepairText says in words what a repairing step found: "link a-b: rate_bps was
// 7000, is 8000 again".
func RepairText(s plan.Step) string {
	subject := subjectOf(s.Item)
	if link, ok := s.Item.(plan.VxLink); ok && s.Op == plan.Set {
		if port, was := changedPort(link, s.Was); port != nil {
			return fmt.Sprintf("%s: %s of %s %s", subject, port.Interface, whose(port.Namespace), portText(port, was))
		}
	}
	if setup, ok := s.Item.(plan.Setup); ok && s.Op == plan.Set {
		if was, ok := s.Was.(plan.Setup); ok && was.Lost != "" {
			return fmt.Sprintf("programs of node %s are started again: %s", setup.Node, was.Lost)
		}
		return fmt.Sprintf("what node %s is given was not as planned, is again: its programs are started again", setup.Node)
	}
	if sw, ok := s.Item.(plan.Switch); ok && s.Op == plan.Set && sw.OpenFlow != nil {
		if was, ok := s.Was.(plan.Switch); ok && was.OpenFlow != nil && was.OpenFlow.DatapathID == 0 {
			if was.OpenFlow.Told != "" {
				return subject + ": " + was.OpenFlow.Told
			}
			text := subject + ": its process had ended or did not answer: it was started again"
			if was.OpenFlow.Lost != "" {
				text += "; entries, groups and meters are lost, make them again: " + was.OpenFlow.Lost
			}
			return text
		}
	}
	switch s.Op {
	case plan.Add:
		if _, is := s.Item.(plan.VNode); is {
			return subject + " was gone, is there again: devices, rules, filters and settings that were made in it by hand are lost, make them again"
		}
		return subject + " was gone, is there again"
	case plan.Delete:
		return subject + " was there, is gone again"
	}
	if text := difference("", treeOf(s.Was), treeOf(s.Item)); text != "" {
		return subject + ": " + text
	}
	return subject + " was not as planned, is again"
}

// portText says what was found of a port, and what has become of it.
func portText(port *plan.Port, was plan.End) string {
	switch {
	case !was.Lost || !plan.TenantsNode(port.Namespace):
		return "was down or set differently, is as planned again"
	case was.Known:
		return "was deleted, is there again, with addresses, routes, state and MTU that it had by hand; queues, filters, neighbours and settings that were made at it by hand are lost, make them again"
	}
	return "was deleted, is there again: addresses, routes, queues and settings that were made at it by hand are lost, make them again"
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

// changedPort is the port of a node that was not found as it shall be, and the end that
// was found: one that is gone before one that differs, which may be for that.
func changedPort(want plan.VxLink, was plan.Item) (port *plan.Port, found plan.End) {
	had, ok := was.(plan.VxLink)
	if !ok {
		return nil, plan.End{}
	}
	for i, end := range want.Ends {
		is := had.Ends[i]
		if end.Port != nil && is.Port == nil && is.Tunnel == nil && (port == nil || is.Lost && !found.Lost) {
			port, found = end.Port, is
		}
	}
	return port, found
}

// treeOf is an item as JSON has it.
func treeOf(item plan.Item) (tree any) {
	if text, err := json.Marshal(item); err == nil {
		_ = json.Unmarshal(text, &tree) // of the package's own making
	}
	return tree
}

// difference says the first that differs of what both have: "mtu was 1400, is 1500
// again". What lists have both, wherever, is no difference.
func difference(name string, was, is any) string {
	switch now := is.(type) {
	case map[string]any:
		before, _ := was.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(now)) {
			old, read := before[key]
			if list, ok := now[key].([]any); ok && !read && before != nil {
				old, read = []any{}, len(list) > 0 // an empty list is left out
			}
			if text := difference(key, old, now[key]); read && text != "" {
				return text
			}
		}
		return ""
	case []any:
		before, _ := was.([]any)
		return listDifference(name, without(before, now), without(now, before))
	}
	if was == is {
		return ""
	}
	return fmt.Sprintf("%s was %v, is %v again", name, was, is)
}

// listDifference says what differs of lists that have nothing in common.
func listDifference(name string, was, is []any) string {
	switch {
	case len(was) < len(is):
		return fmt.Sprintf("one of its %s%s was gone, is there again", name, brief(is[0]))
	case len(was) > len(is):
		return fmt.Sprintf("one of its %s%s was there, is gone again", name, brief(was[0]))
	}
	for i := range is {
		if prefixOf(was[i]) != prefixOf(is[i]) { // they are of two routes
			return fmt.Sprintf("one of its %s%s was gone, is there again", name, brief(is[i]))
		}
		if text := difference(name, was[i], is[i]); text != "" {
			return text
		}
	}
	return ""
}

// without is a list less what another has, as often as that has it.
func without(list, other []any) (left []any) {
	other = slices.Clone(other)
	for _, v := range list {
		if i := slices.IndexFunc(other, func(o any) bool { return reflect.DeepEqual(o, v) }); i >= 0 {
			other = slices.Delete(other, i, i+1)
		} else {
			left = append(left, v)
		}
	}
	return left
}

// prefixOf is what a route leads to.
func prefixOf(member any) any {
	values, _ := member.(map[string]any)
	return values["prefix"]
}

// brief names a member of a list by its own values: " (interface eth0, prefix ::/0)".
func brief(member any) string {
	values, ok := member.(map[string]any)
	if !ok {
		return fmt.Sprintf(" %v", member)
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if text, ok := values[key].(string); ok && text != "" && len(text) < 64 {
			words = append(words, key+" "+text)
		}
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// whose is the node or switch that has a namespace.
func whose(namespace string) string {
	if _, node, ok := plan.ParseNamespace(namespace); ok {
		return node
	}
	for _, kind := range []vnet.SwitchKind{vnet.SwitchKernel, vnet.SwitchEngine, vnet.SwitchOpenFlow} {
		if _, name, ok := plan.ParseSwitchNamespace(namespace, kind); ok {
			return name
		}
	}
	return namespace
}
