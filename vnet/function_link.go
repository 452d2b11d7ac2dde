package vnet

import (
	"fmt"
	"slices"
	"strings"
)

// Functions have links of their own beside the segments of chains: a mirror one to the
// node that gets its copies, a balancer one to each of its nodes, a program one to its
// standby and one back. Chain of such a
// link is FUNCTION>NODE, or FUNCTION>NODE>FUNCTION back, which no chain is called.
const sendsTo = ">"

// Sender is the function whose own link it is; "": no function's.
func (l VirtualLink) Sender() string {
	function, _, ok := strings.Cut(l.Chain, sendsTo)
	if !ok {
		return ""
	}
	return function
}

// ReachesNode says whether a link of chains ends at an interface of a node. Others end
// in the host, which does what built-in functions do.
func (t Topology) ReachesNode(l VirtualLink, end int) bool {
	n, _ := t.Node(l.Ends[end])
	switch {
	case l.Sender() != "":
		sender, _ := t.Node(l.Sender())
		return l.Ends[end] != l.Sender() && !sender.IsBalancer()
	case n.IsFunction():
		return n.Function.Kind == FunctionProgram
	}
	return false
}

// functionLinks are the own links of functions that chains lead through, without names.
func (r Request) functionLinks() (links []VirtualLink) {
	for _, n := range r.Nodes {
		for _, l := range r.linksOf(n) {
			both, ok := r.demandOf(n, l)
			if there := r.hasNodes(l.Ends); ok && there {
				l.Bandwidth = both
				links = append(links, l)
			}
		}
	}
	return links
}

// linksOf are the own links of a node that is a function, without names and rates.
func (r Request) linksOf(n VirtualNode) []VirtualLink {
	switch f := n.Function; {
	case f == nil:
	case f.Kind == FunctionBalancer:
		var links []VirtualLink
		for _, to := range f.Nodes {
			links = append(links, VirtualLink{Ends: [2]string{n.Name, to}, Chain: n.Name + sendsTo + to})
		}
		return links
	case f.Kind == FunctionMirror && f.To != "":
		return []VirtualLink{{Ends: [2]string{n.Name, f.To}, Chain: n.Name + sendsTo + f.To}}
	case f.Standby != "":
		out := n.Name + sendsTo + f.Standby
		return []VirtualLink{{Ends: [2]string{n.Name, f.Standby}, Chain: out}, {Ends: [2]string{f.Standby, n.Name}, Chain: out + sendsTo + n.Name}}
	}
	return nil
}

// hasNodes says whether both are there, and not one.
func (t Topology) hasNodes(ends [2]string) bool {
	_, first := t.Node(ends[0])
	_, second := t.Node(ends[1])
	return first && second && ends[0] != ends[1]
}

// demandOf is what an own link of a function asks for; false: no chain needs it. A
// balancer's has the chains that have no segment to its node, and what asks whether that
// lives.
func (r Request) demandOf(n VirtualNode, link VirtualLink) (both [2]Bandwidth, ok bool) {
	if n.Function.Kind == FunctionMirror {
		if rate := r.through(n.Name); rate > 0 {
			both[Forward] = Static(rate)
		}
		return both, r.leadsThrough(n.Name)
	}
	var sums [2]Rate
	for _, c := range r.Chains {
		leads := slices.Contains(c.Via, n.Name)
		ok = ok || leads && (n.IsBalancer() || c.OnFailure == FailureReroute)
		if leads && (n.IsBalancer() && c.To != link.Ends[1] || c.OnFailure == FailureReroute && !n.IsBalancer()) {
			for d, b := range c.Demand() {
				sums[d] += b.Min
			}
		}
	}
	for d, rate := range sums {
		if rate > 0 {
			both[d] = Static(rate)
		}
	}
	return both, ok
}

// leadsThrough says whether a chain passes a function.
func (r Request) leadsThrough(function string) bool {
	return slices.ContainsFunc(r.Chains, func(c Chain) bool { return slices.Contains(c.Via, function) })
}

// fillFunctions makes the own links of functions that have none yet, gives those that
// are there what chains ask for now, and takes away those that nothing needs.
func (r *Request) fillFunctions(taken names) {
	want := r.functionLinks()
	of := func(list []VirtualLink, chain string) int {
		return slices.IndexFunc(list, func(l VirtualLink) bool { return l.Chain == chain })
	}
	r.Links = slices.DeleteFunc(r.Links, func(l VirtualLink) bool {
		gone := l.Sender() != "" && of(want, l.Chain) < 0
		if gone {
			r.forgetLink(l.Name)
		}
		return gone
	})
	for _, l := range want {
		if i := of(r.Links, l.Chain); i >= 0 {
			r.Links[i].Bandwidth = l.Bandwidth
			continue
		}
		l.Name = taken.free(l.Ends)
		r.Links = append(r.Links, l)
	}
}

