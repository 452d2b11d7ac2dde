package file

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	"sublet/vnet"
)

// stagedChain is a chain as it is in some stages: with other functions, or another match,
// than in others.
type stagedChain struct {
	vnet.Chain
	written string // where in the text
	rate    vnet.Rate
	paused  bool // both in the stage that was read last
}

// chainForms puts behind each chain to which stages give other functions or another match
// a chain of its own for each of these forms, which rests until then. Stages pause one form
// and have the other go on, so hosts have both, and only the host where the chain begins
// changes what it does. It returns where in the text each chain is written.
func (f request) chainForms(r *vnet.Request) (written []string) {
	chains, places := r.Chains, f.chainPlaces()
	r.Chains = nil
	for i, c := range chains {
		for _, form := range f.formsOf(stagedChain{c, places[i], c.Rate, c.Paused}, r.Stages) {
			r.Chains, written = append(r.Chains, form.Chain), append(written, form.written)
		}
	}
	return written
}

// formsOf are the forms that stages give a chain, first the one that it has before them.
// What stages make of the chain they make of the forms then.
func (f request) formsOf(c stagedChain, stages []vnet.Stage) []stagedChain {
	forms, now, paused := []stagedChain{c}, 0, c.Paused
	if !slices.ContainsFunc(f.Stages, func(s stage) bool { return s.Chains[c.Name].isForm() }) {
		return forms
	}
	for i, s := range f.Stages {
		stated, change := s.Chains[c.Name], stages[i].Chains[c.Name]
		if !stated.isForm() && change == (vnet.ChainChange{}) {
			continue // of another chain, or what is refused since it states nothing
		}
		if delete(stages[i].Chains, c.Name); change.Paused != nil {
			paused = *change.Paused
		}
		next := stated.form(forms[now].Chain)
		to := slices.IndexFunc(forms, func(f stagedChain) bool {
			return slices.Equal(f.Via, next.Via) && reflect.DeepEqual(f.Match, next.Match)
		})
		if to < 0 {
			next.Name, next.Rate, next.Paused, to = c.Name+"-"+string(s.Name), forms[now].rate, true, len(forms)
			forms = append(forms, stagedChain{next, index("stages", i) + ".chains[" + strconv.Quote(c.Name) + "]", next.Rate, true})
		}
		rate := cmp.Or(change.Rate, forms[now].rate)
		if to != now {
			forms[now].becomes(&stages[i], forms[now].rate, true)
		}
		forms[to].becomes(&stages[i], rate, paused)
		if now = to; len(stages[i].Chains) == 0 {
			stages[i].Chains = nil
		}
	}
	return forms
}

// becomes has a stage give the form a rate, and pause it or have it go on.
func (f *stagedChain) becomes(s *vnet.Stage, rate vnet.Rate, paused bool) {
	var change vnet.ChainChange
	if rate != f.rate {
		change.Rate = rate
	}
	if paused != f.paused {
		change.Paused = &paused
	}
	if f.rate, f.paused = rate, paused; change != (vnet.ChainChange{}) {
		put(&s.Chains, f.Name, change)
	}
}

// isForm says whether a stage states functions or a match.
func (f chainChange) isForm() bool { return f.Via != nil || f.Match != nil }

// form is a chain with the functions and the match that are stated.
func (f chainChange) form(c vnet.Chain) vnet.Chain {
	if f.Via != nil {
		c.Via = words(f.Via)
	}
	if f.Match != nil {
		c.Match = f.Match.flow()
	}
	return c
}
