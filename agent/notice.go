package agent

import (
	"maps"
	"slices"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// touch tells of the leases that were changed, once each.
func (a *Agent) touch(done []plan.Step) {
	if a.Touched == nil {
		return
	}
	told := map[vnet.LeaseID]bool{{}: true} // the host's own items are of none
	for _, s := range done {
		if id := s.Item.LeaseID(); s.Item.Kind() != plan.KindReach && !told[id] {
			told[id] = true
			a.Touched(id)
		}
	}
}

// recut reads anew what does not carry; true: it is another list.
func (a *Agent) recut() bool {
	if a.Cuts == nil {
		return false
	}
	now := a.Cuts()
	if slices.Equal(now, a.cuts) {
		return false
	}
	a.say(a.cuts, now)
	a.cuts = now
	return true
}

// mended takes in what parts put right by themselves, and gives what of a pass is left
// to be a repair.
func (a *Agent) mended(done []plan.Step) (mended, left []plan.Step) {
	left = done
	for _, part := range a.Parts {
		m, mends := part.(Mender)
		if !mends {
			continue
		}
		mended = append(mended, m.Mended()...)
		left = slices.DeleteFunc(slices.Clone(left), func(s plan.Step) bool { return slices.Contains(part.Kinds(), s.Item.Kind()) })
	}
	for _, s := range mended {
		a.Log.Warn("put right", "lease", s.Item.LeaseID(), "what", report.RepairText(s))
	}
	return mended, left
}

// unbuilt is what plans changed and no look has found in place yet: items by kind and key,
// and leases in which something was done.
type unbuilt struct {
	items  map[string]bool
	leases map[vnet.LeaseID]bool
}

// has says that a step goes on building. What one item is told may change others of its
// lease: routing follows its links.
func (u unbuilt) has(s plan.Step) bool { return u.items[keyOf(s)] || u.leases[s.Item.LeaseID()] }

// build notes what is not built yet, and gives what was not before a pass. What a new plan
// changes is built once a look finds nothing to do about it: until then a step goes on
// building, also one that failed at first or comes late on a busy machine.
func (a *Agent) build(r Result, changed bool) (before unbuilt) {
	before = a.unbuilt
	now, blind := unbuilt{make(map[string]bool), make(map[vnet.LeaseID]bool)}, false
	for _, s := range r.Done {
		if changed || before.items[keyOf(s)] {
			now.items[keyOf(s)] = true
		}
		id := s.Item.LeaseID()
		if id != (vnet.LeaseID{}) && s.Item.Kind() != plan.KindReach && (changed || before.leases[id]) {
			now.leases[id] = true
		}
	}
	for _, e := range r.Errors {
		if changed || before.items[e.Item()] {
			now.items[e.Item()] = true
		}
		blind = blind || e.Op == plan.Observe
	}
	if changed || blind { // nothing says that the rest is in place
		maps.Copy(now.items, before.items)
		maps.Copy(now.leases, before.leases)
	}
	a.unbuilt = now
	return before
}

// repaired notes what was made as planned again, for the report. To begin to
// look at something is no repair, nor is what a loop on this host wants anew, nor
// what was still being built.
func (a *Agent) repaired(done []plan.Step, building unbuilt) {
	for _, s := range done {
		if k := s.Item.Kind(); k == plan.KindReach || plan.OwnerOf(k) != plan.ByServer || a.expected(s) || building.has(s) {
			continue
		}
		a.drift++
		id := s.Item.LeaseID()
		if id == (vnet.LeaseID{}) {
			continue
		}
		i := slices.IndexFunc(a.repairs, func(r report.Repair) bool { return r.Lease == id })
		if i < 0 {
			i = len(a.repairs)
			a.repairs = append(a.repairs, report.Repair{Lease: id})
		}
		a.repairs[i].Count++
		a.repairs[i].Text = report.RepairText(s)
	}
}

// expected says that a part waited for a step.
func (a *Agent) expected(s plan.Step) bool {
	return slices.ContainsFunc(a.Parts, func(p Part) bool {
		e, expects := p.(Expecter)
		return expects && slices.Contains(p.Kinds(), s.Item.Kind()) && e.Expected(s)
	})
}
