package vnet

import (
	"fmt"
	"net/netip"
	"slices"
)

// Chain leads packets of one node to another through functions, in order. Its
// segments are links of the topology (VirtualLink.Chain), so they are placed,
// admitted and shaped as all links are.
type Chain struct {
	Name string   `json:"name"`
	From string   `json:"from"`
	To   string   `json:"to"`
	Via  []string `json:"via"`
	// Match says which packets of From that go to To it takes. Without a
	// destination, those to the address of To.
	Match     Packets      `json:"match,omitzero"`
	Rate      Rate         `json:"rate_bps,omitempty"`   // 0: best effort
	Reverse   ChainReverse `json:"reverse,omitempty"`    // "": ReverseNone
	OnFailure OnFailure    `json:"on_failure,omitempty"` // "": nobody looks whether programs live
	// Priority says which chains have their rates first where functions with cpu auto
	// are short of processors, 0 to MaxChainPriority, the higher first.
	Priority int `json:"priority,omitempty"`
	// Transport carries it between hosts; "": TransportUDP. Compat is the source port of
	// all its packets there, CompatPort; 0: one by the flow.
	Transport Transport `json:"transport,omitempty"`
	Compat    uint16    `json:"compat,omitempty"`
	// Metadata is put on by whatever leads packets into it, both ways.
	Metadata Metadata `json:"metadata,omitzero"`
	// Unordered says that its functions may be passed in any order: Via is the one
	// that was chosen when it was decided.
	Unordered bool `json:"unordered,omitempty"`
	// Paused says that hosts lead nothing through it, and that nothing is booked for it,
	// until a stage has it go on. Its functions are there.
	Paused bool `json:"paused,omitempty"`
}

// MaxChainPriority is the highest of chains.
const MaxChainPriority = 7

// Transport is what carries the headers of chains between hosts.
type Transport string

// Transports: the headers follow UDP (port 61440), or VXLAN-GPE (4790), which takes 8
// bytes more.
const (
	TransportUDP Transport = "udp"
	TransportGPE Transport = "gpe"
)

// CompatPort is the source port that other implementations of chains over UDP send from.
const CompatPort = 60001

// ChainReverse says how packets from To to From go.
type ChainReverse string

// How packets go back: beside the chain, or through its functions in the opposite
// order, or in the same.
const (
	ReverseNone   ChainReverse = "none"
	ReverseMirror ChainReverse = "mirror"
	ReverseSame   ChainReverse = "same"
)

// OnFailure says what becomes of a chain's packets while one of its programs returns
// none.
type OnFailure string

// What becomes of them.
const (
	FailureDrop    OnFailure = "drop"
	FailureBypass  OnFailure = "bypass"
	FailureReroute OnFailure = "reroute"
)

// Hops are where its packets come along, both ends included.
func (c Chain) Hops() []string { return slices.Concat([]string{c.From}, c.Via, []string{c.To}) }

// Demand is what each of its links asks for.
func (c Chain) Demand() [2]Bandwidth {
	var both [2]Bandwidth
	if c.Rate > 0 && !c.Paused {
		both[Forward] = Static(c.Rate)
		if c.Returns() {
			both[Reverse] = both[Forward]
		}
	}
	return both
}

// Returns says whether packets come back through the chain.
func (c Chain) Returns() bool { return c.Reverse == ReverseMirror || c.Reverse == ReverseSame }

// Load is what its functions carry of it, both ways.
func (c Chain) Load() Rate {
	if c.Paused {
		return 0
	}
	if c.Returns() {
		return 2 * c.Rate
	}
	return c.Rate
}

