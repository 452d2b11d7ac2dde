// Package control decides how much processor time the functions of a service
// chain get, so that the chain carries its rate and little is left over.
//
// A function forwards as many packets a second as its share of a processor
// pays for. Controller measures what a packet costs from the time that a
// function used and the packets that it took, and gives each function of a
// chain what the promised rate costs:
//
//	share = sum over chains of rate / (8 x size) x reach x cost(size) / gain
//
// Where a function has no time to spare, that is the share times promised rate
// over measured rate. Cost is a Profile, measured off line, times a factor that
// is measured while it runs; reach is the part of a chain's packets that earlier
// functions let through; gain is what the kernel really gives of a quota. Size,
// reach, factor and gain are followed by a level each: a mean over at most five
// seconds that begins anew when two samples agree that it changed. So a change
// of packet size is answered by a calculation (feed-forward), and a correction
// follows when enough was measured.
//
// A sample of a function that had no work says nothing of its cost, and one of a
// function that uses up its quota without losing packets only bounds it, since
// it may poll. Both are left out, so nothing winds up while a chain is idle.
//
// Published is the law of Zhao's thesis (section 5.3.4), for comparison.
//
// The package is pure: time is an argument, and what measures and sets control
// groups is elsewhere.
package control
