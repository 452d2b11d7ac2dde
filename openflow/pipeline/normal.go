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
	r.packet.fresh()
	vlan := r.key.Get(of13.VLANVID)
	s.learned.learn(station{r.key.Get(of13.EthSrc), vlan}, seenAt{r.inPort, r.now})
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

// learn notes where a station is. Group addresses are none.
func (l stations) learn(at station, seen seenAt) {
	if at.mac>>40&1 != 0 {
		return
	}
	if _, known := l[at]; known || len(l) < maxStations {
		l[at] = seen
	}
}

func (l stations) expire(now int64) {
	for at, seen := range l {
		if now-seen.when > stationAge {
			delete(l, at)
		}
	}
}
