package vxswitch

import "time"

// Time is virtual time in nanoseconds; its zero is the driver's.
type Time int64

// Forever is later than everything.
const Forever Time = 1<<63 - 1

// Add returns t plus d, Forever at most.
func (t Time) Add(d time.Duration) Time {
	if s := t + Time(d); s >= t || d < 0 {
		return s
	}
	return Forever
}

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// ID names a virtual switch while it lives on the switch. IDs are small
// numbers below Config.MaxSwitches and are used again after a switch is gone.
type ID int

// Packet describes a frame. The driver fills Ref, Flow, Seq, Size and In.
type Packet struct {
	Ref   uint64 // the driver's: buffer number, nothing the engine reads
	Flow  uint64 // the driver's: the flow whose order must hold, for schedulers that look
	Seq   uint64 // the driver's: sequence number
	Order uint64 // set by Enqueue: number of the arrival on the whole switch, from 1
	At    Time   // set by Enqueue: when it arrived
	Due   Time   // the driver's: since when it waited outside because of Ready; 0: it did not
	Size  int32  // bytes of frame, 14-byte header included; what buffers, rates and quanta count
	In    int16  // port of the virtual switch it came in by
	Out   int16  // set by Enqueue: port of the virtual switch it leaves by
}

// Departure is a frame that an output has begun to send.
type Departure struct {
	Packet
	Switch ID
	Port   int  // physical output
	Start  Time // dequeued: first bit on the wire. Start - At is the delay of Anhalt (thesis, section 4.4.2.1)
	End    Time // last bit sent; the output is free again
}

// Cause is why a frame was dropped; None means it was queued.
type Cause uint8

// The causes, in the order a frame meets them.
const (
	None        Cause = iota
	Unknown           // lookup 1: no virtual switch claims it
	Ended             // its switch's lifetime is over, has not begun, or it is being removed
	Policed           // above the capacity of the virtual input port
	NoRoute           // lookup 2 knows no output
	Unreachable       // the forwarding matrix forbids it
	Full              // no room in the virtual crosspoint buffer
	Early             // the queue manager refused it on arrival (RED)
	Late              // the queue manager dropped it at the head (CoDel)
	Reclaimed         // it was queued in borrowed room that its owner called back
	NumCauses
)

var causeNames = [NumCauses]string{"none", "unknown", "ended", "policed", "no-route", "unreachable", "full", "early", "late", "reclaimed"}

func (c Cause) String() string { return causeNames[c] }
