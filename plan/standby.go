package plan

// StandingBy is the link beside another of its key on a host; false: that is the same,
// or has the places of its ends.
func (l VxLink) StandingBy(is VxLink) (VxLink, bool) {
	if Equal(l, is) {
		return l, false
	}
	l.Standby = true
	for i, e := range l.Ends {
		has := is.Ends[i]
		switch {
		case e.Place != has.Place:
		case e.samePort(has):
			l.Ends[i] = End{Join: has.portOf(), Impair: has.Impair, Down: has.Down, Place: has.Place}
		default:
			return l, false
		}
	}
	return l, l.Ends[0].Join == nil || l.Ends[1].Join == nil
}

// portOf is the port of an end that is one, or joins one.
func (e End) portOf() *Port {
	if e.Join != nil {
		return e.Join
	}
	return e.Port
}

func (e End) samePort(other End) bool {
	a, b := e.portOf(), other.portOf()
	return a != nil && b != nil && a.Namespace == b.Namespace && a.Interface == b.Interface
}
