// Command ready measures how much later than true a network is said to run: it
// is true once two nodes and the three routers of each protocol between them have
// all had an answer of each other, in both families. Each pings the others in turn,
// every few milliseconds, from the moment it exists; running is when the API says so
// to who waits for it.
//
//	pc1 - r1 - r2 - pc2
//	        \ r3 /
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sublet/bench/harness"
	"sublet/vnet"
)

var rounds = flag.Int("rounds", 11, "networks of each protocol, in turn")

func main() { harness.Main("experiments/ready", run) }

// protocols are what is measured, as routers state them.
var protocols = []string{"static", "ospf", "ospf6", "isis", "bgp"}

// network is a request; ospf speaks no IPv6, whose routes are computed.
func network(protocol string) string {
	var r [3]string
	for i := range r {
		r[i] = fmt.Sprintf("{name: r%d, protocol: %s}", i+1, protocol)
		if protocol == "bgp" {
			r[i] = fmt.Sprintf("{name: r%d, protocol: bgp, as: %d}", i+1, 65001+i)
		}
	}
	return fmt.Sprintf(`network: ready
nodes: [{name: pc1}, {name: pc2}]
routers: [%s]
links:
  - {ends: [{node: pc1, address: [192.168.1.2/24, "2001:db8:1::2/64"]}, {node: r1, address: [192.168.1.1/24, "2001:db8:1::1/64"]}], rate: 5Mbit}
  - {ends: [{node: pc2, address: [192.168.2.2/24, "2001:db8:2::2/64"]}, {node: r2, address: [192.168.2.1/24, "2001:db8:2::1/64"]}], rate: 5Mbit}
  - {ends: [{node: r1, address: [10.0.12.1/24, "2001:db8:12::1/64"]}, r2], rate: 5Mbit}
  - {ends: [{node: r1, address: [10.0.13.1/24, "2001:db8:13::1/64"]}, r3], rate: 5Mbit}
  - {ends: [{node: r3, address: [10.0.23.1/24, "2001:db8:23::1/64"]}, r2], rate: 5Mbit}
`, strings.Join(r[:], ", "))
}

// outcome has milliseconds.
type outcome struct{ truth, late harness.Samples }

func run(ctx context.Context, exe string) error {
	fmt.Printf("%s\n\n", harness.Machine())
	lab, err := harness.Start(ctx, exe, "star:2")
	if err != nil {
		return err
	}
	defer func() { _ = lab.Stop() }() // what is left of it, the next lab says
	results, others := make(map[string]*outcome), make(map[string]map[string][]string)
	for _, protocol := range protocols {
		results[protocol] = &outcome{}
		if others[protocol], err = addresses(ctx, lab, protocol); err != nil {
			return fmt.Errorf("%s: %w", protocol, err)
		}
	}
	for range *rounds {
		for _, protocol := range protocols {
			if err := results[protocol].measure(ctx, lab, protocol, others[protocol]); err != nil {
				return fmt.Errorf("%s: %w", protocol, err)
			}
		}
	}
	table := harness.Table{Head: []string{"protocol", "asked to true, ms", "true to running, ms"}}
	for _, protocol := range protocols {
		table.Add(protocol, results[protocol].truth.Format("%.0f"), results[protocol].late.Format("%.0f"))
	}
	table.Print(os.Stdout)
	return nil
}

func (o *outcome) measure(ctx context.Context, lab *harness.Lab, protocol string, others map[string][]string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	began := time.Now()
	answered := make(chan error, len(others))
	for node, addresses := range others {
		go func() { answered <- pinged(ctx, lab.Run, node, addresses) }()
	}
	running := make(chan time.Time, 1)
	var lease vnet.Lease
	var failed error
	go func() {
		lease, failed = lab.Up(ctx, network(protocol))
		running <- time.Now()
	}()
	for range cap(answered) {
		if err := <-answered; err != nil {
			return err
		}
	}
	truth := time.Now()
	said := <-running
	if failed != nil {
		return failed
	}
	o.truth = append(o.truth, float64(truth.Sub(began).Milliseconds()))
	o.late = append(o.late, float64(said.Sub(truth).Microseconds())/1000)
	return lab.Down(ctx, lease)
}

// addresses are, by node, those that it is to reach. They are chosen alike each time.
func addresses(ctx context.Context, lab *harness.Lab, protocol string) (others map[string][]string, err error) {
	l, err := lab.Up(ctx, network(protocol))
	if err != nil {
		return nil, err
	}
	if l, err = lab.Lease(ctx, l); err != nil {
		return nil, err
	}
	others = make(map[string][]string)
	for node := range l.Addresses {
		for other, address := range l.Addresses {
			if other != node {
				others[node] = append(others[node], address.String())
			}
		}
		others[node] = append(others[node], families[node]...)
	}
	return others, lab.Down(ctx, l)
}

// families are the addresses of IPv6 that the nodes reach, too.
var families = map[string][]string{"pc1": {"2001:db8:2::2"}, "pc2": {"2001:db8:1::2"}}

// pinged waits until addresses have answered a node that may not be there yet.
func pinged(ctx context.Context, run, node string, to []string) error {
	var found []string
	for len(found) == 0 {
		found, _ = filepath.Glob(filepath.Join(run, "netns", "*", "*.ready."+node)) // the pattern is good
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
	for { // a namespace has a file before it is there
		err := exec.CommandContext(ctx, "nsenter", "--net="+found[0], "--", "sh", "-c",
			"for to in "+strings.Join(to, " ")+"; do until ping -q -n -c 1 -W 0.05 $to >/dev/null 2>&1; do sleep 0.005; done; done").Run()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}
