package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/internal/stall"
	"sublet/vnet"
)

// hostileNetwork is two switches with two links between them, so that frames
// can go round, and a controller of both.
//
//	h1:  a -50M- s1 ==2x50M== h2:  s2 -50M- b
//	              |                 |
//	             ctl --- control ---+
const hostileNetwork = `network: net
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
  - {name: ctl, host: h1}
switches:
  - {name: s1, host: h1, kind: openflow, controller: ["tcp:ctl:6653", "tcp:ctl:6654"], tables: 8, entries: 2000, groups: 100, meters: 100, datapath: DATAPATH}
  - {name: s2, host: h2, kind: openflow, controller: ["tcp:ctl:6653", "tcp:ctl:6654"], tables: 8, entries: 2000, groups: 100, meters: 100, datapath: DATAPATH}
links:
  - {name: c1, ends: [s1, ctl], control: true}
  - {name: c2, ends: [s2, ctl], control: true}
  - {ends: [a, s1], rate: 50Mbit}
  - {name: p, ends: [s1, s2], rate: 50Mbit}
  - {name: q, ends: [s1, s2], rate: 50Mbit}
  - {ends: [s2, b], rate: 50Mbit}
`

const (
	hostileEntries = 2000
	hostileRate    = 50 * vnet.Mbit
	neighbourRate  = 100 * vnet.Mbit
)

// attacked is a lab in which alice's controller attacks, and bob has a link.
type attacked struct {
	*lab
	alice, bob *tenant
	taps       []*wiretap
	processes  map[string]int
}

// attack brings it up; stop it by the test's end.
func attack(t *testing.T, datapath string) *attacked {
	t.Helper()
	l := newLab(t, "demo")
	both := l.tenants(alice, bob)
	x := &attacked{lab: l, alice: both[0], bob: both[1], processes: map[string]int{}}
	x.bob.up(pair("net", fmt.Sprintf("rate: %s", neighbourRate)))
	x.alice.up(strings.ReplaceAll(hostileNetwork, "DATAPATH", datapath))
	x.listen()
	for _, host := range []string{"h1", "h2"} {
		x.processes[host] = l.openFlowProcess(host)
	}
	p := x.targets()
	p.Signature = signed(alice, 0)
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	x.alice.background("listening", "net/ctl", "hostile", string(text))
	return x
}

// targets are the addresses of everything there is.
func (x *attacked) targets() floodPlan {
	p := floodPlan{VNIs: x.bob.vnis("h1"), IPs: [][4]byte{{127, 0, 0, 1}, {}, {255, 255, 255, 255}, {224, 0, 0, 5}}}
	for _, space := range []string{
		here, x.host("h1"), x.host("h2"), x.alice.node("h1", "net", "a"), x.alice.node("h2", "net", "b"), x.alice.node("h1", "net", "ctl"),
		x.bob.node("h1", "net", "a"), x.bob.node("h2", "net", "b"), x.bob.fabric("h1", "net"), x.bob.fabric("h2", "net"),
	} {
		within(x.t, space, func() error { return p.learn() })
	}
	return p
}

// listen taps whatever the attacker's frames must not come to.
func (x *attacked) listen() {
	t := x.t
	for _, host := range []string{"h1", "h2"} {
		x.taps = append(x.taps,
			tap(t, x.bob.fabric(host, "net"), "bob's fabric on "+host, from(alice)),
			tap(t, x.host(host), host+" outside of alice's tunnels", outside(alice, x.alice.trunkOn(host), x.alice.vnis(host)...)))
	}
	x.taps = append(x.taps, tap(t, here, "the machine", anything()),
		tap(t, x.bob.node("h1", "net", "a"), "bob's a", from(alice)), tap(t, x.bob.node("h2", "net", "b"), "bob's b", from(alice)))
}

// within bounds: what the attacker's own link carries, the entries and the
// memory of its switches, and where its frames are.
func (x *attacked) inBounds() {
	t := x.t
	t.Helper()
	for _, tap := range x.taps {
		tap.silent()
	}
	for host, name := range map[string]string{"h1": "s1", "h2": "s2"} {
		out := ""
		eventually(t, 20*time.Second, func() error {
			r := x.alice.sublet("flows", "net/"+name)
			if out = r.out; r.code != 0 {
				return errors.New(r.err)
			}
			return nil
		})
		if n := strings.Count(out, "\n"); n > hostileEntries {
			t.Errorf("%s has %d entries, of %d", name, n, hostileEntries)
		}
		if pid := x.openFlowProcess(host); pid != x.processes[host] {
			t.Errorf("%s: process %d in place of %d", name, pid, x.processes[host])
		}
	}
}

// A controller that does all that the protocol has, right and wrong, as fast as it
// can: its frames stay in its own network, its switches keep to their sizes, answer
// their tenant and do not end.
func TestHostileController(t *testing.T) {
	t.Parallel()
	for _, datapath := range []string{vnet.DatapathProcess, vnet.DatapathKernel} {
		t.Run(datapath, func(t *testing.T) {
			x := attack(t, datapath)
			// Controls: the frames are there, and a tap below the tunnels hears them when
			// these are taken for another network's.
			for _, own := range []*wiretap{
				tap(t, x.alice.node("h2", "net", "b"), "alice's b", from(alice)),
				tap(t, x.host("h2"), "h2", outside(alice, 0, x.bob.vni("h2"))),
			} {
				eventually(t, 20*time.Second, func() error {
					if n := own.count(); n < 1000 {
						return fmt.Errorf("%d of the attack's frames came to %s: the test shows nothing", n, own.what)
					}
					return nil
				})
			}
			x.inBounds()
			x.alice.must("down", "net")
		})
	}
}

// Beside such a controller neighbours keep their rates, and its own links theirs.
func TestSoakHostileController(t *testing.T) {
	for _, datapath := range []string{vnet.DatapathProcess, vnet.DatapathKernel} {
		t.Run(datapath, func(t *testing.T) {
			x := attack(t, datapath)
			stall.Try(t, func() (lacked float64, wrong error) {
				var own vnet.Rate
				var measuring sync.WaitGroup
				measuring.Go(func() { own = x.alice.received("h2", "net", "b", 2*time.Second) })
				r := x.bob.sublet("check", "net", "-o", "json", "--duration", "1s")
				measuring.Wait()
				if r.code != 0 && r.code != 4 {
					return stall.Never, errors.New(r.err)
				}
				t.Logf("alice's b receives %s", own)
				if own > hostileRate*101/100 {
					lacked, wrong = away(own, hostileRate), fmt.Errorf("the attacker's link carries %s of %s", own, hostileRate)
				}
				for _, k := range decode[vnet.Verdict](t, r.out).Links {
					t.Logf("bob's %s>%s: TCP %s, UDP %s, of %s", k.From, k.To, k.TCP, k.UDP, neighbourRate)
					for what, rate := range map[string]vnet.Rate{"TCP": k.TCP, "UDP": k.UDP} {
						if math.Abs(float64(rate)/float64(neighbourRate)-1) > 0.01 {
							lacked = max(lacked, away(rate, neighbourRate))
							wrong = errors.Join(wrong, fmt.Errorf("%s>%s: %s carries %s of %s", k.From, k.To, what, rate, neighbourRate))
						}
					}
				}
				return lacked, wrong
			})
			x.inBounds()
		})
	}
}
