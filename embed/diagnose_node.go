package embed

import (
	"fmt"
	"slices"
	"strings"

	"sublet/embed/graph"
	"sublet/vnet"
)

// checkEachAlone explains nodes that no host takes even if nothing else of the network
// is placed, and links that do not fit on one path, as they must, between nodes
// that have only one host each. nil: there are none.
func (d diagnosis) checkEachAlone() error {
	var found Infeasible
	for v := range d.host {
		if len(d.candidates[v]) == 0 {
			found.add(&found.Nodes, d.problem.nodes[v].name, d.whyNoHost(v, ""))
		}
	}
	if found.Reasons != nil {
		return &found
	}
	for l, v := range d.problem.links {
		if d.ended() {
			break
		}
		from, to := d.candidates[v.ends[0]], d.candidates[v.ends[1]]
		if len(from) == 1 && len(to) == 1 && v.paths == 1 {
			d.host[v.ends[0]] = from[0]
			if !d.reaches(l, v.ends[0], to) {
				found.add(&found.Links, v.name, d.whyNoPath(l, v.ends[0], to)...)
			}
			d.host[v.ends[0]] = -1
		}
	}
	if found.Reasons != nil {
		return &found
	}
	return nil
}

// explain explains why nothing was found; early: before the search was over.
func (d diagnosis) explain(early bool) error {
	if early && d.furthest.depth < 0 {
		return undecided()
	}
	found := d.explainFurthest()
	found.Undecided = early
	return found
}

// explainFurthest explains the node at which the search, at its furthest, failed.
func (d diagnosis) explainFurthest() *Infeasible {
	var found Infeasible
	d.restore(d.furthest)
	v := d.furthest.node
	n := d.problem.nodes[v]
	hosts := slices.DeleteFunc(slices.Clone(d.candidates[v]), func(h int) bool { return !d.fits(v, h) })
	if len(hosts) == 0 {
		found.add(&found.Nodes, n.name, d.whyNoHost(v, " beside the other nodes of this network"))
		return &found
	}
	for _, l := range n.links {
		if u := d.problem.links[l].far(v); d.host[u] >= 0 && !d.reaches(l, u, hosts) {
			found.add(&found.Links, d.problem.links[l].name, d.whyNoPath(l, u, hosts)...)
		}
	}
	if found.Reasons == nil {
		d.whyNotTogether(v, hosts, &found)
	}
	return &found
}

// whyNotTogether explains a node each of whose links reaches some host, but not all the
// same: it names what keeps each host from having all of them, a few at most.
func (d diagnosis) whyNotTogether(v int, hosts []int, found *Infeasible) {
	const few = 3
	for _, h := range hosts[:min(few, len(hosts))] {
		d.occupy(v, h)
		for _, l := range d.problem.nodes[v].links {
			u := d.problem.links[l].far(v)
			if d.host[u] >= 0 && !d.route(l) {
				found.add(&found.Links, d.problem.links[l].name, d.whyNoPath(l, u, []int{h})...)
				break
			}
		}
		d.removeNode(v)
	}
	if found.Reasons == nil {
		found.add(&found.Nodes, d.problem.nodes[v].name, "no arrangement of the network's nodes was found")
	}
}

// mostReasons bounds a refusal that a large network would make long.
const mostReasons = 16

// add notes reasons and the name of what they concern, each once.
func (e *Infeasible) add(names *[]string, name string, reasons ...string) {
	if !slices.Contains(*names, name) {
		*names = append(*names, name)
	}
	for _, r := range reasons {
		if len(e.Reasons) < mostReasons && !slices.Contains(e.Reasons, r) {
			e.Reasons = append(e.Reasons, r)
		}
	}
}

// reaches says whether a link, from one end that is placed, can go to any of
// some hosts.
func (d diagnosis) reaches(l, placed int, hosts []int) bool {
	list := make([]choice, len(hosts))
	for i, h := range hosts {
		list[i].host = h
	}
	reach := d.graph.Reach(d.host[placed], d.query(l, placed))
	return slices.ContainsFunc(hosts, func(h int) bool {
		if h == d.host[placed] {
			return d.carries(l, h)
		}
		_, ok := reach.Hops(h)
		return ok && d.pinnable(reach, d.host[placed], h, d.query(l, placed))
	})
}

