package agent

import "time"

// Standing is how the loop of an agent stands: what it shall do, what it did, and
// what it cannot do.
type Standing struct {
	Planned, Applied uint64 // revisions; 0: no plan is known, none was reached
	Passes, Steps    uint64 // since the agent started
	Took             time.Duration
	Problems         int // of the last pass
	Problem          string
}

// Standing is that of the last pass.
func (a *Agent) Standing() Standing {
	if s := a.standing.Load(); s != nil {
		return *s
	}
	return Standing{}
}

// stand notes a pass.
func (l *loop) stand() {
	s := l.Standing()
	s.Planned, s.Applied = l.want.Revision, l.applied
	s.Passes, s.Steps, s.Took = s.Passes+1, s.Steps+uint64(l.result.Steps), s.Took+l.result.Took
	s.Problems, s.Problem = len(l.result.Errors), ""
	if s.Problems > 0 {
		s.Problem = l.result.Errors[0].String()
	}
	l.standing.Store(&s)
}
