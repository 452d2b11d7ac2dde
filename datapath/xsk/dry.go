package xsk

import "sync/atomic"

// Dry is a socket that is none, for tests: memory and rings, and no kernel.
type Dry struct{ *Socket }

// NewDry makes one whose file is fd.
func NewDry(fd int) Dry {
	s := &Socket{fd: fd, out: -1, direct: true, chunk: 2048, memory: make([]byte, (arrivals+departures)*2048)}
	s.fill, s.gone = dryRing[uint64](arrivals), dryRing[uint64](departures)
	s.arrived, s.leaving = dryRing[xdpDesc](arrivals), dryRing[xdpDesc](departures)
	s.stock()
	return Dry{s}
}

func dryRing[T uint64 | xdpDesc](n int) ring[T] {
	return ring[T]{produced: new(uint32), consumed: new(uint32), flags: new(uint32), slots: make([]T, n)}
}

// Arrive has a frame of n bytes arrive, which write writes.
func (d Dry) Arrive(n int, write func([]byte)) {
	at := *d.fill.at(*d.fill.consumed)
	*d.fill.consumed++
	write(d.memory[at:][:n])
	p := *d.arrived.produced
	*d.arrived.at(p) = xdpDesc{Addr: at, Len: uint32(n)}
	atomic.StoreUint32(d.arrived.produced, p+1)
}

// Depart has what was sent be gone; see, if it is not nil, is given each frame.
func (d Dry) Depart(see func([]byte)) {
	for c := *d.leaving.consumed; c != *d.leaving.produced; c++ {
		desc := d.leaving.at(c)
		if see != nil {
			see(d.memory[desc.Addr:][:desc.Len])
		}
		*d.gone.at(*d.gone.produced) = desc.Addr
		*d.gone.produced++
	}
	*d.leaving.consumed = *d.leaving.produced
}
