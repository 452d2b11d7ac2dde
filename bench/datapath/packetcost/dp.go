package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sublet/bench/harness"
	"sublet/measure"
	"sublet/measure/pktgen"
)

// The experiments of Anhalt and Vicat-Blanc Primet ("Analysis and Experimental
// Evaluation of Network Data-Plane Virtualization Mechanisms", section IV;
// Anhalt, thesis, 2011, section 3.3), called DP-1 to DP-4 here: sending, receiving, forwarding and latency with N virtual hosts or routers.
// Their machines were limited by 1 Gbit/s lines, this one by its processors:
// so what is compared is work per processor time, on the same work.

// counts of virtual hosts and routers.
var counts = []int{1, 2, 4, 8}

// series is one kind of network, as many of them as are needed at most.
type series struct {
	name     string
	networks []network
}

// together sends through n networks at once, all on one processor, and
// returns what arrives in all in a second of its time, and Jain's index of
// what arrives over each.
func (s series) together(n, size int) (rate, fairness float64, err error) {
	workers, counters := make([]pktgen.Worker, 0, n), make([]*pktgen.Counter, 0, n)
	defer func() {
		for _, w := range workers {
			err = errors.Join(err, w.Stop())
		}
		for _, c := range counters {
			c.Close()
		}
	}()
	for i, net := range s.networks[:n] {
		port := pktgen.Discard + i
		c, err := pktgen.CountAt(net.to, port)
		if err != nil {
			return 0, 0, err
		}
		counters = append(counters, c)
		w, err := pktgen.Start(net.from, net.to, size, first, port)
		if err != nil {
			return 0, 0, err
		}
		workers = append(workers, w)
	}
	total := func() (sum uint64) {
		for _, c := range counters {
			sum += c.Packets()
		}
		return sum
	}
	shares := make([]float64, n)
	for i, c := range counters {
		shares[i] = -float64(c.Packets()) // some began earlier
	}
	rate, err = pktgen.Measured(first, turns(n), total, workers...)
	for i, c := range counters {
		shares[i] += float64(c.Packets())
	}
	return rate, measure.Jain(shares), err
}

// turns is a window in which each of n that share a processor has as many turns
// as one alone has in some windows: the scheduler gives them milliseconds at a
// time.
func turns(n int) time.Duration {
	if n == 1 {
		return *window
	}
	return time.Duration(4*n) * *window
}

// stressed is the round trip over the first network while n-1 others carry
// TCP at full rate.
func (s series) stressed(n int) (p50, p99 float64, err error) {
	done := make(chan error, n)
	for i, net := range s.networks[1:n] {
		go func() {
			_, err := pktgen.Stream(net.from, net.to, i%2, (i+1)%2, 2**window)
			done <- err
		}()
	}
	time.Sleep(*window / 2)
	p50, p99, err = pktgen.Ping(s.networks[0].from, s.networks[0].to, first, pings()/10)
	for range n - 1 {
		err = errors.Join(err, <-done)
	}
	return p50, p99, err
}

// streams is the goodput of n TCP connections at once, one per network, in
// all, and Jain's index over them.
func (s series) streams(n int) (rate, fairness float64, err error) {
	type outcome struct {
		rate float64
		err  error
	}
	done := make(chan outcome, n)
	for i, net := range s.networks[:n] {
		go func() {
			rate, err := pktgen.Stream(net.from, net.to, i%2, (i+1)%2, turns(n))
			done <- outcome{rate, err}
		}()
	}
	rates := make([]float64, 0, n)
	for range n {
		o := <-done
		rate, err, rates = rate+o.rate, errors.Join(err, o.err), append(rates, o.rate)
	}
	return rate, measure.Jain(rates), err
}

// figure is one quantity of one series at one count.
type figure struct {
	series, quantity string
	n                int
}

