package embed

// solve looks for an embedding with an amount of work, and leaves the best it
// finds in place. A first one may take twice the work: to refuse is worse than
// to be slow. What greedy attempts do not find, small networks get from trying
// everything.
func (s *search) solve(work int) bool {
	begun := s.spent()
	if !s.attempts(begun+s.lenience()*work) && (len(s.host) > mostExhaust || !s.exhaust(work)) {
		return false
	}
	s.improve(begun + work)
	return true
}

// lenience is how many times the budget a first embedding may take: more where
// few hosts are ruled out by themselves, for then there is one more likely
// than not.
func (s *search) lenience() int {
	free := 0
	for _, hosts := range s.candidates {
		free += len(hosts)
	}
	if 4*free > 3*len(s.host)*len(s.left.sub.Hosts) {
		return 20
	}
	return 2
}

// mostExhaust is the most nodes for which trying everything is of use.
const mostExhaust = 5
