package test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// TestLinkOverTwoPaths: a link that no single path holds is carried by two, on
// real hosts: both take their part of its flows, the promise is kept when
// measured, and nothing is left once it is gone.
//
//	x: h1 ------direct, 30M------ h2: y
//	     \                       /
//	   left, 20M --- h3 --- right, 20M
func TestLinkOverTwoPaths(t *testing.T) {
	l := newLab(t, `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
  - {name: h3, cpu: 4, memory: 4GiB}
links:
  - {name: direct, ends: [h1, h2], capacity: 30Mbit, latency: 1ms}
  - {name: left, ends: [h1, h3], capacity: 20Mbit, latency: 1ms}
  - {name: right, ends: [h3, h2], capacity: 20Mbit, latency: 1ms}
`)
	l.up("network: wide\nnodes: [{name: x, host: h1}, {name: y, host: h2}]\nlinks: [{ends: [x, y], rate: 36Mbit, paths: 2}]\n")
	shares := l.sharesOf("wide", "x-y")
	if len(shares) != 2 || shares[0].Units+shares[1].Units != vnet.ShareUnits {
		t.Fatalf("it is carried by %v", shares)
	}
	l.settled()
	l.checked("wide", broken, "--duration", "3s")
	for _, host := range []string{"h1", "h2"} {
		if err := l.bothCarry(host); err != nil {
			t.Errorf("on %s: %v", host, err)
		}
	}
	l.must("down", "wide")
	eventually(t, 30*time.Second, func() error {
		for _, v := range l.leases() {
			if v.State != vnet.Ended {
				return fmt.Errorf("%s is %s", v.Network, v.State)
			}
		}
		return nil
	})
}

// sharesOf is how a link is split.
func (l *lab) sharesOf(network, link string) []vnet.PathShare {
	l.t.Helper()
	for _, v := range l.leases() {
		if v.Network == network && v.State != vnet.Ended {
			return v.Mapping.Splits[link]
		}
	}
	return nil
}

// bothCarry says what keeps a host from having sent by both tunnels of its
// only link, each at least a tenth.
func (l *lab) bothCarry(host string) error {
	states := decode[[]report.TunnelState](l.t, l.must("overlay", host, "-o", "json"))
	states = slices.DeleteFunc(states, func(s report.TunnelState) bool { return s.State == report.TunnelNone })
	sum := uint64(0)
	for _, s := range states {
		sum += s.Bytes
	}
	if len(states) != 2 || sum < 1_000_000 {
		return fmt.Errorf("%d tunnels have sent %d bytes", len(states), sum)
	}
	for _, s := range states {
		if s.Bytes < sum/10 {
			return fmt.Errorf("one of them has sent %d of %d bytes", s.Bytes, sum)
		}
	}
	return nil
}
