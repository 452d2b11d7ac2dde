// Package sim drives the switch engine in virtual time: traffic generators
// make arrivals, outputs ask the engine for the next packet whenever their
// line is free, and every packet is counted on its way.
//
// Data passes in one direction:
//
//	Scenario --streams--> Arrival --engine--> Departure --Tally--> Figures
//	  one per point,       per input,          per output            per virtual
//	  made by vary         merged by time                            switch and port
//
// Nothing here reads a file or a clock or starts a goroutine: a run is a
// function of a scenario and a seed, so callers use as many cores as they like
// and get the same numbers.
//
// Time. Instants are whole nanoseconds since the start of a run. A packet
// arrives whole at one instant. An output sends one frame at a time, for
// exactly size*8/rate seconds; what is left below a nanosecond is carried to
// the next frame, so that rates are exact. At equal instants arrivals come
// first, in the order of their streams, then the outputs in ascending order.
// The delay of a packet is the time from its arrival to the instant at which
// its transmission begins (thesis 4.4.1.2).
//
// Ports are those of the hosting switch and count from 1.
package sim
