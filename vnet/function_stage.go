package vnet

import "slices"

// A function that is absent in a stage keeps its place and its links, so that paths keep
// their numbers. It has no node, and nothing is booked for it.

// ComesAndGoes says whether stages bring a function or take it away.
func (r Request) ComesAndGoes(function string) bool {
	return slices.ContainsFunc(r.Stages, func(s Stage) bool {
		_, stated := s.Functions[function]
		return stated
	})
}

// withPresence has the functions that a stage brings or takes away be there, or absent.
func (t Topology) withPresence(there map[string]bool) Topology {
	for i, n := range t.Nodes {
		if is, stated := there[n.Name]; stated && n.IsFunction() {
			f := *n.Function
			f.Absent = !is
			t.Nodes[i].Function = &f
		}
	}
	return t
}

// withoutAbsent leaves nothing to book of functions that are absent.
func (t Topology) withoutAbsent() Topology {
	nodes := slices.Clone(t.Nodes)
	for i, n := range nodes {
		if n.IsFunction() && n.Function.Absent {
			nodes[i].CPU, nodes[i].Memory = 0, 0
		}
	}
	t.Nodes = nodes
	return t
}

// absent says whether a function is not there.
func (t Topology) absent(function string) bool {
	n, ok := t.Node(function)
	return ok && n.IsFunction() && n.Function.Absent
}

// functionsStage checks which functions a stage brings and takes away; -1 is the one
// before the first stage. What packets go through is there.
func (c *checker) functionsStage(r Request, stage int) error {
	path, there, changed := "", r.At(stage), map[string]bool(nil)
	if stage >= 0 {
		path, changed = at("stages", stage)+".", r.Stages[stage].Functions
	}
	for _, name := range sortedKeys(changed) {
		if n, ok := r.Node(name); !ok || !n.IsFunction() {
			return fieldf(key(path+"functions", name), "there is no function %q: %s", name, suggestFunction(name, r.Topology))
		}
	}
	for i, chain := range r.ChainsAt(stage) {
		for _, name := range chain.Via {
			if chain.Paused || !there.absent(name) {
				continue
			}
			where := at("chains", i) + ".via"
			if _, here := changed[name]; here {
				where = key(path+"functions", name)
			}
			return fieldf(where, "chain %s leads through %s%s, where it is absent: pause the chain there, or have the function be there", chain.Name, name, r.inStage(stage))
		}
	}
	for i, n := range there.Nodes {
		if n.IsFunction() && n.Function.Standby != "" && !n.Function.Absent && there.absent(n.Function.Standby) {
			return fieldf(at("nodes", i)+".function.standby", "%s is absent%s while %s is there: have both be there, or both be absent", n.Function.Standby, r.inStage(stage), n.Name)
		}
	}
	return nil
}

// inStage names a stage, in words.
func (r Request) inStage(stage int) string {
	if stage < 0 {
		return " at the start"
	}
	return " in stage " + r.Stages[stage].Name
}
