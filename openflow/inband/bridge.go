package inband

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"time"
)

const (
	mostStations = 1024
	stationAge   = int64(300 * time.Second)
	again        = int64(500 * time.Millisecond) // in which a frame that comes again is the same one by another way; ARP asks again after 1 s
	mostSeen     = 8192
	floodTime    = int64(100 * time.Millisecond)
	mostFloods   = 100 // of a port in floodTime
	firstAsk     = int64(25 * time.Millisecond)
	lastAsk      = int64(250 * time.Millisecond) // between questions for who is not found
	asksOfTurn   = 8                             // they take longer than a second, in which Linux believes no other address (locktime of arp(7))
	asksOfHint   = 6
	hintAfter    = int64(2 * time.Second) // one who asks may know what others do not: they ask too, and all are done by then
	shortest     = 60                     // bytes of a frame
)

type mac [6]byte

var everybody = mac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

func (m mac) group() bool { return m[0]&1 != 0 }

// Bridge is the learning switch of control, which knows nothing of that of data. It
// needs no tree: a frame that comes a second time, by another way, ends, and senders
// are where their frames came from first (as ARP-Path bridges do it, G. Ibanez et al.,
// 2011). So a ring is no loop, and has another way when a link is gone.
type Bridge struct {
	filter *Filter
	local  uint32
	// Found is called when a controller or gateway is found, or found elsewhere.
	Found func()

	stations map[mac]station
	where    map[netip.Addr]mac
	seen     map[uint64]int64
	order    [mostSeen]uint64 // of seen, a ring
	oldest   int
	seed     maphash.Seed
	floods   map[uint32]*floods

	questions map[netip.Addr][]byte // as the local stack has asked them last
	last      int64                 // when they were asked
	next      int64                 // when they are to be
	wait      int64
	left      int // questions that are asked though all are found
	serial    uint32
	hinted    int64 // when another one's question was last a reason to ask
}

type station struct {
	port uint32
	when int64
}

type floods struct {
	since int64
	n     int
}

// NewBridge makes one for a switch whose local port has a number.
// Seed is what it tells frames apart by.
func NewBridge(f *Filter, local uint32, seed maphash.Seed) *Bridge {
	return &Bridge{
		filter: f, local: local, seed: seed, stations: make(map[mac]station), where: make(map[netip.Addr]mac),
		seen: make(map[uint64]int64), floods: make(map[uint32]*floods), questions: make(map[netip.Addr][]byte), wait: firstAsk, hinted: -hintAfter,
	}
}

// Receive appends to a list the ports by which a frame of control leaves, of ports
// by which it may. Other frames leave by none.
func (b *Bridge) Receive(now int64, from uint32, frame []byte, ports, to []uint32) []uint32 {
	c, is := b.filter.Look(frame)
	if !is {
		return to
	}
	target, sender := mac(frame), mac(frame[6:])
	if sender.group() || b.again(now, frame) || !b.learn(now, sender, from) {
		return to
	}
	b.note(now, from, c, sender, frame)
	if at, known := b.stations[target]; known && !target.group() {
		if at.port != from {
			to = append(to, at.port)
		}
		return to
	}
	if !b.mayFlood(now, from) {
		return to
	}
	for _, port := range ports {
		if port != from {
			to = append(to, port)
		}
	}
	return to
}

// again says whether a frame was here a moment ago.
func (b *Bridge) again(now int64, frame []byte) bool {
	h := maphash.Bytes(b.seed, frame[:min(len(frame), 128)]) // of TCP a sum of the rest is in there
	if when, is := b.seen[h]; is && now-when < again {
		return true
	}
	if _, is := b.seen[h]; !is {
		delete(b.seen, b.order[b.oldest])
		b.order[b.oldest] = h
		b.oldest = (b.oldest + 1) % mostSeen
	}
	b.seen[h] = now
	return false
}

