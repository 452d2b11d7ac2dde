// Package embed decides where a virtual network goes: virtual network
// embedding of a Request into a Substrate beside everything the calendar
// already holds, and what an embedding books and demands.
//
//	embedder, err := embed.New(sub)
//	mapping, err := embedder.Embed(cal, request, window, embed.Options{}) // *Infeasible: in words
//	bookings, err := embedder.Bookings(request, window, mapping)
//	cal.Book(bookings...)                                               // later: cal.Release
//	claim, err := embedder.Allocation().Enter(embed.Tenancy{...})          // every arrival, end and stage
//
// Node and link mapping hold under processor, memory, site, pinned host,
// exclusivity, the latency bound of each virtual link, and the guaranteed
// minima in both directions, in every stage's part of the window. One mapping
// serves all stages. A virtual link has one path, or where it may several (split.go).
//
// Paths: hosts relay, switches forward. From a host a path takes one of the
// host's own links; if that leads to a switch, the path follows the fabric's
// fixed shortest path (see graph) to a last switch and that switch's link to
// the next host. Where switches are relays, any path between them can be chosen
// that a packet's list of relays can hold (graph.Pinned). No path takes a
// substrate link twice.
//
// The search is a heuristic whose effort is a budget of counted work: greedy
// attempts from several first hosts (attempt.go), every host and path for small
// requests that find nothing (exhaust.go), then large neighbourhoods to make
// what was found cheaper (improve.go). docs/embedding.md says how good it is.
// What it accepts is always valid (embed/verify); on instances
// small enough to decide exactly it has missed none of 100,000
// (go test ./embed -run Overbooks -rapid.checks=100000 -v).
//
// The package is pure: it reads no clock and does the same for the same input.
package embed