// Back leads the answers of a chain's packets back, through its functions in the
// opposite order. Behind a NAT they go to its addresses and any port.
func (t Topology) Back(c Chain) Chain {
	back := c
	back.From, back.To, back.Via = c.To, c.From, slices.Clone(c.Via)
	slices.Reverse(back.Via)
	back.Match.Src, back.Match.Dst = c.Match.Dst, c.Match.Src
	back.Match.SrcPort, back.Match.DstPort = c.Match.DstPort, c.Match.SrcPort
	for _, name := range c.Via {
		if n, _ := t.Node(name); t.isNAT(name) {
			back.Match.Dst, back.Match.DstPort = n.Function.Prefix, PortRange{}
		} else if n.IsBalancer() { // nodes answer by addresses of their own
			back.Match.Src = netip.Prefix{}
			if n.Function.Publish != 0 {
				back.Match.SrcPort = PortRange{First: n.Function.Port, Last: n.Function.Port}
			}
		}
	}
	return back
}

// segments are the links of the chain, without names.
func (c Chain) segments() (links []VirtualLink) {
	hops := c.Hops()
	for i := range hops[1:] {
		links = append(links, VirtualLink{Ends: [2]string{hops[i], hops[i+1]}, Bandwidth: c.Demand(), Chain: c.Name})
	}
	return links
}

// ChainLinks are the links of a chain, in order.
func (t Topology) ChainLinks(chain string) (links []VirtualLink) {
	for _, l := range t.Links {
		if l.Chain == chain && chain != "" {
			links = append(links, l)
		}
	}
	return links
}

// fillChains makes the links of chains that have none yet. Those of which a hop is
// missing or comes twice get none: Check says what is wrong with them.
func (r *Request) fillChains(taken names) {
	for _, c := range r.Chains {
		if len(r.ChainLinks(c.Name)) > 0 || !r.canHop(c) {
			continue
		}
		for _, l := range c.segments() {
			l.Name = taken.free([2]string{c.Name + "-" + l.Ends[0], l.Ends[1]})
			r.Links = append(r.Links, l)
		}
	}
}

// canHop says whether all hops of a chain are nodes, once each.
func (t Topology) canHop(c Chain) bool {
	seen := make(map[string]bool)
	for _, hop := range c.Hops() {
		if _, ok := t.Node(hop); !ok || seen[hop] {
			return false
		}
		seen[hop] = true
	}
	return len(c.Via) <= MaxVia
}

// hasPlainLink says whether a node has a link that is of no chain.
func (t Topology) hasPlainLink(node string) bool {
	return slices.ContainsFunc(t.Links, func(l VirtualLink) bool { return l.Chain == "" && slices.Contains(l.Ends[:], node) })
}

// FollowLinks gives chains the rates of their links, after those were changed.
func (r *Request) FollowLinks() {
	r.Chains = slices.Clone(r.Chains)
	for i, c := range r.Chains {
		if links := r.ChainLinks(c.Name); len(links) > 0 && c.Rate > 0 && !c.Paused {
			least := links[0].Bandwidth[Forward].Min
			for _, l := range links {
				least = min(least, l.Bandwidth[Forward].Min)
			}
			r.Chains[i].Rate = least
		}
	}
	r.followFunctions()
	r.followStages()
	for i, l := range r.Links {
		if c, ok := r.ChainOf(l.Chain); ok {
			r.Links[i].Bandwidth = c.Demand()
		}
	}
	r.fillFunctions(make(names)) // it has them all
	r.fillChainStages()
	r.bookFunctions()
}

// ChainOf finds a chain by name.
func (r Request) ChainOf(name string) (Chain, bool) {
	i := slices.IndexFunc(r.Chains, func(c Chain) bool { return c.Name == name })
	if i < 0 {
		return Chain{}, false
	}
	return r.Chains[i], true
}

