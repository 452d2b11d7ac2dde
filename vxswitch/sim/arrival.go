package sim

import "time"

// Arrival is one packet that reaches the switch.
type Arrival struct {
	At       time.Duration
	Sequence uint64 // counts the arrivals of a run from 0
	Switch   int32  // index of the virtual switch
	Input    int16  // port, from 1
	Output   int16  // port, from 1
	Size     int32  // frame in bytes
}

// Departure is one packet that begins to leave.
type Departure struct {
	At time.Duration // when its transmission begins
	Arrival
}

// Delay is the time the packet spent in the switch.
func (d *Departure) Delay() time.Duration { return d.At - d.Arrival.At }

// source gives arrivals in the order of their times. next fills a and is
// false when there are no more.
type source interface {
	next(a *Arrival) bool
}

// recorded is arrivals that are known beforehand.
type recorded struct {
	rest []Arrival
	stop time.Duration
}

func (r *recorded) next(a *Arrival) bool {
	if len(r.rest) == 0 || r.rest[0].At >= r.stop {
		return false
	}
	*a, r.rest = r.rest[0], r.rest[1:]
	return true
}