// followFunctions lowers chains through functions whose own links have less than they
// ask for, all in the same proportion.
func (r *Request) followFunctions() {
	for _, l := range r.Links {
		n, _ := r.Node(l.Sender())
		if !n.IsFunction() {
			continue
		}
		need, _ := r.demandOf(n, l)
		part := 1.0
		for d := range need {
			if has := l.Bandwidth[d].Min; has > 0 && has < need[d].Min {
				part = min(part, float64(has)/float64(need[d].Min))
			}
		}
		for i, c := range r.Chains {
			if part < 1 && c.Rate > 0 && slices.Contains(c.Via, n.Name) {
				r.Chains[i].Rate = max(1, Rate(float64(c.Rate)*part))
			}
		}
	}
}

// functionLinksAsNeeded checks that the own links of functions are those that are
// needed.
func (c *checker) functionLinksAsNeeded(r Request) error {
	want := r.functionLinks()
	for _, l := range r.Links {
		if l.Sender() == "" {
			continue
		}
		i := slices.IndexFunc(want, func(w VirtualLink) bool { return w.Chain == l.Chain })
		if i >= 0 {
			want[i].Name = l.Name
		}
		if i < 0 || fmt.Sprintf("%+v", want[i]) != fmt.Sprintf("%+v", l) {
			return fieldf(c.linkPath[l.Name], "link %q is not the one that function %q needs: leave it out, it is made", l.Name, l.Sender())
		}
		want = slices.Delete(want, i, i+1)
	}
	if len(want) > 0 {
		return fieldf("functions", "%s has no link to %s: leave links of functions out of links, they are made", want[0].Ends[0], want[0].Ends[1])
	}
	return nil
}

// checkTargets checks the nodes to which a function has links of its own.
func (r Request) checkTargets(path string, n VirtualNode) error {
	switch n.Function.Kind {
	case FunctionMirror:
		return r.checkCopies(path+".to", n.Function.To)
	case FunctionBalancer:
		return r.checkNodes(path+".nodes", n)
	case FunctionClassifier:
		return r.checkMoves(path+".rules", n)
	}
	if n.Function.Standby == "" {
		return r.wantStandby(path+".standby", n)
	}
	return r.checkStandby(path+".standby", n)
}

// checkMoves checks the chains to which a classifier moves packets: they lead through it
// too, and packets go on behind it there.
func (r Request) checkMoves(path string, n VirtualNode) error {
	if !r.leadsThrough(n.Name) {
		return nil
	}
	for i, rule := range n.Function.Rules {
		c, ok := r.ChainOf(rule.Chain)
		switch {
		case !ok:
			return fieldf(at(path, i)+".chain", "there is no chain %q: name one that leads through %s", rule.Chain, n.Name)
		case !slices.Contains(c.Via, n.Name):
			return fieldf(at(path, i)+".chain", "chain %s does not lead through %s: name it in its via", c.Name, n.Name)
		}
	}
	return nil
}

func (r Request) checkCopies(path, name string) error {
	to, ok := r.Node(name)
	switch {
	case !ok:
		return fieldf(path, "there is no node %q: name one that is stated under nodes", name)
	case to.IsFunction():
		return fieldf(path, "%q is a function, and copies go to a node: name one that is stated under nodes", name)
	case to.Join != "" || to.Device != "":
		return fieldf(path, "%q is a machine or device that joins, which has no interface of its own for copies: name a node", name)
	}
	return nil
}

// wantStandby refuses a program without one whose chains go to another instance.
func (r Request) wantStandby(path string, n VirtualNode) error {
	for _, c := range r.Chains {
		if n.Function.Kind == FunctionProgram && c.OnFailure == FailureReroute && slices.Contains(c.Via, n.Name) {
			return fieldf(path, "is missing: chain %s goes to another instance when %s returns nothing: name the function that is one, or state on-failure: bypass", c.Name, n.Name)
		}
	}
	return nil
}

func (r Request) checkStandby(path string, n VirtualNode) error {
	name := n.Function.Standby
	other, ok := r.Node(name)
	switch {
	case name == n.Name:
		return fieldf(path, "%s cannot stand by for itself: name another function", name)
	case !ok || !other.IsFunction():
		return fieldf(path, "there is no function %q: name one that is stated under functions", name)
	case other.Function.Kind != FunctionProgram:
		return fieldf(path, "%s is a %s, which does not do what the program of %s does: name a function that runs one", name, other.Function.Kind, n.Name)
	case other.Function.NSH != n.Function.NSH:
		return fieldf(path, "of %s and %s one knows NSH and the other does not: state nsh for both or none", n.Name, name)
	case other.Function.Auto != nil:
		return fieldf(path, "the processor time of %s follows the load, and it has none while it stands by: state its cores", name)
	}
	for _, c := range r.Chains {
		if c.OnFailure == FailureReroute && slices.Contains(c.Via, n.Name) && slices.Contains(c.Via, name) {
			return fieldf(path, "chain %s leads through %s already: name another function", c.Name, name)
		}
	}
	return nil
}

// isTarget says whether a function has a link of its own to a node.
func (r Request) isTarget(node string) bool {
	return slices.ContainsFunc(r.Links, func(l VirtualLink) bool { return l.Sender() != "" && l.Ends[1] == node })
}