// learn notes where a station is; false: nobody but the local stack has its address.
func (b *Bridge) learn(now int64, sender mac, from uint32) bool {
	before, known := b.stations[sender]
	if known && before.port == b.local && from != b.local {
		return false
	}
	if !known && len(b.stations) >= mostStations && from != b.local {
		return true
	}
	b.stations[sender] = station{from, now}
	if known && before.port != from && b.leads(sender) {
		b.found(now)
	}
	return true
}

// leads says whether a station is or leads to a controller.
func (b *Bridge) leads(at mac) bool {
	for _, m := range b.where {
		if m == at {
			return true
		}
	}
	return false
}

// note remembers who answers for a controller, and what the local stack asks.
func (b *Bridge) note(now int64, from uint32, c Control, sender mac, frame []byte) {
	if from == b.local {
		if c.Asks {
			b.asked(now, c.Asked, frame)
		}
		return
	}
	if c.From && b.where[c.Asked] != sender {
		b.where[c.Asked] = sender
		b.found(now)
	}
	if c.Asks && mac(frame).group() && now-b.hinted > hintAfter {
		b.hinted = now
		b.ask(now)
		b.wait, b.left = lastAsk, asksOfHint
	}
}

// asked keeps a question of the local stack. One of ARP that it asked whom it knows
// is for all, too.
func (b *Bridge) asked(now int64, about netip.Addr, frame []byte) {
	if !mac(frame).group() && !about.Is4() {
		return
	}
	if _, before := b.questions[about]; !before {
		b.ask(now + firstAsk) // it has just asked itself
	}
	q := append(b.questions[about][:0], frame...)
	if about.Is4() {
		copy(q, everybody[:])
	}
	b.questions[about] = q
}

func (b *Bridge) found(now int64) {
	b.ask(now)
	if b.Found != nil {
		b.Found()
	}
}

// ask has questions asked again from a time on, and several times: a neighbour may
// not be there yet.
func (b *Bridge) ask(now int64) {
	b.next, b.wait, b.left = max(now, b.last+firstAsk), firstAsk, asksOfTurn
}

// Changed takes note of a port that came, went or has or lost its link.
func (b *Bridge) Changed(now int64, port uint32, up bool) {
	if !up {
		for m, at := range b.stations {
			if at.port == port && port != b.local {
				delete(b.stations, m)
			}
		}
		delete(b.floods, port)
	}
	b.ask(now)
}

// Questions are frames that are to leave as if the local stack had sent them: it asks
// for controllers again, so that these are found at once when there is a way, and
// others learn by which way this switch is reached now. next is when to ask again.
func (b *Bridge) Questions(now int64) (list [][]byte, next int64) {
	b.expire(now)
	if now < b.next || len(b.questions) == 0 {
		return nil, b.next
	}
	for addr, q := range b.questions {
		if b.left > 0 || !b.known(addr) {
			list = append(list, b.stamped(q))
		}
	}
	b.left = max(b.left-1, 0)
	if b.next = now + b.wait; len(list) > 0 {
		b.last = now
	}
	b.wait = min(2*b.wait, lastAsk)
	return list, b.next
}

func (b *Bridge) known(addr netip.Addr) bool {
	_, is := b.stations[b.where[addr]]
	return is
}

// stamped is a question that no other is the same as: what is behind its end is
// nobody's.
func (b *Bridge) stamped(q []byte) []byte {
	b.serial++
	fresh := make([]byte, max(shortest, len(q)+4))
	copy(fresh, q)
	binary.BigEndian.PutUint32(fresh[len(fresh)-4:], b.serial)
	return fresh
}

func (b *Bridge) expire(now int64) {
	for m, at := range b.stations {
		if now-at.when > stationAge && at.port != b.local {
			delete(b.stations, m)
		}
	}
}

// mayFlood bounds what a port has sent to all others.
func (b *Bridge) mayFlood(now int64, from uint32) bool {
	f := b.floods[from]
	if f == nil || now-f.since > floodTime {
		b.floods[from] = &floods{since: now, n: 1}
		return true
	}
	f.n++
	return f.n <= mostFloods
}
