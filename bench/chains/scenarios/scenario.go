package main

import (
	"fmt"

	"sublet/agent/control"
)

// scenario is chains whose rates are held while something changes.
type scenario struct {
	name      string
	functions []function
	chains    []chain
	changes   []float64 // seconds at which something changes, which is to be answered
	pauses    []float64 // seconds at which senders go on after they sent nothing
	beside    [2]float64
	tcp       bool
}

// function is a copier. What is known of it is its profile, unless nobody measured it.
type function struct {
	arguments string // of the copier
	additions int
	unknown   bool
}

// chain leads frames of senders through functions, by number. Lets says what part arrives.
type chain struct {
	mbit    float64
	via     []int
	senders [][]burst
	lets    course
}

// seconds is how long senders send.
func (s scenario) seconds() (most float64) {
	for _, c := range s.chains {
		for _, sender := range c.senders {
			sum := 0.0
			for _, b := range sender {
				sum += b.seconds
			}
			most = max(most, sum)
		}
	}
	return most
}

// least is the size of the smallest frames, which processors are booked for.
func (s scenario) least() int {
	size := 1514
	for _, c := range s.chains {
		for _, sender := range c.senders {
			for _, b := range sender {
				if b.bytes > 0 {
					size = min(size, b.bytes)
				}
			}
		}
	}
	return size
}

// offers says whether so much is offered in a span that the chain's rate can be reached all
// the time.
func (c chain) offers(from, to float64) bool {
	for t := from; t < to; t += 0.05 {
		sum := 0.0
		for _, sender := range c.senders {
			end := 0.0
			for _, b := range sender {
				if end += b.seconds; t < end {
					if b.bytes > 0 {
						sum += b.low
					}
					break
				}
			}
		}
		if sum < c.mbit*1e6 {
			return false
		}
	}
	return true
}

// Loads of copiers, in additions for each frame: what the thesis's functions cost, half of
// it, and copying alone.
const (
	heavy = 20_000
	half  = 10_000
)

func copies(additions int, arguments string) function {
	return function{arguments: fmt.Sprintf("-additions=%d %s", additions, arguments), additions: additions}
}

// sized offers a fifth more than a rate in frames of sizes, one after another.
func sized(mbit, seconds float64, sizes ...int) (list []burst) {
	for _, size := range sizes {
		list = append(list, burst{size, 1.2e6 * mbit, 1.2e6 * mbit, seconds})
	}
	return list
}

func one(mbit float64, senders []burst, via ...int) []chain {
	return []chain{{mbit: mbit, via: via, senders: [][]burst{senders}}}
}

const none = 0 // no frames