// chains checks chains, functions and the links of chains.
func (c *checker) chains(r Request) error {
	if len(r.Chains) > MaxChains {
		return fieldf("chains", "%d chains are more than %d: split the request", len(r.Chains), MaxChains)
	}
	load, hops := make(map[string]Rate), 0
	for i, chain := range r.Chains {
		path := at("chains", i)
		if hops += len(chain.Hops()); hops > MaxHops {
			return fieldf(path, "chains have more than %d nodes and functions in all: split the request", MaxHops)
		}
		if err := c.chain(path, chain, r.Chains[:i], r.Topology); err != nil {
			return err
		}
		for k, name := range chain.Via {
			load[name] += chain.Load()
			n, _ := r.Node(name)
			if most := n.Function.Rate; most > 0 && load[name] > most {
				return fieldf(at(path+".via", k), "%s passes %s, and chains through it ask for %s: lower rate, or raise that of the function", name, most, load[name])
			}
		}
		if err := c.chainLinks(path, chain, r); err != nil {
			return err
		}
	}
	for i, n := range r.Nodes {
		if n.IsFunction() {
			if err := r.checkTargets(at("nodes", i)+".function", n); err != nil {
				return err
			}
			if err := r.checkProbed(at("nodes", i)+".function.probe", n); err != nil {
				return err
			}
			if err := r.checkProcessing(at("nodes", i)+".function", n); err != nil {
				return err
			}
		}
	}
	if err := c.functionLinksAsNeeded(r); err != nil {
		return err
	}
	return c.chainsStay(r)
}

// chain checks one chain by itself and against the nodes.
func (c *checker) chain(path string, chain Chain, before []Chain, t Topology) error {
	if err := checkName(path+".name", chain.Name); err != nil {
		return err
	}
	if slices.ContainsFunc(before, func(b Chain) bool { return b.Name == chain.Name }) {
		return fieldf(path+".name", "there is a chain %q already: choose another name", chain.Name)
	}
	for _, end := range []struct{ field, name string }{{".from", chain.From}, {".to", chain.To}} {
		n, ok := t.Node(end.name)
		switch {
		case !ok:
			return fieldf(path+end.field, "there is no node %q: %s", end.name, c.suggest(end.name, t.names()))
		case n.IsFunction():
			return fieldf(path+end.field, "%q is a function, through which chains lead: name a node, and the function in via", end.name)
		case n.Join != "" || n.Device != "":
			return fieldf(path+end.field, "%q is a machine or device that joins: chains from or to it are not offered yet: name a node", end.name)
		case !t.hasPlainLink(end.name):
			return fieldf(path+end.field, "%q has no link beside the chain, by which ARP and answers go: link it with the other end, best effort will do", end.name)
		}
	}
	if chain.From == chain.To {
		return fieldf(path+".to", "the chain begins at %q too, and would be a loop: name another node", chain.To)
	}
	if err := c.via(path, chain, t); err != nil {
		return err
	}
	if i := slices.IndexFunc(chain.Via, t.isNAT); i >= 0 && !chain.Returns() {
		return fieldf(path+".reverse", "is missing: answers come back to %s through the chain: state mirror", chain.Via[i])
	}
	if err := chain.Match.check(path + ".match"); err != nil {
		return err
	}
	if err := t.check6(path, chain); err != nil {
		return err
	}
	if err := t.checkBalanced(path, chain); err != nil {
		return err
	}
	return chain.checkWishes(path)
}

// via checks where a chain leads through.
func (c *checker) via(path string, chain Chain, t Topology) error {
	if len(chain.Via) == 0 || len(chain.Via) > MaxVia {
		return fieldf(path+".via", "%d functions are not between 1 and %d: name those that packets pass, in order", len(chain.Via), MaxVia)
	}
	for i, name := range chain.Via {
		where := at(path+".via", i)
		n, ok := t.Node(name)
		switch {
		case slices.Contains(chain.Via[:i], name):
			return fieldf(where, "the chain has been at %q before, and would be a loop: name each function once", name)
		case name == chain.From || name == chain.To:
			return fieldf(where, "%q is an end of the chain, which would be a loop: name functions only", name)
		case ok && n.IsFunction():
		case ok:
			return fieldf(where, "%q is a node without a second interface by which packets leave again: state it under functions", name)
		case slices.ContainsFunc(t.Routers, func(r VirtualNode) bool { return r.Name == name }), c.kinds[name] == "switch", c.kinds[name] == "link":
			return fieldf(where, "%q is a %s, and no function: name one that is stated under functions", name, c.kinds[name])
		default:
			return fieldf(where, "there is no function %q: %s", name, suggestFunction(name, t))
		}
	}
	return nil
}

