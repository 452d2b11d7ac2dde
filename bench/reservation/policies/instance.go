package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"sublet/vnet"
)

// instance is a substrate and requests for it, in order of arrival.
type instance struct {
	sub  vnet.Substrate
	asks []ask
}

// ask is a request that becomes known at a time. Times are seconds from the
// beginning.
type ask struct {
	arrival, earliest, latest, duration int
	movable                             bool
	nodes                               []string   // sites
	links                               []askedFor // between nodes, by index
}

type askedFor struct {
	ends [2]int
	mbit [2]int // forward, reverse
}

// epoch is when instances begin.
var epoch = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// write prints an instance in its format (README.md).
func (in instance) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, h := range in.sub.Hosts {
		fmt.Fprintf(b, "site %s\n", h.Site)
	}
	for _, l := range in.sub.Links {
		fmt.Fprintf(b, "wire %s %s %d\n", l.Ends[0], l.Ends[1], l.Capacity/vnet.Mbit)
	}
	for _, a := range in.asks {
		movable := 0
		if a.movable {
			movable = 1
		}
		fmt.Fprintf(b, "request %d %d %d %d %d\n", a.arrival, a.earliest, a.latest, a.duration, movable)
		for _, n := range a.nodes {
			fmt.Fprintf(b, "node %s\n", n)
		}
		for _, l := range a.links {
			fmt.Fprintf(b, "link %d %d %d %d\n", l.ends[0], l.ends[1], l.mbit[0], l.mbit[1])
		}
	}
	return b.Flush()
}

// read reads an instance; an error names the line.
func read(name string) (in instance, err error) {
	f, err := os.Open(name)
	if err != nil {
		return in, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if err := in.line(words); err != nil {
			return in, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	return in, lines.Err()
}

// line takes in one line.
func (in *instance) line(words []string) error {
	switch words[0] {
	case "site":
		if len(words) != 2 {
			return fmt.Errorf("site: write its name")
		}
		in.sub.Hosts = append(in.sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(words[1]), Site: words[1], CPU: 1000 * vnet.Core, Memory: 1000 * vnet.GiB})
		return nil
	case "node":
		if len(words) != 2 || len(in.asks) == 0 {
			return fmt.Errorf("node: write its site, after a request")
		}
		last := &in.asks[len(in.asks)-1]
		last.nodes = append(last.nodes, words[1])
		return nil
	case "wire":
		if len(words) != 4 {
			return fmt.Errorf("wire: write two sites and Mbit/s")
		}
		numbers, err := numbersOf(words[3:], 1)
		if err != nil {
			return err
		}
		in.sub.Links = append(in.sub.Links, vnet.SubstrateLink{
			Name: words[1] + "-" + words[2], Ends: [2]string{words[1], words[2]}, Capacity: vnet.Rate(numbers[0]) * vnet.Mbit, Latency: time.Millisecond,
		})
		return nil
	case "request":
		n, err := numbersOf(words[1:], 5)
		if err == nil {
			in.asks = append(in.asks, ask{arrival: n[0], earliest: n[1], latest: n[2], duration: n[3], movable: n[4] == 1})
		}
		return err
	case "link":
		n, err := numbersOf(words[1:], 4)
		if err != nil || len(in.asks) == 0 {
			return fmt.Errorf("link: write two nodes and Mbit/s forward and reverse, after a request")
		}
		last := &in.asks[len(in.asks)-1]
		last.links = append(last.links, askedFor{ends: [2]int{n[0], n[1]}, mbit: [2]int{n[2], n[3]}})
		return nil
	}
	return fmt.Errorf("%q: write site, wire, request, node or link", words[0])
}

func numbersOf(words []string, count int) ([]int, error) {
	if len(words) != count {
		return nil, fmt.Errorf("%d numbers are expected, there are %d", count, len(words))
	}
	numbers := make([]int, count)
	for i, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a number from 0 on", w)
		}
		numbers[i] = n
	}
	return numbers, nil
}

// volume is the bandwidth-time that a request asks for, in Gbit, both
// directions of its links.
func (a ask) volume() float64 {
	sum := 0
	for _, l := range a.links {
		sum += l.mbit[0] + l.mbit[1]
	}
	return float64(sum) * float64(a.duration) / 1000
}

// request is an ask in the book's words.
func (a ask) request(i int) vnet.Request {
	r := vnet.Request{
		Network: vnet.VNetID(fmt.Sprintf("r%d", i)), Tenant: "bench", Movable: a.movable,
		Start: at(a.earliest), Before: at(a.latest), For: time.Duration(a.duration) * time.Second,
	}
	for j, site := range a.nodes {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprintf("n%d", j), Site: site})
	}
	for j, l := range a.links {
		r.Links = append(r.Links, vnet.VirtualLink{
			Name: fmt.Sprintf("l%d", j), Ends: [2]string{fmt.Sprintf("n%d", l.ends[0]), fmt.Sprintf("n%d", l.ends[1])},
			Bandwidth: [2]vnet.Bandwidth{vnet.Static(vnet.Rate(l.mbit[0]) * vnet.Mbit), vnet.Static(vnet.Rate(l.mbit[1]) * vnet.Mbit)},
		})
	}
	return r
}
