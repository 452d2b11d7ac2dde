package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease"
	"sublet/vnet"
	"sublet/vnet/topology"
)

// epoch is when everything is asked for; leases lie in the month after it.
var epoch = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)

const month = 30 * 24 * time.Hour

var head = []string{"substrate", "nodes", "links", "leases booked", "s to book them", "admitted of asked", "p50 ms", "p99 ms", "max ms", "of processor: mean", "p99", "heap MiB", "peak RSS MiB"}

// measure prints a row for a substrate.
func measure(out io.Writer, name string) error {
	sub, known, err := topology.Named(name)
	if !known || err != nil {
		return errors.Join(fmt.Errorf("no substrate %q", name), err)
	}
	topology.Sizes{CPU: 64 * vnet.Core, Memory: 256 * vnet.GiB, Capacity: 40 * vnet.Gbit}.Apply(&sub)
	book := lease.New(sub)
	if err := book.Tick(epoch); err != nil {
		return err
	}
	g := generator{rand.New(rand.NewPCG(*seed, 0)), sub, 0}
	began := time.Now()
	booked := 0
	for i := range min(*leases, *density*(len(sub.Hosts)+len(sub.Switches))) {
		ok, err := admit(book, epoch, g.filler())
		if err != nil {
			return err
		}
		if ok {
			booked++
		}
		if i%1000 == 999 {
			book.Saved() // as a server that has written them does
		}
	}
	filling := time.Since(began)
	now := epoch
	if *mid {
		now = epoch.Add(month / 2)
		if err := book.Tick(now); err != nil {
			return err
		}
		book.Saved()
	}
	var times, used []float64
	admitted := 0
	for range *asks {
		r := g.measured()
		if *mid {
			r.Start = time.Time{}
		}
		began, spent := time.Now(), processor()
		ok, err := admit(book, now, r)
		if err != nil {
			return err
		}
		used = append(used, (processor()-spent).Seconds()*1000)
		times = append(times, time.Since(began).Seconds()*1000)
		if ok {
			admitted++
		}
	}
	sum := 0.0
	for _, ms := range used {
		sum += ms
	}
	slices.Sort(times)
	slices.Sort(used)
	at := func(list []float64, q float64) string { return fmt.Sprintf("%.2f", list[int(q*float64(len(list)-1))]) }
	fmt.Fprintln(out, strings.Join([]string{
		name, fmt.Sprint(len(sub.Hosts) + len(sub.Switches)), fmt.Sprint(len(sub.Links)), fmt.Sprint(booked),
		fmt.Sprintf("%.0f", filling.Seconds()), fmt.Sprintf("%d of %d", admitted, len(times)),
		at(times, 0.5), at(times, 0.99), at(times, 1), fmt.Sprintf("%.2f", sum/float64(len(used))), at(used, 0.99), fmt.Sprint(heap() >> 20), peak(),
	}, "|"))
	runtime.KeepAlive(book)
	return nil
}

// admit asks for a network; false: it was refused.
func admit(book *lease.Book, now time.Time, r vnet.Request) (bool, error) {
	_, err := book.Admit(now, r, 1000)
	var refused *vnet.Rejection
	if errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, err
}

// processor is the processor time this process has used, collections too. On
// a machine that does other things it is the steadier measure.
func processor() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// peak is the most memory this process has held, in MiB.
func peak() string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "?"
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return fmt.Sprint(kib >> 10)
		}
	}
	return "?"
}

// generator draws requests.
type generator struct {
	*rand.Rand
	sub vnet.Substrate
	n   int
}

// filler is a network of 2 to 10 nodes, anywhere in the month, for hours to days.
func (g *generator) filler() vnet.Request { return g.request(2 + g.IntN(9)) }

// measured is a network of 10 nodes.
func (g *generator) measured() vnet.Request { return g.request(10) }

// request is a random tree and as many links again, up to a half of all pairs,
// as in the public embedding benchmark; minima of 1 to 50 Mbit/s.
func (g *generator) request(nodes int) vnet.Request {
	g.n++
	r := vnet.Request{
		Network: vnet.VNetID(fmt.Sprintf("n%d", g.n)), Tenant: vnet.TenantID(fmt.Sprintf("t%d", g.n%1000)),
		Start: epoch.Add(time.Duration(1+g.Int64N(int64(month/time.Second))) * time.Second),
		For:   time.Duration(1+g.IntN(48)) * time.Hour,
	}
	for i := range nodes {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprintf("v%d", i), CPU: vnet.CPU(1+g.IntN(20)) * vnet.Core / 10, Memory: vnet.Bytes(1+g.IntN(8)) * vnet.GiB})
		for j := range i {
			if j != i-1 && g.IntN(4) != 0 {
				continue
			}
			low := vnet.Rate(1+g.IntN(50)) * vnet.Mbit
			b := vnet.Bandwidth{Min: low, Max: 2 * low}
			r.Links = append(r.Links, vnet.VirtualLink{Ends: [2]string{fmt.Sprintf("v%d", j), fmt.Sprintf("v%d", i)}, Bandwidth: [2]vnet.Bandwidth{b, b}})
		}
	}
	return r
}
