// Package calendar holds capacity booked over time windows, per element of
// the substrate. An element is a key and an amount is an integer in the
// element's own unit (milli-cores, bytes, bit/s); the calendar knows neither
// capacities nor what a key means.
//
// Windows are half-open: two that abut never add up. An open window (zero
// End) lasts for ever. Times are kept to the nanosecond between the years
// 1678 and 2262 and clamped outside.
package calendar

import (
	"fmt"
	"maps"

	"sublet/vnet"
)

// Booking is an amount of one element taken for a window.
type Booking struct {
	Key    string
	Amount int64 // more than 0
	Window vnet.Window
}

// Calendar is what is booked. The zero value is an empty calendar.
type Calendar struct {
	profiles map[string]profile
}

// New returns an empty calendar.
func New() *Calendar { return &Calendar{profiles: map[string]profile{}} }

// Clone returns a calendar that can be changed apart from c, for a trial. It
// costs one map copy: profiles are never changed in place.
func (c *Calendar) Clone() *Calendar { return &Calendar{profiles: maps.Clone(c.profiles)} }

// Book adds all bookings, or none: an error names the first that has no
// amount or no duration.
func (c *Calendar) Book(bookings ...Booking) error {
	for _, b := range bookings {
		if err := b.check(); err != nil {
			return fmt.Errorf("book %w", err)
		}
	}
	for _, b := range bookings {
		c.add(b, 1)
	}
	return nil
}

// Release takes back all bookings, or none: an error names the first of which
// less is booked somewhere in its window.
func (c *Calendar) Release(bookings ...Booking) error {
	for i, b := range bookings {
		err := b.check()
		if err == nil && c.profiles[b.Key].least(spanOf(b.Window)) < b.Amount {
			err = fmt.Errorf("%d of %s: less is booked in its window", b.Amount, b.Key)
		}
		if err != nil {
			for _, done := range bookings[:i] {
				c.add(done, 1)
			}
			return fmt.Errorf("release %w", err)
		}
		c.add(b, -1)
	}
	return nil
}

// Peak is the most booked of an element at any instant of a window.
func (c *Calendar) Peak(key string, w vnet.Window) int64 {
	return c.profiles[key].most(spanOf(w))
}

// Holders is how many bookings make up the Peak of an element in a window, at
// the first instant at which it is reached.
func (c *Calendar) Holders(key string, w vnet.Window) int {
	return int(c.profiles[key].holders(spanOf(w)))
}

// Residual is what is left of capacity at every instant of a window; it is
// negative if more is booked than there is.
func (c *Calendar) Residual(key string, capacity int64, w vnet.Window) int64 {
	return capacity - c.Peak(key, w)
}

// Empty says that nothing is booked at any time.
func (c *Calendar) Empty() bool { return len(c.profiles) == 0 }

// add enters a booking (sign 1) or takes it out again (-1).
func (c *Calendar) add(b Booking, sign int64) {
	if c.profiles == nil {
		c.profiles = map[string]profile{}
	}
	p := c.profiles[b.Key].add(spanOf(b.Window), sign*b.Amount, sign)
	if len(p) == 0 {
		delete(c.profiles, b.Key)
		return
	}
	c.profiles[b.Key] = p
}

// check says what is wrong with a booking.
func (b Booking) check() error {
	if b.Amount <= 0 {
		return fmt.Errorf("%d of %s: an amount is more than 0", b.Amount, b.Key)
	}
	if s := spanOf(b.Window); s.from >= s.to {
		return fmt.Errorf("%d of %s: its window has no duration", b.Amount, b.Key)
	}
	return nil
}
