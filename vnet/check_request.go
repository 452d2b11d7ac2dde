package vnet

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Check returns a *FieldError for the first thing in a filled request that
// breaks a rule:
//
//   - network, tenant, site and host are names; nodes, routers, switches,
//     links and stages have one each, unique among all of them except stages, for life;
//   - a link's two ends exist together with it and differ;
//   - 0 <= min <= max, and stated rates lie in [MinRate, MaxRate];
//   - stages begin in strictly increasing order, inside the window, and
//     speak only of what exists then; what returns under its old name is
//     what it was (rates aside);
//   - stated addresses are unicast and unique in the network, a node's own of
//     IPv4; ends of links share subnets, which do not overlap with others;
//   - a node's interfaces have names of their own;
//   - the latest start is not before the earliest;
//   - a switch's ports are links that end there;
//   - each switch of kind openflow has a control link, and its controllers exist;
//   - chains lead from node to node through functions, without a loop;
//   - a way out publishes ports of nodes, and its links have rates;
//   - sizes, labels and amounts stay within their bounds.
func (r Request) Check() error {
	if problems := r.Problems(1); len(problems) > 0 {
		return problems[0]
	}
	return nil
}

// Problems returns the first things, at most so many, that break a rule of
// Check. Stages are looked at only where the start breaks none.
func (r Request) Problems(most int) []*FieldError {
	c := newChecker(most)
	c.note(r.checkHead())
	c.appear("", r.Topology, Topology{})
	if len(r.Nodes)+len(r.Routers) == 0 {
		c.note(fieldf("nodes", "no node at the start: state at least one node or router"))
	}
	if len(c.problems) == 0 {
		c.note(c.stages(r))
	}
	if len(c.problems) == 0 {
		c.note(c.ports())
	}
	if len(c.problems) == 0 {
		c.note(c.waysOut(r))
	}
	if len(c.problems) == 0 {
		c.note(c.control(r))
	}
	if len(c.problems) == 0 {
		c.note(c.chains(r))
	}
	if len(c.problems) == 0 {
		c.note(c.trafficClasses(r))
	}
	if len(c.problems) == 0 {
		c.note(c.subnets(r))
	}
	if len(c.problems) == 0 {
		c.note(c.interfaces(r))
	}
	if len(c.problems) == 0 {
		c.note(c.deviceSysctls(r))
	}
	return c.problems
}

// note keeps a problem, unless there are enough.
func (c *checker) note(err error) {
	var field *FieldError
	if errors.As(err, &field) && !c.full() {
		c.problems = append(c.problems, field)
	}
}

func (c *checker) full() bool { return len(c.problems) >= c.most }

// checkHead checks everything but topologies.
func (r Request) checkHead() error {
	if err := checkName("network", string(r.Network)); err != nil {
		return err
	}
	if r.Tenant != "" {
		if err := checkName("tenant", string(r.Tenant)); err != nil {
			return err
		}
	}
	if !r.Start.IsZero() && (r.Start.Year() < firstYear || r.Start.Year() > lastYear) {
		return fieldf("window.start", "year %d is not between %d and %d: state a time such as 2027-03-01T08:00:00Z", r.Start.Year(), firstYear, lastYear)
	}
	if r.For < 0 || r.For > MaxDuration {
		return fieldf("window.for", "%s is not between 0 and ten years: leave it out to lease until released", r.For)
	}
	if err := r.checkBefore(); err != nil {
		return err
	}
	if err := checkLabels("labels", r.Labels); err != nil {
		return err
	}
	for i, axis := range r.Negotiable {
		switch {
		case !slices.Contains(Axes, axis):
			return fieldf(at("negotiable", i), "%q is no axis of an offer: choose among start, duration, minimum, latency and site", axis)
		case slices.Contains(r.Negotiable[:i], axis):
			return fieldf(at("negotiable", i), "%s is stated twice: leave one out", axis)
		}
	}
	return r.checkWishes()
}

