package lookup

import (
	"net/netip"
	"time"

	"sublet/vnet"
	"sublet/vxswitch"
)

// Defaults of Learning: the ageing time of IEEE 802.1Q, 8.8.3, and a size
// that no lease should need more than.
const (
	DefaultAge     = 300 * time.Second
	DefaultEntries = 8192
)

// Learning is the lookup of a learning bridge (IEEE 802.1Q). Frames to group
// addresses and to addresses not known go to all ports but their own. O(1); it
// allocates only to learn, and never holds more than Entries addresses: what a
// tenant invents beyond is flooded.
//
// Stations that are planned are known before they send: frames to them are
// never flooded, nobody else is believed to be them, and questions for their
// addresses (ARP, neighbour discovery) go to them alone.
type Learning struct {
	planned map[uint64]int     // ports, by key
	asked   map[netip.Addr]int // ports
	ports   vxswitch.PortSet
	age     vxswitch.Time
	entries int
	where   map[uint64]learned // by key
	order   []vxswitch.MAC     // what is known, for eviction of the aged
	hand    int                // in order: who is looked at next
}

type learned struct {
	port int
	at   vxswitch.Time
}

// NewLearning returns a learning lookup for n ports; zero age and entries
// take the defaults.
func NewLearning(n int, age time.Duration, entries int) *Learning {
	if age == 0 {
		age = DefaultAge
	}
	if entries == 0 {
		entries = DefaultEntries
	}
	l := &Learning{age: vxswitch.Time(age), entries: entries, where: make(map[uint64]learned, 64)}
	for i := range n {
		l.ports.Add(i)
	}
	return l
}

// Station is who is behind a port: planned.
type Station struct {
	Address netip.Addr // questions for which go to it alone, beside those for its link-local one; zero: none
	MAC     vxswitch.MAC
	Port    int
}

// Plan makes these the planned stations.
func (l *Learning) Plan(stations []Station) {
	l.planned, l.asked = make(map[uint64]int, len(stations)), make(map[netip.Addr]int, len(stations))
	for _, s := range stations {
		l.planned[key(s.MAC)] = s.Port
		l.asked[vnet.LinkLocal(s.MAC)] = s.Port
		if _, taken := l.asked[s.Address]; s.Address.IsValid() && !taken { // the first of a node's interfaces answers
			l.asked[s.Address] = s.Port
		}
	}
}

// Keep takes over what another lookup of the same ports has learned; that one
// must not be used any more.
func (l *Learning) Keep(was *Learning) {
	if l.entries == was.entries {
		l.where, l.order, l.hand = was.where, was.order, was.hand
	}
}

// Forward learns where h comes from and finds where it goes.
func (l *Learning) Forward(now vxswitch.Time, in int, h *vxswitch.Header, out *vxswitch.PortSet) {
	l.learn(now, in, h.Src)
	if port, ok := l.knows(in, h); ok {
		out.Add(port)
	} else if e, ok := l.where[key(h.Dst)]; ok && !h.Dst.Multicast() && now-e.at < l.age {
		out.Add(e.port)
	} else {
		*out = l.ports
	}
	out.Remove(in)
}

// knows is the port of the planned station that h is for, or asks for. Who asks
// for themselves tells the others.
func (l *Learning) knows(in int, h *vxswitch.Header) (port int, ok bool) {
	if len(l.planned) == 0 {
		return 0, false
	}
	if !h.Dst.Multicast() {
		port, ok = l.planned[key(h.Dst)]
	} else if h.Target.IsValid() {
		port, ok = l.asked[h.Target]
		ok = ok && port != in
	}
	return port, ok
}

func (l *Learning) learn(now vxswitch.Time, in int, src vxswitch.MAC) {
	if src.Multicast() {
		return
	}
	if _, fixed := l.planned[key(src)]; fixed {
		return
	}
	e, known := l.where[key(src)]
	if known && e.port == in && now-e.at < l.age/8 {
		return // nothing worth a write
	}
	if !known && !l.makeRoom(now) {
		return
	}
	l.where[key(src)] = learned{in, now}
	if !known {
		l.list(src)
	}
}

// list puts src where makeRoom left a place, or at the end.
func (l *Learning) list(src vxswitch.MAC) {
	if len(l.order) < l.entries {
		l.order = append(l.order, src)
	} else {
		l.order[l.hand] = src
		l.hand = (l.hand + 1) % l.entries
	}
}

// makeRoom says whether there is room for one more address. A full table is
// looked through like a clock, one entry a call: it gives up an aged one.
func (l *Learning) makeRoom(now vxswitch.Time) bool {
	if len(l.where) < l.entries {
		return true
	}
	if now-l.where[key(l.order[l.hand])].at < l.age {
		l.hand = (l.hand + 1) % l.entries
		return false
	}
	delete(l.where, key(l.order[l.hand]))
	return true
}

// key is an address as a number, which maps find sooner than six bytes.
func key(m vxswitch.MAC) uint64 {
	return uint64(m[0])<<40 | uint64(m[1])<<32 | uint64(m[2])<<24 | uint64(m[3])<<16 | uint64(m[4])<<8 | uint64(m[5])
}

// Len is the number of addresses known.
func (l *Learning) Len() int { return len(l.where) }
