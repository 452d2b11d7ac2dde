package vnet

import (
	"maps"
	"slices"
)

// sameBack is the end of the name of a chain that leads back what answers another one.
const sameBack = "-back"

// fillBack gives each chain whose answers pass several functions in the same order a
// chain of their own for these, behind all others. What packets of both are in a
// function that both lead through their flows tell, as with any two chains.
func (r *Request) fillBack() {
	if !slices.ContainsFunc(r.Chains, r.comesBackAlone) {
		return
	}
	r.Chains = slices.Clone(r.Chains)
	for i, c := range r.Chains {
		if !r.comesBackAlone(c) {
			continue
		}
		back := r.Back(c)
		back.Name, back.Via, back.Reverse = c.Name+sameBack, c.Via, ReverseNone
		r.Chains[i].Reverse = ReverseNone
		r.changeAlike(c.Name, back.Name)
		r.Chains = append(r.Chains, back)
	}
}

// changeAlike has stages change a chain as they change another one.
func (r *Request) changeAlike(chain, other string) {
	r.Stages = slices.Clone(r.Stages)
	for i, s := range r.Stages {
		if change, is := s.Chains[chain]; is {
			r.Stages[i].Chains = maps.Clone(s.Chains)
			r.Stages[i].Chains[other] = change
		}
	}
}

// comesBackAlone says whether answers to a chain's packets can have a chain of their own:
// its functions do with them what they do with other packets.
func (r *Request) comesBackAlone(c Chain) bool {
	return c.Reverse == ReverseSame && len(c.Via) > 1 && !c.Unordered && c.Match.DSCP == nil && !(c.Match.Is6() && !c.Match.Src.IsValid()) &&
		!slices.ContainsFunc(c.Via, func(name string) bool {
			n, ok := r.Node(name)
			return !ok || !n.IsFunction() || slices.Contains([]FunctionKind{FunctionNAT, FunctionBalancer, FunctionClassifier}, n.Function.Kind)
		})
}
