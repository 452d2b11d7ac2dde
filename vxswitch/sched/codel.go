package sched

import (
	"math"
	"time"

	"sublet/vxswitch"
)

// CoDel is controlled delay (RFC 8289): when frames have waited longer than
// Target for a whole Interval, heads are dropped, first one an interval, then
// faster by the square root of their number. Zero fields take RFC 8289's
// defaults.
type CoDel struct {
	Target   time.Duration // default 5 ms
	Interval time.Duration // default 100 ms
}

func (CoDel) String() string { return "codel" }

// New returns a manager; CoDel needs neither size nor rate.
func (c CoDel) New(int, int64, uint64) vxswitch.Manager {
	if c.Target == 0 {
		c.Target = 5 * time.Millisecond
	}
	if c.Interval == 0 {
		c.Interval = 100 * time.Millisecond
	}
	return &codel{CoDel: c}
}

// mtu is the backlog below which nothing is dropped (RFC 8289, 4.2).
const mtu = 1514

// codel is the state of RFC 8289, section 5.1. Its dequeue is a loop over
// heads; here every head is one call of Keep, and after says what the loop
// does with the head behind a dropped one.
type codel struct {
	CoDel
	above      vxswitch.Time // first_above_time, where isAbove
	isAbove    bool
	dropNext   vxswitch.Time
	count      int
	last       int // lastcount
	dropping   bool
	sendAnyway bool // the head behind the one that began the dropping
	lawDue     bool // drop_next moves on if the next head is too old as well
}

func (*codel) Accept(vxswitch.Time, vxswitch.Occupancy, int) bool { return true }

func (c *codel) Keep(now, at vxswitch.Time, q vxswitch.Occupancy, size int) bool {
	old := c.tooOld(now, at, q.Bytes-size)
	switch {
	case c.sendAnyway:
		c.sendAnyway = false
		return true
	case !old:
		c.dropping, c.lawDue = false, false
		return true
	case !c.dropping:
		c.begin(now)
		return false
	}
	if c.lawDue {
		c.lawDue, c.dropNext = false, c.law(c.dropNext)
	}
	if now < c.dropNext {
		return true
	}
	c.count++
	c.lawDue = true
	return false
}

// begin enters the dropping state with the rate that was right last time, if
// that is not long ago.
func (c *codel) begin(now vxswitch.Time) {
	recent := c.count - c.last
	c.count = 1
	if recent > 1 && now.Sub(c.dropNext) < 16*c.Interval {
		c.count = recent
	}
	c.dropping, c.sendAnyway = true, true
	c.dropNext, c.last = c.law(now), c.count
}

// law is control_law: the next drop is closer the more there were.
func (c *codel) law(t vxswitch.Time) vxswitch.Time {
	return t.Add(time.Duration(float64(c.Interval) / math.Sqrt(float64(c.count))))
}

// tooOld is ok_to_drop of RFC 8289, 5.6; left is what stays behind the head.
func (c *codel) tooOld(now, at vxswitch.Time, left int) bool {
	if now.Sub(at) < c.Target || left <= mtu {
		c.isAbove = false
		return false
	}
	if !c.isAbove {
		c.isAbove, c.above = true, now.Add(c.Interval)
		return false
	}
	return now >= c.above
}
