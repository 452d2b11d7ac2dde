package test

import (
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/internal/stall"
	"sublet/vnet"
)

// The share of a substrate link holds on the wire: leases that want more get it and no
// more, and the machine's own traffic gets the rest, whatever leases send; less own
// traffic is no reason to exceed it.
//
//	                        h1                        h2
//	leased, 30M to any       a ====== backbone ====== b     70M
//	leased, 20M to any       a ====== 100M, 60 % ==== b     70M
//	the hosts              ->->->->->->->->->->->->->-    70M outside of all leases
func TestShareHolds(t *testing.T) {
	const share, own = 60 * vnet.Mbit, 40 * vnet.Mbit
	l := newLab(t, strings.Replace(narrow, "capacity: 100Mbit", "capacity: 100Mbit, share: 60%", 1))
	both := l.tenants(alice, bob)
	both[0].up(pair("net", "min: 30Mbit"))
	both[1].up(pair("net", "min: 20Mbit"))
	for _, c := range both {
		serve, send := sending("b")
		l.load(c.command(t.Context(), append([]string{"exec", "net/b", "--"}, serve...)...), c.command(t.Context(), append([]string{"exec", "net/a", "--"}, send...)...))
	}
	// What frames have more around them on the wire is the operator's, not the tenants'.
	measured := func() (leased, host vnet.Rate) {
		var got [2]vnet.Rate
		var measuring sync.WaitGroup
		for i, c := range both {
			measuring.Go(func() { got[i] = c.received("h2", "net", "b", 2*time.Second) })
		}
		before, began := passed(t, l.host("h2"), "to-h1").bytesIn, time.Now()
		measuring.Wait()
		wire := vnet.Rate(float64(passed(t, l.host("h2"), "to-h1").bytesIn-before) * 8 / time.Since(began).Seconds())
		return got[0] + got[1], wire - got[0] - got[1]
	}
	near := func(what string, got, want vnet.Rate, within float64) (lacked float64, wrong error) {
		if math.Abs(float64(got)/float64(want)-1) > within {
			return away(got, want), fmt.Errorf("%s: %s of %s", what, got, want)
		}
		return 0, nil
	}
	stall.Try(t, func() (float64, error) {
		leased, _ := measured()
		return near("leases alone", leased, share, 0.04)
	})
	serve, send := sending("198.18.0.1")
	inside := func(host string, words []string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "nsenter", append([]string{"--net=" + l.host(host), "--"}, words...)...)
	}
	l.load(inside("h2", serve), inside("h1", send))
	stall.Try(t, func() (float64, error) {
		leased, host := measured()
		lacked, wrong := near("leases beside the host", leased, share, 0.04)
		less, short := near("the host beside leases", host, own, 0.15) // outer headers of leases are counted here, too
		return max(lacked, less), errors.Join(wrong, short)
	})
	if r := both[0].sublet("up", both[0].file("more.yaml", pair("more", "min: 11Mbit"))); r.code != 3 {
		t.Errorf("more than the share is leased: %d %s%s", r.code, r.out, r.err)
	}
}

// load sends 70 Mbit/s of datagrams over one of the lab's links from now on: more than
// any sender has a right to, and so little that a busy machine sends it evenly.
func (l *lab) load(serve, send *exec.Cmd) {
	l.t.Helper()
	for _, cmd := range []*exec.Cmd{serve, send} {
		if err := cmd.Start(); err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		time.Sleep(time.Second) // until it listens; what is measured is asked for again anyway
	}
}

// sending are the words of a load's two commands.
func sending(address string) (serve, send []string) {
	return []string{"iperf3", "-s"}, []string{"iperf3", "-c", address, "-u", "-b", "70M", "-l", "1400", "-t", "300"}
}
