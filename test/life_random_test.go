package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	product "sublet/lab"
	"sublet/vnet"
)

// livesVariable is how many lives TestSoakRandomChanges has, one if it is not stated.
const livesVariable = "SUBLET_TEST_LIVES"

// livingRequest is a network that lives: all but a and b may move to another host.
const livingRequest = `network: life
tenant: root
movable: true
nodes: [{name: a, host: h1}, {name: b, host: h2}]
routers: [{name: r}]
switches: [{name: s}]
links:
  - {name: ar, ends: [a, r], rate: 20Mbit}
  - {name: rs, ends: [r, s], rate: 20Mbit}
  - {name: sb, ends: [s, b], rate: 20Mbit}
stages:
  - {name: more, begins: command, links: {ar: {rate: 40Mbit}, rs: {rate: 40Mbit}}}
  - {name: less, begins: command, links: {ar: {rate: 10Mbit}}}
`

// TestSoakRandomChangesUnderKills: the same, while the server or an agent is killed beside
// each command, which may or may not have been done then.
func TestSoakRandomChangesUnderKills(t *testing.T) { t.Parallel(); livesAtRandom(t, true) }

// TestSoakRandomChanges: a network is changed, renewed, paused, saved, cloned, moved and
// put through failures at random. It works after each step, a network beside it, on a
// link that no step concerns, loses no packet, and nothing is left. The seed replays a
// run.
//
//	h1:  a  x --- direct --- b  y  :h2,   h1 - left - h3 - right - h2
func TestSoakRandomChanges(t *testing.T) { t.Parallel(); livesAtRandom(t, false) }

func livesAtRandom(t *testing.T, kills bool) {
	random := rand.New(rand.NewPCG(seed(t), 7))
	lives := 1
	if text := os.Getenv(livesVariable); text != "" {
		var err error
		if lives, err = strconv.Atoi(text); err != nil || lives < 1 {
			t.Fatalf("%s=%q is no number of lives", livesVariable, text)
		}
	}
	s := newSupervisor(t, triangle)
	calm := parseRequest(t, "tenant: root\n"+between("calm", "5Mbit", ""))
	s.admit(calm)
	id := idOf(calm)
	s.ready(id)
	x, y := node{"h1", id, "x"}, node{"h2", id, "y"}
	hosts := s.hostNames()
	s.settled()
	before := s.machine(hosts...)
	done := make(map[string]int)
	for life := range lives {
		flows := []*flow{s.flow(x, y), s.flow(y, x)}
		c := &randomChanges{supervisor: s, random: random, done: done}
		if kills {
			c.victims = []string{server}
			for _, host := range hosts {
				c.victims = append(c.victims, agentOf(host))
			}
		}
		c.live()
		endLossless(flows...)
		if t.Failed() {
			t.Fatalf("stopped in life %d", life)
		}
	}
	s.settled()
	eventually(t, 20*time.Second, func() error { return onlyAmong(s.machine(hosts...), before, s.run, hosts) })
	t.Logf("%d lives: %v", lives, done)
}

// onlyAmong says what of a machine was not there before. The directories of hosts for
// each kind of thing (RUN/KIND/HOST) stay, empty, once there was such a thing, and so do
// the control groups of the lab and of a host in a hierarchy that was used once, as long as
// the host has a node.
func onlyAmong(after, before []string, run string, hosts []string) error {
	was := make(map[string]bool, len(before))
	for _, thing := range before {
		was[thing] = true
	}
	for _, thing := range after {
		below, inRun := strings.CutPrefix(thing, "file "+run+"/")
		kind, host, more := strings.Cut(below, "/")
		ofKind := inRun && kind != "" && (!more || slices.Contains(hosts, host))
		group, node, inLab := strings.Cut(thing, "/"+product.Cgroup(run))
		ofGroup := inLab && strings.HasPrefix(group, "cgroup ") && strings.Count(node, "/") < 2
		if !was[thing] && !ofKind && !ofGroup {
			return fmt.Errorf("left: %s", thing)
		}
	}
	return nil
}

// randomChanges are those of one life.
type randomChanges struct {
	*supervisor
	random  *rand.Rand
	done    map[string]int
	victims []string // of whom one is killed beside each command; none: nobody is
}