// suggestFunction names what could have been meant.
func suggestFunction(name string, t Topology) string {
	var names []string
	for _, n := range t.Nodes {
		if n.IsFunction() {
			names = append(names, n.Name)
		}
	}
	if near := Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "state it under functions"
}

// check6 checks a chain of IPv6: where it leads, and what comes back, is not known by
// the nodes' addresses, which are of IPv4.
func (t Topology) check6(path string, c Chain) error {
	switch {
	case !c.Match.Is6():
		return nil
	case !c.Match.Dst.IsValid():
		return fieldf(path+".match.dst", "is missing: the address of %s is of IPv4: state those of IPv6 that the chain takes", c.To)
	case c.Returns() && !c.Match.Src.IsValid():
		return fieldf(path+".match.src", "is missing: the address of %s is of IPv4: state those of IPv6 to which answers go", c.From)
	}
	for i, name := range c.Via {
		if n, _ := t.Node(name); n.IsFunction() && (n.Function.Kind == FunctionNAT || n.IsBalancer()) {
			return fieldf(at(path+".via", i), "%s works on IPv4, and the chain takes IPv6: leave it out, or match addresses of IPv4", name)
		}
	}
	return nil
}

// checkWishes checks what is asked for a chain's packets.
func (c Chain) checkWishes(path string) error {
	if err := checkRate(path+".rate", c.Rate, true); err != nil {
		return err
	}
	if c.Priority < 0 || c.Priority > MaxChainPriority {
		return fieldf(path+".priority", "%d is none: choose 0 to %d, the higher first", c.Priority, MaxChainPriority)
	}
	if c.Match.DSCP != nil && c.Returns() {
		return fieldf(path+".reverse", "%s is not offered for a match with dscp: answers do not carry that of what they answer: leave reverse or dscp out", c.Reverse)
	}
	switch c.Reverse {
	case "", ReverseNone:
	case ReverseMirror:
	case ReverseSame: // of one function both are one; of several Fill made a chain for answers
		if len(c.Via) > 1 {
			return fieldf(path+".reverse", "same is for chains in the order that is stated, whose functions are firewalls, limiters, mirrors and programs: write mirror, by which packets come back in the opposite order")
		}
	default:
		return fieldf(path+".reverse", "%q is not known: choose mirror, same or none", c.Reverse)
	}
	switch c.Transport {
	case "", TransportUDP, TransportGPE:
	default:
		return fieldf(path+".transport", "%q is not known: choose udp or gpe", c.Transport)
	}
	if c.Compat != 0 && c.Compat != CompatPort {
		return fieldf(path+".compat", "%d is no port that others send chains from: state %d, or leave it out", c.Compat, CompatPort)
	}
	if err := c.Metadata.check(path + ".metadata"); err != nil {
		return err
	}
	switch c.OnFailure {
	case "", FailureDrop, FailureBypass, FailureReroute:
	default:
		return fieldf(path+".on-failure", "%q is not known: choose reroute, bypass or drop", c.OnFailure)
	}
	return nil
}

// chainLinks checks that the links that say they are the chain's are.
func (c *checker) chainLinks(path string, chain Chain, r Request) error {
	links, want := r.ChainLinks(chain.Name), chain.segments()
	if len(links) != len(want) {
		return fieldf(path, "has %d links and needs %d: leave them out of links, they are made", len(links), len(want))
	}
	for i, l := range links {
		want[i].Name = l.Name
		if fmt.Sprintf("%+v", want[i]) != fmt.Sprintf("%+v", l) {
			return fieldf(c.linkPath[l.Name], "link %q is not the one that chain %q needs: leave it out, it is made", l.Name, chain.Name)
		}
	}
	return nil
}