// pinnable says whether relays can hold the walk that was found to a host, or
// another that the query admits.
func (d diagnosis) pinnable(reach *graph.Reach, from, to int, q graph.Query) bool {
	if d.graph.Pinned(reach.Walk(to)) {
		return true
	}
	q.To = to
	_, ok := d.graph.ReachPinned(from, q)
	return ok
}

// whyNoHost tells why no host takes a node.
func (d diagnosis) whyNoHost(v int, beside string) string {
	n := &d.problem.nodes[v]
	where := ""
	for _, want := range n.wants {
		if want.Host != "" {
			return d.whyNotOnHost(v, want)
		}
		if want.Site != "" {
			where = " at site " + want.Site
		}
	}
	var lacks []string
	suitable, admitted, having := d.count(v)
	switch {
	case suitable == 0:
		return "there is no host" + where
	case admitted == 0 && slices.Max(n.guests) == WholeHost:
		return fmt.Sprintf("no host%s is free of other networks, as node %s asks", where, n.name)
	case admitted == 0:
		return fmt.Sprintf("every host%s is held by another network for itself", where)
	}
	for _, kind := range summed {
		if having[kind] < admitted {
			lacks = append(lacks, d.amount(kind, slices.Max(n.need(kind)))+of[kind])
		}
	}
	switch {
	case len(lacks) > 0:
		return fmt.Sprintf("no host%s has %s free%s", where, strings.Join(lacks, " and "), beside)
	case beside == "":
		return fmt.Sprintf("no host%s has links with as much free as all links of node %s need together", where, n.name)
	}
	return fmt.Sprintf("every host%s that could take node %s has %s", where, n.name, another)
}

// another says why a network of which no two nodes share a host has no room.
const another = "another node of this network already, and colocate: forbidden keeps them apart"

// of says what an amount is of, in words.
var of = [perHost]string{memory: " of memory", carrying: " of forwarding"}

// count counts the hosts that suit a node, of those the ones other networks
// let it into, and of those the ones that have what it needs, by kind.
func (d diagnosis) count(v int) (suitable, admitted int, having [perHost]int) {
	n := &d.problem.nodes[v]
	for h := range d.sub.Hosts {
		if !d.matches(v, h) {
			continue
		}
		suitable++
		if !d.eligible(v, h) {
			continue
		}
		admitted++
		for _, kind := range summed {
			if d.residual.fits(d.residual.of(h, kind), n.need(kind)) {
				having[kind]++
			}
		}
	}
	return suitable, admitted, having
}

// whyNotOnHost tells why the host a node is pinned to does not take it.
func (d diagnosis) whyNotOnHost(v int, want vnet.VirtualNode) string {
	n := &d.problem.nodes[v]
	h, ok := d.graph.Host(want.Host)
	switch {
	case !ok:
		return fmt.Sprintf("there is no host %s", want.Host)
	case !d.matches(v, h):
		return fmt.Sprintf("host %s is at site %q and cannot be all that node %s asks", want.Host, d.sub.Hosts[h].Site, n.name)
	case !d.eligible(v, h):
		i := d.residual.of(h, guests)
		s := d.residual.scarcest(i, n.guests)
		until := d.until(d.residual.key(i), WholeHost-n.guests[s], s)
		if n.guests[s] == WholeHost {
			return fmt.Sprintf("host %s carries another network%s, and node %s wants it for itself", want.Host, until, n.name)
		}
		return fmt.Sprintf("host %s is held by another network for itself%s", want.Host, until)
	}
	for _, kind := range summed {
		if !d.residual.fits(d.residual.of(h, kind), n.need(kind)) {
			return d.shortage(d.residual.of(h, kind), n.need(kind), "node "+n.name)
		}
	}
	if d.nodesAt[h] > 0 {
		return fmt.Sprintf("host %s, where node %s is asked for, has %s", want.Host, n.name, another)
	}
	return fmt.Sprintf("the links of host %s do not have as much free as all links of node %s need together", want.Host, n.name)
}
