// Package lease keeps the book of leases: it admits requests or refuses them
// with a reason and an offer, opens and closes their windows, and says what
// each host must have, in an order in which no link is ever over-booked.
//
// Book decides and its caller acts: no method reads a clock, does I/O or
// starts a goroutine. All are synchronous; the caller holds a lock. A server
// calls Admit, Release, Report and Tick (at Next at the latest), then saves
// Changes in its Store, then hands out Plans.
//
//	Request --Admit--> Lease --plan.Compile--> target --rollout--> Plans --> agents
//	                     ^                                                      |
//	                     +--------------------- Report <------------------------+
package lease