// scenarios are those of agent/control/sim, with rates that two cores carry beside senders.
// A phase takes so many seconds.
func scenarios(s float64) []scenario {
	onOff := sized(50, 3, 1514, none, 1514, none, 1514, none, 1514)
	bursty := []burst{{1514, 1.05e8, 2e8, 2 * s}}
	slowly := ""
	for k := range 11 {
		slowly += fmt.Sprintf(",%.2f@%.1f", 1+0.02*float64(k), s+0.2*s*float64(k))
	}
	twice := func(arguments string) []function { return []function{copies(half, arguments), copies(half, arguments)} }
	shared := []function{copies(half, ""), copies(half, ""), copies(half, "")}
	return []scenario{
		{name: "5 Mbit/s", functions: []function{copies(heavy, "")}, chains: one(5, sized(5, 2*s, 1514), 0)},
		{name: "100 Mbit/s, two functions", functions: twice(""), chains: one(100, sized(100, 2*s, 1514), 0, 1)},
		{name: "200 Mbit/s, elastic (TCP)", functions: []function{copies(half, "")}, chains: one(200, sized(200, 2*s, 1514), 0), tcp: true},
		{name: "500 Mbit/s, three functions", functions: []function{copies(0, ""), copies(0, ""), copies(0, "")}, chains: one(500, sized(500, 2*s, 1514), 0, 1, 2)},
		{name: "1 Gbit/s, two functions", functions: []function{copies(0, ""), copies(0, "")}, chains: one(1000, sized(1000, 2*s, 1514), 0, 1)},
		{name: "2 Gbit/s", functions: []function{copies(0, "")}, chains: one(2000, sized(2000, 2*s, 1514), 0)},
		{name: "100 Mbit/s, 1514 to 512 bytes and back", functions: twice(""), changes: []float64{s, 2 * s}, chains: one(100, sized(100, s, 1514, 512, 1514), 0, 1)},
		{name: "200 Mbit/s, a flow of 512 bytes joins and leaves", functions: []function{copies(half, "")}, changes: []float64{s, 2 * s}, chains: []chain{{mbit: 200, via: []int{0}, senders: [][]burst{
			{{1514, 2.2e8, 2.2e8, 3 * s}}, {{none, 0, 0, s}, {512, 5e7, 5e7, s}, {none, 0, 0, s}}}}}},
		{name: "50 Mbit/s, 1514 to 64 bytes and back", functions: []function{copies(0, "")}, changes: []float64{s, 2 * s}, chains: one(50, sized(50, s, 1514, 64, 1514), 0)},
		{name: "500 Mbit/s, 1514 to 1000 bytes and back, nobody measured it", functions: []function{{unknown: true}}, changes: []float64{s, 2 * s}, chains: one(500, sized(500, s, 1514, 1000, 1514), 0)},
		{name: "50 Mbit/s, six sizes in turn", functions: twice(""), changes: []float64{s, 2 * s, 3 * s, 4 * s, 5 * s}, chains: one(50, sized(50, s, 1514, 900, 512, 700, 256, 1400), 0, 1)},
		{name: "100 Mbit/s, bursty", functions: twice(""), chains: []chain{{mbit: 100, via: []int{0, 1}, senders: [][]burst{bursty}}}},
		{name: "50 Mbit/s, 3 s on, 3 s off", functions: twice(""), pauses: []float64{6, 12, 18}, chains: one(50, onOff, 0, 1)},
		{name: "50 Mbit/s, another size after each of 5 s off", functions: []function{copies(half, "")}, changes: []float64{10, 20, 30}, chains: one(50, sized(50, 5, 1514, none, 600, none, 1200, none, 400), 0)},
		{name: "50 Mbit/s, a neighbour wants both cores for a while", functions: twice(""), changes: []float64{s, 2 * s}, beside: [2]float64{s, 2 * s}, chains: one(50, sized(50, 3*s, 1514), 0, 1)},
		{name: "100 Mbit/s, the second function becomes twice as slow", functions: []function{copies(half, ""), copies(half, fmt.Sprintf("-slower=2@%g", s))}, changes: []float64{s}, chains: one(100, sized(100, 2*s, 1514), 0, 1)},
		{name: fmt.Sprintf("100 Mbit/s, a function becomes slower by a fifth over %g s", 2*s), functions: []function{copies(half, "-slower="+slowly[1:])}, chains: one(100, sized(100, 4*s, 1514), 0)},
		{name: "two chains share a function, one changes size", functions: shared, changes: []float64{s, 2 * s}, chains: []chain{
			{mbit: 40, via: []int{0, 2}, senders: [][]burst{sized(40, s, 1514, 600, 1514)}}, {mbit: 60, via: []int{1, 2}, senders: [][]burst{sized(60, 3*s, 1514)}}}},
		{name: "two chains share a function, one is on and off", functions: shared, pauses: []float64{8, 16}, chains: []chain{
			{mbit: 40, via: []int{0, 2}, senders: [][]burst{sized(40, 4, 1514, none, 1514, none, 1514)}}, {mbit: 60, via: []int{1, 2}, senders: [][]burst{sized(60, 20, 900)}}}},
		{name: "100 Mbit/s, a function begins to block 40 %", functions: []function{copies(half, fmt.Sprintf("-lets=0.6@%g,1@%g", s, 2*s)), copies(half, "")}, changes: []float64{s, 2 * s}, chains: []chain{
			{mbit: 100, via: []int{0, 1}, senders: [][]burst{sized(100, 3*s, 1514)}, lets: course{{s, 0.6}, {2 * s, 1}}}}},
		{name: "100 Mbit/s, functions that poll, 1514 to 600 bytes and back", functions: twice("-polls"), changes: []float64{s, 2 * s}, chains: one(100, sized(100, s, 1514, 600, 1514), 0, 1)},
	}
}

// request is the network of a scenario, whose functions have profiles.
func (s scenario) request(network, program string, profiles map[int]control.Profile) string {
	text := fmt.Sprintf("network: %s\nnodes: [{name: a}", network)
	links, chains := "", ""
	for i, c := range s.chains {
		text += fmt.Sprintf(", {name: b%d}", i)
		links += fmt.Sprintf("  - {ends: [a, b%d]}\n", i)
		via := ""
		for k, f := range c.via {
			if via += fmt.Sprintf("f%d", f); k+1 < len(c.via) {
				via += ", "
			}
		}
		proto := "udp"
		if s.tcp {
			proto = "tcp"
		}
		chains += fmt.Sprintf("  - {name: c%d, from: a, to: b%d, match: {proto: %s, dst_port: %d}, via: [%s], rate: %gMbit}\n", i, i, proto, port, via, c.mbit)
	}
	text += "]\nfunctions:\n"
	for i, f := range s.functions {
		profile := ""
		if p := profiles[f.additions]; !f.unknown {
			profile = fmt.Sprintf(", profile: {fixed_s: %.3g, per_byte_s: %.3g, packet_bytes: %d}", p.Fixed, p.PerByte, s.least())
		}
		text += fmt.Sprintf("  - {name: f%d, cpu: auto%s, run: [sh, -c, \"exec %s %s %s\"]}\n", i, profile, program, copierCommand, f.arguments)
	}
	return text + "links:\n" + links + "chains:\n" + chains
}