var rateStated = regexp.MustCompile(`rate: \d+Mbit`)

// live takes the network through ten steps.
func (c *randomChanges) live() {
	c.t.Helper()
	c.surely("up", c.file("life.yaml", livingRequest))
	stages := []string{"more", "less"}
	steps := map[string]func(){
		"apply": func() {
			text := rateStated.ReplaceAllStringFunc(c.surely("get", "life", "-o", "yaml"), func(string) string { return fmt.Sprintf("rate: %dMbit", 5+c.random.IntN(60)) })
			c.do("apply", c.file("changed.yaml", text))
		},
		"renew": func() { c.do("renew", "life", "--for", fmt.Sprintf("%dh", 1+c.random.IntN(9))) },
		"stage": func() {
			if len(stages) > 0 {
				c.do("stage", "life", stages[0])
				if len(c.victims) == 0 {
					stages = stages[1:]
				}
			}
		},
		"pause": func() {
			c.do("pause", "life", []string{"--keep-rates", "--give-back"}[c.random.IntN(2)])
			c.surely("resume", "life")
		},
		"save": func() {
			c.do("save", "life", filepath.Join(c.t.TempDir(), "saved"))
		},
		"clone": func() {
			c.do("clone", "life", "copy")
			c.ends("copy")
			c.gone(vnet.LeaseID{Tenant: "root", Network: "copy"})
		},
		"drain": func() {
			c.do("drain", "h3")
			c.works()
			c.surely("undrain", "h3")
		},
		"consolidate": func() { c.do("consolidate", "--aim", []string{"fewest-hosts", "least-loaded"}[c.random.IntN(2)]) },
		"failure": func() {
			link := []string{"left", "right"}[c.random.IntN(2)]
			c.do("fail", "link", link)
			c.works()
			c.surely("restore", "link", link)
		},
	}
	names := []string{"apply", "renew", "stage", "pause", "save", "clone", "drain", "consolidate", "failure"}
	for range 10 {
		name := names[c.random.IntN(len(names))]
		c.done[name]++
		steps[name]()
		c.works()
	}
	c.ends("life")
	c.gone(vnet.LeaseID{Tenant: "root", Network: "life"})
}

// do runs a command, and kills somebody meanwhile, if anybody is to be killed: then it
// need not have been done.
func (c *randomChanges) do(args ...string) {
	c.t.Helper()
	if len(c.victims) == 0 {
		c.surely(args...)
		return
	}
	done := make(chan result)
	go func() { done <- c.sublet(args...) }()
	time.Sleep(time.Duration(c.random.IntN(300)) * time.Millisecond)
	c.restart(c.victims[c.random.IntN(len(c.victims))], time.Duration(c.random.IntN(300))*time.Millisecond)
	<-done
}

// surely runs a command, again while links are being moved (exit code 5), or while somebody
// who was killed is not back.
func (c *randomChanges) surely(args ...string) string {
	c.t.Helper()
	const busy = 5
	var r result
	eventually(c.t, time.Minute, func() error {
		if r = c.sublet(args...); r.code == busy || r.code == 1 && len(c.victims) > 0 {
			return fmt.Errorf("%v: %s", args, r.err)
		}
		return nil
	})
	if r.code != 0 {
		c.t.Fatalf("sublet %v: exit code %d\n%s%s", args, r.code, r.out, r.err)
	}
	return r.out
}

// ends releases a network, which may not be there if its request was killed.
func (c *randomChanges) ends(network string) {
	c.t.Helper()
	eventually(c.t, time.Minute, func() error {
		r := c.sublet("down", network)
		if unknown := r.code == 2 && len(c.victims) > 0; r.code != 0 && !unknown {
			return fmt.Errorf("down %s: exit code %d: %s", network, r.code, r.err)
		}
		return nil
	})
}

// works waits until the network runs and a reaches b.
func (c *randomChanges) works() {
	c.t.Helper()
	eventually(c.t, time.Minute, func() error {
		l, err := c.api.Lease(c.t.Context(), vnet.LeaseID{Tenant: "root", Network: "life"})
		if err != nil {
			return err
		}
		if l.State != vnet.Running {
			return fmt.Errorf("it is %s: %s", l.State, l.Message)
		}
		return c.pinged("life", "a", "b")
	})
}
