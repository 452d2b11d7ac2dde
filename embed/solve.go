package embed

// solve looks for an embedding with an amount of work, and leaves the best it
// finds in place. A first one may take twice the work: to refuse is worse than
// to be slow. What greedy attempts do not find, small networks get from trying
// everything.
func (s *search) solve(work int) bool {
	begun := s.spent()
	if !s.attempts(begun+2*work) && (len(s.host) > mostExhaust || !s.exhaust(work)) {
		return false
	}
	s.improve(begun + work)
	return true
}

// mostExhaust is the most nodes for which trying everything is of use.
const mostExhaust = 5
