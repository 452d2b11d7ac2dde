package vnet

import (
	"fmt"
	"slices"
	"strings"
)

// A mirror has a link of its own beside the segments of chains, to the node that gets
// its copies. VirtualLink.Chain of such a link is FUNCTION>NODE, which is no chain's
// name.
const sendsTo = ">"

// Sender is the function whose own link it is; "": no function's.
func (l VirtualLink) Sender() string {
	function, _, ok := strings.Cut(l.Chain, sendsTo)
	if !ok {
		return ""
	}
	return function
}

// targets are the nodes to which a function has links of its own.
func (f *Function) targets() []string {
	if f != nil && f.Kind == FunctionMirror && f.To != "" {
		return []string{f.To}
	}
	return nil
}

// ReachesNode says whether a link of chains ends at an interface of a node. Others end
// in the host, which does what built-in functions do.
func (t Topology) ReachesNode(l VirtualLink, end int) bool {
	n, _ := t.Node(l.Ends[end])
	switch {
	case l.Sender() != "":
		return end == 1
	case n.IsFunction():
		return n.Function.Kind == FunctionProgram
	}
	return false
}

// functionLinks are the own links of functions that chains lead through, without names.
func (r Request) functionLinks() (links []VirtualLink) {
	for _, n := range r.Nodes {
		for _, to := range n.Function.targets() {
			if _, ok := r.Node(to); !ok || to == n.Name || !r.leadsThrough(n.Name) {
				continue
			}
			l := VirtualLink{Ends: [2]string{n.Name, to}, Chain: n.Name + sendsTo + to}
			if rate := r.through(n.Name); rate > 0 {
				l.Bandwidth[Forward] = Static(rate)
			}
			links = append(links, l)
		}
	}
	return links
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
	r.Links = slices.DeleteFunc(r.Links, func(l VirtualLink) bool { return l.Sender() != "" && of(want, l.Chain) < 0 })
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
		function, has := l.Sender(), l.Bandwidth[Forward].Min
		need := r.through(function)
		if function == "" || has <= 0 || has >= need {
			continue
		}
		for i, c := range r.Chains {
			if slices.Contains(c.Via, function) && c.Rate > 0 {
				r.Chains[i].Rate = max(1, Rate(float64(c.Rate)*(float64(has)/float64(need))))
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
	for _, name := range n.Function.targets() {
		to, ok := r.Node(name)
		switch {
		case !ok:
			return fieldf(path+".to", "there is no node %q: name one that is stated under nodes", name)
		case to.IsFunction():
			return fieldf(path+".to", "%q is a function, and copies go to a node: name one that is stated under nodes", name)
		case to.Join != "" || to.Device != "":
			return fieldf(path+".to", "%q is a machine or device that joins, which has no interface of its own for copies: name a node", name)
		}
	}
	return nil
}

// isTarget says whether a function has a link of its own to a node.
func (r Request) isTarget(node string) bool {
	return slices.ContainsFunc(r.Links, func(l VirtualLink) bool { return l.Sender() != "" && l.Ends[1] == node })
}
