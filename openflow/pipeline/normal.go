package pipeline

import "sublet/openflow/of13"

const (
	maxStations = 8192
	stationAge  = 300e9 // nanoseconds, as bridges have it
)

// stations is where the learning switch behind port NORMAL has seen addresses.
type stations map[station]seenAt

type station struct{ mac, vlan uint64 }

type seenAt struct {
	port uint32
	when int64
}

// normal forwards as a learning switch does.
func (s *Switch) normal(r *run) {
	if r.packet.fresh(); r.headless {
		return
	}
	if s.trace != nil && s.trace.ghost { // it is not to be learned from
		s.cannot(CauseMeter)
		return
	}
	vlan := r.key.Get(of13.VLANVID)
	from := station{r.key.Get(of13.EthSrc), vlan}
	s.see(Seen{What: SeenNormal, Depth: r.depth})
	if s.notes == nil && s.learned.learn(from, seenAt{r.inPort, r.now}) {
		s.invalidate(func(f *Flow) bool { return f.normal })
	}
	if s.trace != nil {
		s.trace.fix(of13.EthSrc, of13.EthDst, of13.VLANVID)
		s.trace.flow.normal, s.trace.flow.station = true, from
	}
	if to, known := s.learned[station{r.key.Get(of13.EthDst), vlan}]; known && s.ports[to.port] != nil {
		if to.port != r.inPort {
			s.send(r, to.port)
		}
		return
	}
	for _, n := range s.order {
		if n != r.inPort {
			s.send(r, n)
		}
	}
}

// learn notes where a station is, and says whether that is news. Group addresses
// are no stations.
func (l stations) learn(at station, seen seenAt) (news bool) {
	if at.mac>>40&1 != 0 {
		return false
	}
	before, known := l[at]
	if !known && len(l) >= maxStations {
		return false
	}
	l[at] = seen
	return !known || before.port != seen.port
}

// expire forgets stations, and says whether there were any to forget.
func (l stations) expire(now int64) (news bool) {
	for at, seen := range l {
		if now-seen.when > stationAge {
			delete(l, at)
			news = true
		}
	}
	return news
}