// experiments runs DP-1 to DP-4.
func experiments(ctx context.Context, exe string) error {
	b := &bench{}
	defer b.close()
	forwarding, err := b.routerSeries(ctx, exe)
	if err != nil {
		return err
	}
	sending, err := b.hostSeries(ctx, exe)
	if err != nil {
		return err
	}
	all := make(map[figure]harness.Samples)
	keep := func(s series, n int) func(string, float64) {
		return func(quantity string, v float64) {
			f := figure{s.name, quantity, n}
			all[f] = append(all[f], v)
		}
	}
	for range *rounds {
		for _, n := range counts {
			for _, s := range sending {
				if err := s.hostRound(n, keep(s, n)); err != nil {
					return fmt.Errorf("%s, %d: %w", s.name, n, err)
				}
			}
			for _, s := range forwarding {
				if err := s.routerRound(n, keep(s, n)); err != nil {
					return fmt.Errorf("%s, %d: %w", s.name, n, err)
				}
			}
		}
		fmt.Fprint(os.Stderr, ".")
	}
	fmt.Fprintln(os.Stderr, "dp")
	report("DP-1, DP-2: sending and receiving", sending, all, []string{"1400 B, Mpps", "Jain", "TCP, Gbit/s", "Jain, TCP"})
	report("DP-3, DP-4: forwarding and latency", forwarding, all, []string{"60 B, Mpps", "1400 B, Mpps", "Jain", "TCP, Gbit/s", "Jain, TCP", "rtt p50, us", "rtt p99, us", "stressed p50, us", "stressed p99, us"})
	return nil
}

func (s series) hostRound(n int, keep func(string, float64)) error {
	rate, fair, err := s.together(n, 1400)
	keep("1400 B, Mpps", rate/1e6)
	keep("Jain", fair)
	tcp, fairTCP, failed := s.streams(n)
	keep("TCP, Gbit/s", tcp/1e9)
	keep("Jain, TCP", fairTCP)
	return errors.Join(err, failed)
}

func (s series) routerRound(n int, keep func(string, float64)) error {
	small, fair, err := s.together(n, 60)
	keep("60 B, Mpps", small/1e6)
	keep("Jain", fair)
	large, _, failed := s.together(n, 1400)
	keep("1400 B, Mpps", large/1e6)
	tcp, fairTCP, tcpFailed := s.streams(n)
	keep("TCP, Gbit/s", tcp/1e9)
	keep("Jain, TCP", fairTCP)
	p50, p99, pingFailed := pktgen.Ping(s.networks[0].from, s.networks[0].to, first, pings()/10)
	keep("rtt p50, us", p50)
	keep("rtt p99, us", p99)
	loaded50, loaded99, stressFailed := s.stressed(n)
	keep("stressed p50, us", loaded50)
	keep("stressed p99, us", loaded99)
	return errors.Join(err, failed, tcpFailed, pingFailed, stressFailed)
}

// routerSeries are eight routers of the kernel's and eight of Sublet's.
func (b *bench) routerSeries(ctx context.Context, exe string) ([]series, error) {
	most := counts[len(counts)-1]
	routers, err := kernelRouters(most)
	for _, n := range routers {
		b.later(n.close)
	}
	if err != nil {
		return nil, err
	}
	p, err := b.product(ctx, exe, oneHost)
	if err != nil {
		return nil, err
	}
	ours, err := p.many(ctx, most, routerRequest)
	return []series{{"kernel routers", routers}, {"Sublet routers", ours}}, err
}

// hostSeries are eight pairs of plain namespaces on one wire, and eight pairs
// of nodes of as many leases.
func (b *bench) hostSeries(ctx context.Context, exe string) ([]series, error) {
	most := counts[len(counts)-1]
	wire := hosts()
	native, err := wire.build("host to host", "h1/wire=192.0.2.1", "h2/wire=192.0.2.2")
	b.later(wire.remove)
	if err != nil {
		return nil, err
	}
	same := make([]network, most)
	for i := range same {
		same[i] = native
	}
	p, err := b.product(ctx, exe, twoHosts)
	if err != nil {
		return nil, err
	}
	ours, err := p.many(ctx, most, overlayRequest)
	return []series{{"classical Linux", same}, {"Sublet hosts", ours}}, err
}

// many leases as many networks of one kind.
func (p *product) many(ctx context.Context, count int, request func(string) string) ([]network, error) {
	all := make([]network, count)
	for i := range all {
		var err error
		if all[i], err = p.lease(ctx, "Sublet", request(fmt.Sprint("n", i))); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// report prints a series a line, and the efficiency E against the first.
func report(title string, all []series, figures map[figure]harness.Samples, quantities []string) {
	table := harness.Table{Head: append([]string{title, "N"}, quantities...)}
	for _, s := range all {
		for _, n := range counts {
			row := []any{s.name, n}
			for _, q := range quantities {
				row = append(row, figures[figure{s.name, q, n}].Format("%.3g"))
			}
			table.Add(row...)
		}
	}
	for _, n := range counts {
		row := []any{all[1].name + " / " + all[0].name, n}
		for _, q := range quantities {
			row = append(row, figures[figure{all[1].name, q, n}].Over(figures[figure{all[0].name, q, n}]).Format("%.3f"))
		}
		table.Add(row...)
	}
	table.Print(os.Stdout)
}
