package vxlink

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// sums are what counts say of each link and direction.
func sums(t *testing.T, p *Part) map[report.LinkWay]report.LinkSums {
	t.Helper()
	c, err := p.Counts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[report.LinkWay]report.LinkSums)
	for i, way := range c.Links {
		found[way] = c.Values[i]
	}
	return found
}

// readings are what counts and samples say, of one lease and of all, while nothing passes:
// nodes solicit routers when they like.
func readings(t *testing.T, p *Part) (have map[report.LinkWay]report.LinkSums, one, all []report.Sample) {
	t.Helper()
	for range 50 {
		have = sums(t, p)
		var err, failed error
		one, err = p.Samples(t.Context(), report.Of(demo))
		all, failed = p.Samples(t.Context(), report.Scope{})
		check(t, errors.Join(err, failed))
		if reflect.DeepEqual(have, sums(t, p)) {
			break
		}
	}
	return have, one, all
}

// compare holds the short form against samples, which are read in another way.
func compare(t *testing.T, p *Part, directions int) (dropped uint64) {
	t.Helper()
	have, samples, all := readings(t, p)
	if !reflect.DeepEqual(all, samples) {
		t.Errorf("of all leases there are\n%+v, of the only one\n%+v", all, samples)
	}
	if len(have) != directions || len(samples) != directions {
		t.Fatalf("%d counts and %d samples of %d directions", len(have), len(samples), directions)
	}
	for _, s := range report.Traffics(samples) {
		way := report.LinkWay{Lease: demo, Link: s.Link, Direction: s.Direction, Enters: s.First, Leaves: s.Last}
		if want := (report.LinkSums{s.Packets, s.Bytes, s.Drops["queue"]}); have[way] != want {
			t.Errorf("%+v is %v, in samples %v", way, have[way], want)
		}
		dropped += s.Drops["queue"]
	}
	return dropped
}

// backlog looks until waits is called whether samples, read in both ways, say that
// bytes wait.
func backlog(t *testing.T, p *Part) (waits func() bool) {
	t.Helper()
	stop, seen := make(chan struct{}), make(chan bool)
	go func() {
		found := make(map[report.Scope]bool)
		for {
			for _, of := range []report.Scope{report.Of(demo), {}} {
				samples, err := p.Samples(t.Context(), of)
				if err != nil {
					t.Error(err)
				}
				for _, s := range report.Traffics(samples) {
					found[of] = found[of] || s.Backlog > 0
				}
			}
			select {
			case <-stop:
				seen <- len(found) == 2 && found[report.Of(demo)] && found[report.Scope{}]
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() bool { close(stop); return <-seen }
}

// Counts of a tunnel, whose class drops what is too much, and of a link within a
// host, whose bucket does, are those of samples, and follow links that come and go.
func TestCountsAreThoseOfSamples(t *testing.T) {
	needIperf(t)
	b := newBench(t)
	parts, nodes, _ := b.connect(10 * vnet.Mbit)
	b.ping(nodes[0], address(1))
	for _, p := range parts {
		compare(t, p, 2)
	}
	waits := backlog(t, parts[0])
	b.iperf(nodes[0], nodes[1], address(1).String(), "-u", "-b", "40M", "-t", "1")
	if !waits() {
		t.Error("nothing waited in the class")
	}
	if compare(t, parts[0], 2) == 0 {
		t.Error("the class dropped nothing")
	}
	compare(t, parts[1], 2)

	p, h := b.host("h3")
	ends := [2]string{b.node(h, "n0"), b.node(h, "n1")}
	add(t, p, local(10*vnet.Mbit))
	b.ping(ends[0], address(1))
	compare(t, p, 2)
	waits = backlog(t, p)
	b.iperf(ends[0], ends[1], address(1).String(), "-u", "-b", "40M", "-t", "1")
	if !waits() {
		t.Error("nothing waited in the bucket")
	}
	if compare(t, p, 2) == 0 {
		t.Error("the bucket dropped nothing")
	}
	remove(t, p, local(10*vnet.Mbit))
	if left := sums(t, p); len(left) > 0 {
		t.Errorf("of no link there is %v", left)
	}
	add(t, p, local(10*vnet.Mbit))
	compare(t, p, 2)
}
