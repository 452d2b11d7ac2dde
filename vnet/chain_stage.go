package vnet

import (
	"maps"
	"slices"
	"strings"
)

// ChainChange is what a stage makes of a chain.
type ChainChange struct {
	Rate   Rate  `json:"rate_bps,omitempty"` // 0: as before
	Paused *bool `json:"paused,omitempty"`   // nil: as before
}

// String says what changes, in words: "20Mbit", "paused", "20Mbit, goes on".
func (c ChainChange) String() string {
	var words []string
	if c.Rate > 0 {
		words = append(words, c.Rate.String())
	}
	if c.Paused != nil && *c.Paused {
		words = append(words, "paused")
	} else if c.Paused != nil {
		words = append(words, "goes on")
	}
	return strings.Join(words, ", ")
}

// ChainsAt are the chains as they are in a stage; -1 is the one before the first stage.
func (r Request) ChainsAt(stage int) []Chain {
	chains := r.Chains
	for _, s := range r.Stages[:stage+1] {
		if len(s.Chains) == 0 {
			continue
		}
		chains = slices.Clone(chains)
		for i, c := range chains {
			change := s.Chains[c.Name]
			if change.Rate > 0 {
				chains[i].Rate = change.Rate
			}
			if change.Paused != nil {
				chains[i].Paused = *change.Paused
			}
		}
	}
	return chains
}

// Chains are those of a lease as they are in its running stage.
func (l Lease) Chains() []Chain { return l.Request.ChainsAt(l.Stage) }

// withChainsAt is the request with the chains of a stage from the start on.
func (r Request) withChainsAt(stage int) Request {
	r.Chains = r.ChainsAt(stage)
	return r
}

// mostThrough is the most that chains through a function ask for together in any stage.
func (r Request) mostThrough(function string) (most Rate) {
	for stage := -1; stage < len(r.Stages); stage++ {
		most = max(most, r.withChainsAt(stage).through(function))
	}
	return most
}

// chainDemands are what links of chains ask for from a stage on: those of chains that it
// changes, and of functions through which these lead.
func (r Request) chainDemands(stage int) map[string][2]Bandwidth {
	changes := r.Stages[stage].Chains
	if len(changes) == 0 {
		return nil
	}
	at, demands := r.withChainsAt(stage), make(map[string][2]Bandwidth)
	changed := func(function string) bool {
		return slices.ContainsFunc(at.Chains, func(c Chain) bool {
			_, is := changes[c.Name]
			return is && slices.Contains(c.Via, function)
		})
	}
	for _, l := range r.Links {
		if _, is := changes[l.Chain]; is {
			if c, ok := at.ChainOf(l.Chain); ok {
				demands[l.Name] = c.Demand()
			}
		} else if n, ok := at.Node(l.Sender()); ok && n.IsFunction() && changed(n.Name) {
			demands[l.Name], _ = at.demandOf(n, l)
		}
	}
	return demands
}

// fillChainStages states of links of chains what stages that change chains ask for.
func (r *Request) fillChainStages() {
	stages := slices.Clone(r.Stages) // a caller may share them
	for i := range stages {
		demands := r.chainDemands(i)
		if len(demands) == 0 {
			continue
		}
		if stages[i].Links = maps.Clone(stages[i].Links); stages[i].Links == nil {
			stages[i].Links = demands
		}
		maps.Copy(stages[i].Links, demands)
	}
	r.Stages = stages
}

// forgetLink takes a link that goes out of the stages that state its rates.
func (r *Request) forgetLink(name string) {
	for i, s := range r.Stages {
		if _, stated := s.Links[name]; stated {
			r.Stages = slices.Clone(r.Stages)
			r.Stages[i].Links = maps.Clone(s.Links)
			delete(r.Stages[i].Links, name)
		}
	}
}

// followStages gives stages that change chains the rates that their links have there,
// where these are lower.
func (r *Request) followStages() {
	for i, s := range r.Stages {
		for _, c := range r.ChainsAt(i) {
			change, is := s.Chains[c.Name]
			if !is || c.Paused || c.Rate == 0 {
				continue
			}
			least := c.Rate
			for _, l := range r.ChainLinks(c.Name) {
				if b, stated := s.Links[l.Name]; stated {
					least = min(least, b[Forward].Min)
				}
			}
			if least < c.Rate {
				change.Rate = least
				r.Stages = slices.Clone(r.Stages)
				r.Stages[i].Chains = maps.Clone(r.Stages[i].Chains)
				r.Stages[i].Chains[c.Name] = change
			}
		}
	}
}

// chainStage checks what a stage makes of chains.
func (c *checker) chainStage(path string, r Request, stage int) error {
	s := r.Stages[stage]
	before := r.withChainsAt(stage - 1)
	for _, name := range sortedKeys(s.Chains) {
		where, change := key(path+".chains", name), s.Chains[name]
		chain, ok := before.ChainOf(name)
		switch {
		case !ok:
			return fieldf(where, "there is no chain %q: state it under chains, with paused: true if it begins with a stage", name)
		case change == ChainChange{}:
			return fieldf(where, "states nothing: state rate or paused")
		case change.Rate != 0 && chain.Rate == 0:
			return fieldf(where+".rate", "the chain has none to begin with (share: best), and keeps that: state a rate at the start, or leave this one out")
		}
		if err := checkRate(where+".rate", change.Rate, true); err != nil {
			return err
		}
	}
	at := r.withChainsAt(stage)
	for _, name := range sortedKeys(s.Chains) {
		chain, _ := at.ChainOf(name)
		for _, function := range chain.Via {
			n, _ := r.Node(function)
			if most, load := n.Function.Rate, at.through(function); most > 0 && load > most {
				return fieldf(key(path+".chains", name), "%s passes %s, and chains through it ask for %s in stage %q: lower rate, or raise that of the function", function, most, load, s.Name)
			}
		}
	}
	return c.chainStageLinks(path, r, stage)
}

// chainStageLinks checks that a stage states of links of chains what it makes of these.
func (c *checker) chainStageLinks(path string, r Request, stage int) error {
	s, want := r.Stages[stage], r.chainDemands(stage)
	for _, l := range r.Links {
		is, stated := s.Links[l.Name]
		if need, needed := want[l.Name]; l.Chain != "" && (stated != needed || is != need) {
			return fieldf(key(path+".links", l.Name), "is a link of chains (%s), whose rate follows them: leave it out, and state rates under chains of the stage", l.Chain)
		}
		_, impaired := s.Impair[l.Name]
		_, down := s.Down[l.Name]
		if l.Chain != "" && (impaired || down) {
			return fieldf(key(path+".links", l.Name), "is a link of chains (%s), and stages do not impair those or take them down: leave it out", l.Chain)
		}
	}
	return nil
}
