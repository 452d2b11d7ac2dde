package embed

// Tenths of the budget that a request may take. Most need less, for small
// networks cannot be improved for long; so the largest and those for which
// there is no place may take more.
const (
	toImprove  = 22
	toPreserve = 4   // after that
	atLeast    = 8   // of it, where a first embedding took long
	toFind     = 22  // a first embedding: to refuse is worse than to be slow
	ifRoomy    = 200 // where few hosts are ruled out by themselves, there is one more likely than not
)

// solve looks for an embedding with an amount of work, and leaves the best it
// finds in place. What greedy attempts do not find, small networks get from
// trying everything. Patience is how many times as long as usual it may take
// to find a first one.
func (s *search) solve(work, patience int) bool {
	begun := s.spent()
	if !s.attempts(s.until(s.toFind(patience)*work/10)) && (len(s.host) > mostExhaust || !s.exhaust(work)) {
		return false
	}
	s.improve(s.until(max(begun+toImprove*work/10-s.spent(), atLeast*work/10)))
	s.preserve(s.until(toPreserve * work / 10))
	return true
}

// toFind is what a first embedding may take, in tenths of the budget.
func (s *search) toFind(patience int) int {
	free := 0
	for _, hosts := range s.candidates {
		free += len(hosts)
	}
	if 4*free > 3*len(s.host)*len(s.residual.sub.Hosts) {
		return max(ifRoomy, toFind*patience)
	}
	return toFind * patience
}

// mostExhaust is the most nodes for which trying everything is of use; the bounds
// of the search hold whatever their number.
const mostExhaust = 8
