package lookup

import "sublet/vxswitch"

// NewStatic returns a lookup for n ports that learns nothing: frames go to planned
// stations, those to group addresses to all, and nothing to anybody else.
func NewStatic(n int, stations []Station) *Static {
	s := &Static{NewLearning(n, 0, 0)}
	s.all.Plan(stations)
	return s
}

// Static is the lookup of a bridge whose stations are all known.
type Static struct{ all *Learning }

// Forward finds where h goes.
func (s *Static) Forward(_ vxswitch.Time, in int, h *vxswitch.Header, out *vxswitch.PortSet) {
	if port, ok := s.all.knows(in, h); ok {
		out.Add(port)
	} else if h.Dst.Multicast() {
		*out = s.all.ports
	}
	out.Remove(in)
}
