package test

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/internal/stall"
	"sublet/vnet"
)

// blastInside sends datagrams to an address as fast as it can, for ever. It is
// the network that it is to take from others, and not the processor.
func blastInside(args []string) error {
	runtime.LockOSThread()
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, 19); err != nil {
		return err
	}
	conn, err := net.Dial("udp", args[0])
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "blasting")
	for datagram := make([]byte, 1400); ; {
		_, _ = conn.Write(datagram) // refused at times: nobody listens
	}
}

// narrow has a link that two cores fill without effort.
//
//	h1 ---100M--- h2
const narrow = `hosts:
  - {name: h1, site: lab, cpu: 4, memory: 4GiB}
  - {name: h2, site: lab, cpu: 4, memory: 4GiB}
links:
  - {name: backbone, ends: [h1, h2], capacity: 100Mbit}
`

const (
	effortCapacity = 100 * vnet.Mbit
	effortLeased   = 60 * vnet.Mbit
)

// blastHost sends from one host of the lab to another, besides all leases.
func (l *lab) blastHost(from, to string) (stop func()) {
	l.t.Helper()
	cmd := exec.Command("nsenter", "--net="+l.host(from), "--", l.attackProgram(), insideCommand, "blast", to)
	said := awaiting("blasting")
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	l.t.Cleanup(stop)
	<-said.seen
	return stop
}

// received is how much arrives at a node's eth0 in a while, frames and all.
func (c *tenant) received(host, network, node string, while time.Duration) vnet.Rate {
	c.t.Helper()
	namespace := c.node(host, network, node)
	before, began := passed(c.t, namespace, "eth0").bytesIn, time.Now()
	time.Sleep(while) // the measurement itself
	return vnet.Rate(float64(passed(c.t, namespace, "eth0").bytesIn-before) * 8 / time.Since(began).Seconds())
}

// Best effort is strictly below what is leased: a best-effort lease and the
// host itself, both blasting over the same uplinks in both directions, take
// nothing from a leased link, and get what it leaves when it is full.
//
//	                   h1                        h2
//	leased, 60M         a ====== backbone ====== b
//	best effort         a ->->->-  100M  -<-<-<- b     both ways at once
//	the hosts         ->->->->->-        -<-<-<-<-<-   outside of all leases
func TestBestEffortTakesNothingFromLeased(t *testing.T) {
	l := newLab(t, narrow)
	both := l.tenants(alice, bob)
	leased, effort := both[0], both[1]
	leased.up(pair("net", fmt.Sprintf("rate: %s", effortLeased)))
	effort.up(strings.Replace(pair("net", ""), "b], }", "b]}", 1))
	blasters := []func(){
		effort.background("blasting", "net/a", "blast", "b:9"),
		effort.background("blasting", "net/b", "blast", "a:9"),
		l.blastHost("h1", "198.18.0.1:9"),
		l.blastHost("h2", "198.18.0.0:9"),
	}
	stall.Try(t, func() (lacked float64, wrong error) {
		r := leased.sublet("check", "net", "-o", "json", "--duration", "3s")
		for _, k := range decode[vnet.Verdict](t, r.out).Links {
			off, err := effortOff(k)
			lacked, wrong = max(lacked, off), errors.Join(wrong, err)
		}
		if r.code != 0 {
			wrong = errors.Join(wrong, fmt.Errorf("check: exit code %d, %s", r.code, r.err))
		}
		return lacked, wrong
	})
	for _, stop := range blasters[2:] {
		stop()
	}
	leased.background("blasting", "net/a", "blast", "b:9")
	stall.Try(t, func() (lacked float64, wrong error) {
		var got [2]vnet.Rate
		var measuring sync.WaitGroup
		for i, c := range both {
			measuring.Go(func() { got[i] = c.received("h2", "net", "b", 2*time.Second) })
		}
		measuring.Wait()
		if math.Abs(float64(got[0])/float64(effortLeased)-1) > 0.01 {
			lacked, wrong = away(got[0], effortLeased), fmt.Errorf("leased, and full: %s of %s", got[0], effortLeased)
		}
		const left vnet.Rate = effortCapacity - effortLeased
		if share := float64(got[1]) / float64(left); share < 0.95 || share > 1.1 {
			lacked, wrong = max(lacked, away(got[1], left)), errors.Join(wrong, fmt.Errorf("best effort beside it: %s of the %s that are left", got[1], left))
		}
		return lacked, wrong
	})
}

// effortOff says how far a leased direction is off what was promised, and what
// is wrong.
func effortOff(k vnet.LinkVerdict) (off float64, wrong error) {
	for what, rate := range map[string]vnet.Rate{"TCP": k.TCP, "UDP": k.UDP} {
		if by := math.Abs(float64(rate)/float64(effortLeased) - 1); by > 0.01 {
			off = max(off, away(rate, effortLeased))
			wrong = errors.Join(wrong, fmt.Errorf("%s>%s: %s carries %s of %s leased, %.2f%% off: %s", k.From, k.To, what, rate, effortLeased, 100*by, k.Why))
		}
	}
	if k.UDPLoss != 0 {
		off = max(off, k.UDPLoss)
		wrong = errors.Join(wrong, fmt.Errorf("%s>%s loses %.4f at 0.9 of its rate", k.From, k.To, k.UDPLoss))
	}
	return off, wrong
}

// away is how far a rate is off another, as stall.Try wants it.
func away(rate, want vnet.Rate) float64 {
	part := float64(rate) / float64(want)
	if part > 1 {
		return stall.Above(part - 1)
	}
	return 1 - part
}