// checkWishes checks what is asked of the embedding.
func (r Request) checkWishes() error {
	if r.Colocate != "" && r.Colocate != ColocateAllowed && r.Colocate != ColocateForbidden {
		return fieldf("colocate", "%q is no policy: choose allowed or forbidden", r.Colocate)
	}
	if r.Objective != "" && !slices.Contains(Objectives, r.Objective) {
		return fieldf("objective", "%q is no objective: choose revenue-cost, load-balance or energy", r.Objective)
	}
	if r.Verify != "" && r.Verify != VerifyHandover && r.Verify != VerifyNone {
		return fieldf("verify", "%q is not known: choose handover or none", r.Verify)
	}
	return r.checkCounts()
}

// checkBefore checks the latest start.
func (r Request) checkBefore() error {
	switch {
	case r.Before.IsZero():
		return nil
	case r.Before.Year() < firstYear || r.Before.Year() > lastYear:
		return fieldf("window.before", "year %d is not between %d and %d: state a time such as 2027-03-01T08:00:00Z", r.Before.Year(), firstYear, lastYear)
	case r.Before.Before(r.Start):
		return fieldf("window.before", "is before start: state the latest start, which is not before the earliest")
	}
	return nil
}

func (r Request) checkCounts() error {
	if len(r.Stages) > MaxStages {
		return fieldf("stages", "%d stages are more than %d: split the request", len(r.Stages), MaxStages)
	}
	nodes, links := 0, 0
	for _, top := range r.topologies() {
		nodes += len(top.Nodes) + len(top.Routers) + len(top.Switches)
		links += len(top.Links)
	}
	if n := r.filesSize(); n > MaxAllFiles {
		return fieldf("nodes", "files of all nodes have %d bytes, more than %d: bring some with images, or with sublet cp", n, MaxAllFiles)
	}
	if nodes > MaxNodes {
		return fieldf("nodes", "%d nodes, routers and switches are more than %d: split the request", nodes, MaxNodes)
	}
	if links > MaxLinks {
		return fieldf("links", "%d links are more than %d: split the request", links, MaxLinks)
	}
	return nil
}

// checker remembers everything that was ever named, to keep identities.
type checker struct {
	kinds      map[string]string      // "node", "router", "switch" or "link", by name
	nodes      map[string]VirtualNode // as first written
	switches   map[string]VirtualSwitch
	switchPath map[string]string // where they were first written
	links      map[string]VirtualLink
	linkPath   map[string]string // likewise
	addresses  map[string]string // node, or node and link, by address

	most     int // problems wanted
	problems []*FieldError
}

func newChecker(most int) *checker {
	return &checker{
		most:  most,
		kinds: make(map[string]string), nodes: make(map[string]VirtualNode),
		switches: make(map[string]VirtualSwitch), switchPath: make(map[string]string),
		links: make(map[string]VirtualLink), linkPath: make(map[string]string), addresses: make(map[string]string),
	}
}

// appear checks the topology add, written at path, which joins what is there.
// What breaks a rule is noted; its name is taken all the same, so that what
// speaks of it does not count as wrong too.
func (c *checker) appear(path string, add, there Topology) {
	present := there.names()
	for i, n := range add.Nodes {
		if c.full() {
			return
		}
		c.note(c.node(at(join(path, "nodes"), i), "node", n, present))
		present[n.Name] = "node"
	}
	for i, n := range add.Routers {
		if c.full() {
			return
		}
		c.note(c.node(at(join(path, "routers"), i), "router", n, present))
		present[n.Name] = "router"
	}
	for i, s := range add.Switches {
		if c.full() {
			return
		}
		c.note(c.vswitch(at(join(path, "switches"), i), s, present))
		present[s.Name] = "switch"
	}
	for i, l := range add.Links {
		if c.full() {
			return
		}
		c.note(c.link(at(join(path, "links"), i), l, present))
	}
}