// chainsStay sees to it that functions have links of chains only, that no other
// link says it is a chain's, and that stages change no more of them than chains have.
func (c *checker) chainsStay(r Request) error {
	functions := make(map[string]bool)
	for _, n := range r.Nodes {
		functions[n.Name] = n.IsFunction()
	}
	if err := c.functionsStage(r, -1); err != nil {
		return err
	}
	of := make(map[string]string)
	for _, l := range r.Links {
		of[l.Name] = l.Chain
		if _, ok := r.ChainOf(l.Chain); l.Chain != "" && l.Sender() == "" && !ok {
			return fieldf(c.linkPath[l.Name], "link %q is of no chain that is there: leave it out", l.Name)
		}
		if l.Chain == "" && (functions[l.Ends[0]] || functions[l.Ends[1]]) {
			return fieldf(c.linkPath[l.Name], "links of functions beside those of chains are not offered yet: leave it out, chains make their own")
		}
	}
	for i, s := range r.Stages {
		path := at("stages", i)
		for _, chain := range r.Chains {
			for _, end := range slices.Concat([]string{chain.From, chain.To}, r.Balanced(chain)) {
				if !r.At(i).hasPlainLink(end) {
					return fieldf(path+".remove", "%q has no link beside chain %q in stage %q: leave one", end, chain.Name, s.Name)
				}
			}
		}
		for k, name := range s.Remove {
			if functions[name] || r.isTarget(name) || of[name] != "" || c.isChainEnd(r, name) {
				return fieldf(at(path+".remove", k), "%q is part of a chain, which stages change and pause, and do not take away: state paused under chains of the stage, and functions that go under functions", name)
			}
		}
		for k, n := range s.Add.Nodes {
			if n.IsFunction() {
				return fieldf(at(path+".add.nodes", k), "is a function: state it at the start with absent: true, and under functions of the stage that it is there")
			}
		}
		for k, l := range s.Add.Links {
			if l.Chain != "" || functions[l.Ends[0]] || functions[l.Ends[1]] {
				return fieldf(at(path+".add.links", k), "is a link of chains, which make their own: leave it out")
			}
		}
		if err := c.chainStage(path, r, i); err != nil {
			return err
		}
		if err := c.functionsStage(r, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) isChainEnd(r Request, name string) bool {
	return slices.ContainsFunc(r.Chains, func(chain Chain) bool { return chain.From == name || chain.To == name })
}

// isNAT says whether a node is a NAT.
func (t Topology) isNAT(name string) bool {
	n, ok := t.Node(name)
	return ok && n.IsFunction() && n.Function.Kind == FunctionNAT
}

// ChainWay is what proofs and counts call a chain: no link has such a name.
func ChainWay(chain string) string { return "chain " + chain }

// Title names a link for people: those that chains make are named by what makes them.
func (l VirtualLink) Title() string {
	switch {
	case l.Chain == "":
		return "virtual link " + l.Name
	case l.Sender() != "":
		return "what " + l.Ends[0] + " sends to " + l.Ends[1]
	}
	return ChainWay(l.Chain) + " from " + l.Ends[0] + " to " + l.Ends[1]
}

// Promised are the links whose rates bear on nodes: those of no chain, and each chain as
// one link between its ends.
func (t Topology) Promised(chains []Chain) (links []VirtualLink) {
	for _, l := range t.Links {
		if l.Chain == "" {
			links = append(links, l)
		}
	}
	for _, c := range chains {
		if segments := t.ChainLinks(c.Name); len(segments) > 0 {
			links = append(links, VirtualLink{Name: ChainWay(c.Name), Ends: [2]string{c.From, c.To}, Bandwidth: segments[0].Bandwidth, Chain: c.Name})
		}
	}
	return links
}
