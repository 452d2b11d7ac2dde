package file

import (
	"fmt"
	"maps"
	"slices"

	"sublet/vnet"
)

// bring puts the functions and chains that a stage, written at path, brings into the
// request, absent and paused until then.
func (f stage) bring(r *vnet.Request, made *vnet.Stage, path string) error {
	for _, name := range slices.Sorted(maps.Keys(f.Functions)) {
		put(&made.Functions, name, !*f.Functions[name].Absent)
	}
	if f.Add == nil {
		return nil
	}
	for i, one := range f.Add.Functions {
		where := index(path+".add.functions", i)
		switch _, again := r.Node(string(one.Name)); {
		case again:
			return &vnet.FieldError{Path: where + ".name", Problem: fmt.Sprintf("there is a node or function %q already: choose another name, or bring a function back by functions: {%s: {absent: false}} of the stage", one.Name, one.Name)}
		case f.Functions[string(one.Name)].Absent != nil:
			return &vnet.FieldError{Path: path + ".functions." + string(one.Name), Problem: "the stage brings it: leave it out"}
		case one.Absent:
			return &vnet.FieldError{Path: where + ".absent", Problem: "the stage brings it: leave one of them out"}
		}
		n, err := one.node(where)
		if err != nil {
			return err
		}
		n.Function.Absent = true
		r.Nodes = append(r.Nodes, n)
		put(&made.Functions, n.Name, true)
	}
	for i, one := range f.Add.Chains {
		where, goesOn := index(path+".add.chains", i), one.Paused
		c, err := one.chain(where)
		if err != nil {
			return err
		}
		c.Paused = true
		r.Chains = append(r.Chains, c)
		put(&made.Chains, c.Name, vnet.ChainChange{Paused: &goesOn})
	}
	return nil
}

// takeAway has functions and chains that a stage removes be absent and paused from then on.
func (f stage) takeAway(r vnet.Request, made *vnet.Stage) {
	paused := true
	made.Remove = slices.DeleteFunc(made.Remove, func(name string) bool {
		n, isNode := r.Node(name)
		_, isChain := r.ChainOf(name)
		switch {
		case isNode && n.IsFunction():
			put(&made.Functions, name, false)
		case !isNode && isChain && !f.states(name):
			put(&made.Chains, name, vnet.ChainChange{Paused: &paused})
		default:
			return false
		}
		return true
	})
	if len(made.Remove) == 0 {
		made.Remove = nil
	}
}

// states says whether the stage states something of a chain.
func (f stage) states(chain string) bool {
	_, is := f.Chains[chain]
	return is
}

// chainPlaces are where in the text each chain is written, in the order of the request.
func (f request) chainPlaces() []string {
	return f.places("chains", len(f.Chains), func(a addition) int { return len(a.Chains) })
}

// functionPlaces are those of functions.
func (f request) functionPlaces() []string {
	return f.places("functions", len(f.Functions), func(a addition) int { return len(a.Functions) })
}

// places are where elements of a list are written, at the start and where stages add some.
func (f request) places(list string, n int, added func(addition) int) (places []string) {
	for i := range n {
		places = append(places, index(list, i))
	}
	for i, s := range f.Stages {
		if s.Add == nil {
			continue
		}
		for k := range added(*s.Add) {
			places = append(places, index(index("stages", i)+".add."+list, k))
		}
	}
	return places
}
