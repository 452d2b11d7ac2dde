// Package replay runs the instances of the public embedding benchmark: a
// substrate, requests, and the order in which they arrive and leave.
//
//	instance, err := replay.Parse("geant_0.txt", text)
//	result, err := replay.Run(instance, replay.Options{Clock: clock})
//
// The rules of the benchmark: the nodes of a request go to different hosts, a
// virtual link takes one path, a request is accepted whole or not at all. A
// link of the substrate has one capacity for both directions together; as each
// virtual link asks the same of both, it stands for that much of each.
//
// The package is pure: who wants times measured hands in a clock.
package replay

// Instance is a file of the benchmark.
type Instance struct {
	CPU      []float64 // of substrate nodes
	Links    []Link    // of the substrate; Amount is its capacity
	Requests []Request
	Events   []Event // in order
}

// Link joins two nodes, by index.
type Link struct {
	Ends   [2]int
	Amount float64
}

// Request is a virtual network that arrives and, if it is accepted, leaves
// Lifetime later. Times are in the instance's unit, of no known length.
type Request struct {
	CPU      []float64 // of its nodes
	Links    []Link    // Amount is the demand
	Arrival  float64
	Lifetime float64
}

// Revenue is what a request pays per time: its processors and bandwidth.
func (r Request) Revenue() float64 {
	revenue := 0.0
	for _, c := range r.CPU {
		revenue += c
	}
	for _, l := range r.Links {
		revenue += l.Amount
	}
	return revenue
}

// Event is an arrival or a departure.
type Event struct {
	Arrives bool
	Request int
	Time    float64
}
