package workflow

import (
	"fmt"
	"strings"
	"time"

	"sublet/vnet"
	"sublet/vnet/file"
)

// room is the backbone's capacity: for the fastest links with outer headers, and for
// a rival that is promised a tenth.
func room(s Scale) vnet.Rate {
	return vnet.Rate(float64(Pairs*s.rate(10*vnet.Mbit)) * 1.06 / 0.89)
}

// substrate is two hosts and a link.
func substrate(s Scale) (vnet.Substrate, error) {
	return file.ParseSubstrate("substrate", fmt.Appendf(nil, `hosts:
  - {name: h1, cpu: 8, memory: 8GiB}
  - {name: h2, cpu: 8, memory: 8GiB}
links:
  - {name: backbone, ends: [h1, h2], capacity: %s}
`, room(s)))
}

// source and worker are the ends of a link.
func source(i int) string { return fmt.Sprintf("source%d", i) }
func worker(i int) string { return fmt.Sprintf("worker%d", i) }

// text is the network of an allocation. Its stages begin on command, when the
// application gets there.
func text(a Allocation, s Scale) string {
	var nodes, links, stages strings.Builder
	fmt.Fprintln(&nodes, "network: application\nnodes:\n  - {name: engine, host: h1}")
	fmt.Fprintln(&links, "links:")
	for i := range Pairs {
		fmt.Fprintf(&nodes, "  - {name: %s, host: h1}\n  - {name: %s, host: h2}\n", source(i), worker(i))
		fmt.Fprintf(&links, "  - {name: link%d, ends: [%s, %s], rate: %s}\n", i, source(i), worker(i), s.rate(a.Rates[0]))
	}
	fmt.Fprintln(&stages, "stages:")
	for n, rate := range a.Rates[1:] {
		fmt.Fprintf(&stages, "  - name: %s\n    begins: command\n    links:\n", Bronze[n+1].Name)
		for i := range Pairs {
			fmt.Fprintf(&stages, "      link%d: {rate: %s}\n", i, s.rate(rate))
		}
	}
	return nodes.String() + links.String() + stages.String()
}

// rival is the network of the tenant beside it: a tenth of the backbone is promised
// to it, and it takes whatever else there is.
func rival(s Scale) string {
	return fmt.Sprintf(`tenant: rival
network: rival
nodes: [{name: %[1]s, host: h1}, {name: %[2]s, host: h2}]
links: [{name: greedy, ends: [%[1]s, %[2]s], min: %[3]s, max: %[4]s}]
`, source(0), worker(0), room(s)/10, room(s))
}

// cost is what an allocation takes in the units of the published table, 1e5 resource
// seconds and 1e5 Mbit, when its stages took these times.
func cost(a Allocation, stages []time.Duration) (resource, bandwidth float64, err error) {
	r, err := file.ParseRequest("application", []byte(text(a, Scale{Time: 1, Rate: 1})))
	if err != nil {
		return 0, 0, err
	}
	var sum vnet.Cost
	for i, d := range stages {
		sum = sum.Plus(r.At(i-1).Over(d, vnet.DefaultPrices), vnet.DefaultPrices)
	}
	return sum.Resource / 1e5, sum.Bandwidth / 1e5, nil
}
