// Package vxswitch is VxSwitch: a crosspoint-queued switch that is leased in
// slices (F. Anhalt's thesis, chapter 4). A physical switch of N ports hosts V
// virtual switches. Each of them has its own ports, capacities, buffers at
// the crosspoints, queue managers, schedulers and lookup, and behaves like a
// switch of that size alone, whatever its neighbours do.
//
// The package is the engine only: it reads no clock and does no I/O. Time is
// an argument, so one engine serves a simulator (vxswitch/sim) and real ports
// (datapath/vxswitch/live).
//
// # A frame's way
//
//	Arrive: lookup 1 finds the virtual switch, lookup 2 (its own) the output
//	   -> may this input reach that output (forwarding matrix)?
//	   -> Enqueue: queue manager and room in the virtual crosspoint buffer (VXB)
//	   -> per output: the host's scheduler chooses the virtual switch,
//	      that switch's scheduler chooses the input whose VXB is served
//	   -> Depart
//
// A frame crosses exactly one queue. It is a descriptor (Packet); the engine
// neither reads nor copies payload, and allocates nothing per frame.
//
// # Time
//
// An output that is free and has something to send decides at once, so of two
// frames that arrive at the same instant the first one called wins an idle
// output. A driver keeps one order: everything that departs at or before t,
// then the arrivals of t:
//
//	for {
//		d, ok := s.Depart(t) // earliest first, all outputs
//		if !ok { break }
//		...
//	}
//	s.Enqueue(t, vs, out, p)
//
// A frame leaves its buffer when its transmission starts (Departure.Start);
// the frame on the wire is in no buffer. Transmission times are exact: what a
// nanosecond cuts off is carried over to the output's next frame.
package vxswitch
