package cores

// Case is one of those by which greedy and exact placement are compared.
type Case struct {
	Nodes, Cores int
	Weights      []float64
}

// Published are the 27 cases of Zhao's thesis, section 5.4.1: 2 to 10 nodes,
// switches in line with at most two functions at each, on 2 to 4 cores. Its
// figure of the topologies is not in the text, so functions are put two to a
// switch, from the first on. Weights are of its table 5.1: hundredths of a core
// for 100 Mbit/s of 1500 bytes, 11 for each pass of a switch or firewall and 12
// of a NAT, by turns.
func Published() (cases []Case) {
	for nodes := 2; nodes <= 10; nodes++ {
		switches := (nodes + 2) / 3
		var at []int
		var costs []float64
		for i := range nodes - switches {
			at = append(at, i/2)
			costs = append(costs, 11+float64(i%2))
		}
		weights := line(switches, at).Weights(11, costs)
		for m := 2; m <= 4; m++ {
			cases = append(cases, Case{nodes, m, weights})
		}
	}
	return cases
}
