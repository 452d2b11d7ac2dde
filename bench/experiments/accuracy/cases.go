package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"sublet/bench/harness"
	"sublet/measure/probe"
	"sublet/vnet"
)

// substrate leaves the others 100 Mbit/s, little enough for two processors.
// The third host's link is wide, so that it does not bind.
func substrate(rate vnet.Rate) (text string, capacity, others vnet.Rate) {
	others = 100 * vnet.Mbit
	capacity = rate + others
	return fmt.Sprintf(`
hosts:
  - {name: h1, cpu: 100, memory: 100GiB}
  - {name: h2, cpu: 100, memory: 100GiB}
  - {name: h3, cpu: 100, memory: 100GiB}
switches: [s1]
links:
  - {ends: [h1, s1], capacity: %[1]s}
  - {ends: [h2, s1], capacity: %[1]s}
  - {ends: [h3, s1], capacity: %[2]s}
`, capacity, 2*capacity), capacity, others
}

// pair is a network of one link between two hosts.
func pair(name, from, to, rates string) string {
	return fmt.Sprintf(`
network: %s
nodes: [{name: a, host: %s}, {name: b, host: %s}]
links: [{name: ab, ends: [a, b]%s}]
`, name, from, to, rates)
}

// scenario is one way of being measured.
type scenario struct {
	name          string
	to            string // host of b
	promise       string // rates of the measured link
	othersPromise string
	loss          bool // measured too
}

func scenarios(rate, capacity, others vnet.Rate) []scenario {
	static, atMost := fmt.Sprintf(", rate: %s", rate), fmt.Sprintf(", max: %s", capacity)
	return []scenario{
		{"static, two hosts", "h2", static, atMost, true},
		{"static, one host", "h1", static, atMost, true},
		{"minimum, two hosts", "h2", fmt.Sprintf(", min: %s, max: %s", rate, capacity), fmt.Sprintf(", min: %s, max: %s", others, capacity), false},
	}
}

// Loads of the others.
var loads = []struct {
	name string
	load probe.Load
}{
	{"UDP at 1.5", probe.Load{Part: 1.5}},
	{"TCP", probe.Load{TCP: true}},
}

// result of a scenario at a rate, of all rounds and both directions.
type result struct {
	rate           vnet.Rate
	scenario       string
	others         string
	tcp, udp       harness.Samples // measured/allocated
	minimum        harness.Samples // the worse of TCP and UDP / guaranteed minimum
	delay, delay99 harness.Samples // round trip under load, ms
	lost           harness.Samples // at 0.9 of the rate, of what was sent
	late           int             // verdicts with a remark
}

// measure makes a lab for one rate and goes through all scenarios, round by round.
func measure(ctx context.Context, exe string, rate vnet.Rate) (all []*result, err error) {
	text, capacity, others := substrate(rate)
	r, err := harness.Start(ctx, exe, text)
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopped := r.Stop(); err == nil {
			err = stopped
		}
	}()
	b := bench{Lab: r, rate: rate, capacity: capacity}
	byName := make(map[string]*result)
	for round := range *rounds {
		for _, l := range loads {
			for _, s := range scenarios(rate, capacity, others) {
				key := s.name + l.name
				if byName[key] == nil {
					byName[key] = &result{rate: rate, scenario: s.name, others: l.name}
					all = append(all, byName[key])
				}
				last := s.loss && round == *rounds-1 && l.load.Part > 0
				if err := b.round(ctx, s, l.load, byName[key], last); err != nil {
					return all, fmt.Errorf("%s, others %s: %w", s.name, l.name, err)
				}
				fmt.Fprint(os.Stderr, ".")
			}
		}
	}
	fmt.Fprintln(os.Stderr, rate)
	return all, nil
}

// bench is one rate's lab.
type bench struct {
	*harness.Lab
	rate, capacity vnet.Rate
}

// round measures a scenario once: the rates, and loss if asked.
func (b bench) round(ctx context.Context, s scenario, load probe.Load, into *result, loss bool) (err error) {
	var leases []vnet.Lease
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
		if down := b.Down(context.WithoutCancel(ctx), leases...); err == nil {
			err = down
		}
	}()
	for _, text := range []string{
		pair("measured", "h1", s.to, s.promise),
		pair("other-1", "h1", "h3", s.othersPromise),
		pair("other-2", "h3", "h2", s.othersPromise),
		pair("other-3", "h1", "h1", fmt.Sprintf(", rate: %s", b.capacity-b.rate)),
		pair("best-effort", "h1", "h2", ""),
	} {
		l, err := b.Up(ctx, text)
		if err != nil {
			return err
		}
		leases = append(leases, l)
	}
	for _, l := range leases[1:] { // rates changed with every arrival
		if l, err = b.Lease(ctx, l); err != nil {
			return err
		}
		kind := load
		if l.Request.Network == "best-effort" { // nothing of it may get through
			kind = probe.Load{Part: 1}
		}
		stop, err := b.Saturate(ctx, l, kind, 100*vnet.Mbit)
		if err != nil {
			return err
		}
		stops = append(stops, stop)
	}
	measured, err := b.Lease(ctx, leases[0])
	if err != nil {
		return err
	}
	time.Sleep(settle)
	return b.check(ctx, measured, into, loss)
}

// settle lets the others fill their queues first.
const settle = 1500 * time.Millisecond

func (b bench) check(ctx context.Context, l vnet.Lease, into *result, loss bool) error {
	v, err := b.Check(ctx, l, probe.Options{Duration: *window, SkipLoss: true})
	if err != nil {
		return err
	}
	for _, k := range v.Links {
		into.take(k)
	}
	if !loss || *seconds == 0 {
		return nil
	}
	v, err = b.Check(ctx, l, probe.Options{Duration: time.Duration(*seconds) * time.Second, SkipTCP: true, SkipUDP: true})
	for _, k := range v.Links {
		into.lost = append(into.lost, k.UDPLoss)
	}
	return err
}

func (r *result) take(k vnet.LinkVerdict) {
	alloc := float64(k.Alloc)
	r.tcp = append(r.tcp, float64(k.TCP)/alloc)
	r.udp = append(r.udp, float64(k.UDP)/alloc)
	if k.Min > 0 {
		r.minimum = append(r.minimum, float64(min(k.TCP, k.UDP))/float64(k.Min))
	}
	r.delay = append(r.delay, k.RTTLoad50/1000)
	r.delay99 = append(r.delay99, k.RTTLoad99/1000)
	if !k.OK {
		r.late++
		fmt.Fprintf(os.Stderr, "\n%s, %s, others %s, %s to %s: %s\n", r.rate, r.scenario, r.others, k.From, k.To, k.Why)
	}
}