// names gives the kind of everything in the topology, by name.
func (t Topology) names() map[string]string {
	present := make(map[string]string, len(t.Nodes)+len(t.Routers)+len(t.Links))
	for _, n := range t.Nodes {
		present[n.Name] = "node"
	}
	for _, n := range t.Routers {
		present[n.Name] = "router"
	}
	for _, s := range t.Switches {
		present[s.Name] = "switch"
	}
	for _, l := range t.Links {
		present[l.Name] = "link"
	}
	return present
}

// claim takes a name for an object that appears.
func (c *checker) claim(path, name, kind string, present map[string]string) error {
	if err := checkName(path, name); err != nil {
		return err
	}
	if other, ok := present[name]; ok {
		return fieldf(path, "there is a %s %q already: choose another name", other, name)
	}
	if other, ok := c.kinds[name]; ok && other != kind {
		return fieldf(path, "%q was the name of a %s before: choose another name", name, other)
	}
	c.kinds[name], present[name] = kind, kind
	return nil
}

func (c *checker) node(path, kind string, n VirtualNode, present map[string]string) error {
	if err := c.claim(path+".name", n.Name, kind, present); err != nil {
		return err
	}
	if first, ok := c.nodes[n.Name]; ok {
		if !reflect.DeepEqual(first, n) {
			return fieldf(path, "%s %q returns changed: write it as it was, or choose another name", kind, n.Name)
		}
		return nil
	}
	c.nodes[n.Name] = n
	if err := n.check(path, kind); err != nil {
		return err
	}
	return c.address(path+".address", n)
}

func (c *checker) address(path string, n VirtualNode) error {
	if !n.Address.IsValid() {
		return nil
	}
	if err := checkAddress(path, n.Address); err != nil {
		return err
	}
	if other, ok := c.addresses[n.Address.String()]; ok {
		return fieldf(path, "%s is the address of %q already: choose another, or leave it out", n.Address, other)
	}
	c.addresses[n.Address.String()] = n.Name
	return nil
}

func (c *checker) link(path string, l VirtualLink, present map[string]string) error {
	if err := c.ends(path, l, present); err != nil {
		return err
	}
	if err := c.claim(path+".name", l.Name, "link", present); err != nil {
		return err
	}
	first, returns := c.links[l.Name]
	if returns && (first.Ends != l.Ends || first.Latency != l.Latency || first.MayPaths() != l.MayPaths() || first.Order != l.Order || first.Spread != l.Spread || first.Control != l.Control ||
		first.Interfaces != l.Interfaces || first.Area != l.Area || first.Cost != l.Cost || first.Class != l.Class || !reflect.DeepEqual(first.Addresses, l.Addresses)) {
		return fieldf(path, "link %q returns with other ends, addresses, interfaces, area, cost, class, latency or paths: choose another name", l.Name)
	}
	if err := l.check(path); err != nil || returns {
		return err
	}
	c.links[l.Name], c.linkPath[l.Name] = l, path
	if err := c.linkInterfaces(path, l); err != nil {
		return err
	}
	if err := c.linkRouting(path, l); err != nil {
		return err
	}
	return c.linkAddresses(path, l)
}

// ends checks that both exist when the link does, and differ.
func (c *checker) ends(path string, l VirtualLink, present map[string]string) error {
	for i, end := range l.Ends {
		kind, ok := present[end]
		if ok && kind != "link" {
			continue
		}
		return fieldf(at(path+".ends", i), "no node, router or switch %q: %s", end, c.suggest(end, present))
	}
	if l.Ends[0] == l.Ends[1] {
		return fieldf(at(path+".ends", 1), "both ends are %q: join two different nodes", l.Ends[0])
	}
	return nil
}

// suggest names what could have been meant by an unknown end.
func (c *checker) suggest(end string, present map[string]string) string {
	if kind, ok := c.kinds[end]; ok && kind != "link" {
		return "it is not there in this stage, add it here too"
	}
	names := slices.DeleteFunc(sortedKeys(present), func(name string) bool { return present[name] == "link" })
	if near := Nearest(end, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "state it under nodes, routers or switches"
}
