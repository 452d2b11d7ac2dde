// Command ready measures how much later than true a network is said to run: it
// is true once two nodes, with three routers of each protocol between them, answer
// each other's pings in both directions and families. They ping, every few
// milliseconds, from the moment they exist; running is when the API says so to
// who waits for it.
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
	results := make(map[string]*outcome)
	for range *rounds {
		for _, protocol := range protocols {
			if results[protocol] == nil {
				results[protocol] = &outcome{}
			}
			if err := results[protocol].measure(ctx, lab, protocol); err != nil {
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

func (o *outcome) measure(ctx context.Context, lab *harness.Lab, protocol string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	began := time.Now()
	answered := make(chan error, 4)
	for _, way := range [][2]string{{"pc1", "192.168.2.2"}, {"pc2", "192.168.1.2"}, {"pc1", "2001:db8:2::2"}, {"pc2", "2001:db8:1::2"}} {
		go func() { answered <- pinged(ctx, lab.Run, way[0], way[1]) }()
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

// pinged waits until an address answers a node that may not be there yet.
func pinged(ctx context.Context, run, node, to string) error {
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
			"until ping -q -n -c 1 -W 0.05 "+to+" >/dev/null 2>&1; do sleep 0.005; done").Run()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}
