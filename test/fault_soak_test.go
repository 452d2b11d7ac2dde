package test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/api"
	"sublet/vnet"
)

// soakVariable is how long the random tester runs, as a duration such as 2h.
const soakVariable = "SUBLET_SOAK"

// soakTime is how long: in CI a few rounds.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(soakVariable)
	if text == "" {
		return 25 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", soakVariable, err)
	}
	return d
}

// mishap is something that happens to a host; lift ends it, if it has to be ended.
// harmless: it takes no packet of anybody's away.
type mishap struct {
	name     string
	begin    func() error
	lift     func() error
	harmless bool
}

// together says whether two mishaps can meet: not at one place, where what is
// covered cannot be moved as well, and what ends while all that is known of it is
// away is made anew; nor can an agent know what was in a directory that was moved
// away before it started.
func together(first, second string) bool {
	place, what, _ := strings.Cut(first, " ")
	other, also, _ := strings.Cut(second, " ")
	unknown := place == "agent" && also == "moved" || other == "agent" && what == "moved"
	return place != other && !unknown
}

// soaking is a lab in which mishaps, requests and releases meet.
type soaking struct {
	*blind
	rand   *randomly
	leased []vnet.Request
	number int
	done   map[string]int
}

// Random mishaps, alone and two at a time, while random networks come and go: what
// runs goes on, or is back in time; when all is over every host is as planned.
// The seed replays a run.
func TestSoakRandomMishaps(t *testing.T) {
	n := seed(t)
	b := newBlind(t, "ospf")
	s := &soaking{blind: b, done: make(map[string]int)}
	s.rand = &randomly{supervisor: b.supervisor, rand: rand.New(rand.NewPCG(n, 1)), hosts: b.hosts}
	for end := time.Now().Add(soakTime(t)); time.Now().Before(end); {
		s.round()
	}
	for len(s.leased) > 0 {
		s.release()
	}
	b.asPlanned(b.hosts...)
	t.Logf("rounds by mishap: %v", s.done)
}

// round lets one or two mishaps happen, asks for things meanwhile, and lifts them.
func (s *soaking) round() {
	s.t.Helper()
	list := s.mishaps()
	first, second := list[s.rand.rand.IntN(len(list))], list[s.rand.rand.IntN(len(list))]
	mishaps := []mishap{first}
	if s.rand.rand.IntN(3) == 0 && together(first.name, second.name) {
		mishaps = append(mishaps, second)
	}
	name, harmless := "", true
	for _, m := range mishaps {
		s.done[m.name]++
		name += m.name + " "
		harmless = harmless && m.harmless
		if err := m.begin(); err != nil {
			s.t.Fatalf("%s: %v", m.name, err)
		}
	}
	change := s.change()
	time.Sleep(time.Duration(s.rand.rand.IntN(2500)) * time.Millisecond)
	for _, m := range mishaps {
		if m.lift == nil {
			continue
		}
		if err := m.lift(); err != nil {
			s.t.Fatalf("%s: %s lifted: %v", name, m.name, err)
		}
	}
	change()
	s.asPlanned(s.hosts...)
	s.flowing(name, harmless)
}

// flowing looks at the streams of the networks that stand, and begins new ones.
func (s *soaking) flowing(name string, harmless bool) {
	s.t.Helper()
	for i, f := range s.flows {
		before := f.received.Load()
		eventually(s.t, 2*shortly, func() error {
			if f.received.Load() <= before+10 {
				return errors.New(name + ": " + f.name + " does not flow")
			}
			return nil
		})
		gap := f.longest()
		if harmless && gap > 0 || gap > 2*shortly {
			s.t.Errorf("%s: %s was away for %s", name, f.name, gap)
		}
		_, _ = f.end()
		s.flows[i] = s.flow(f.source, f.target)
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// change asks for a network, or gives one back, now; what it returns waits for that.
func (s *soaking) change() (wait func()) {
	s.t.Helper()
	if len(s.leased) > 2 || len(s.leased) > 0 && s.rand.rand.IntN(2) == 0 {
		return s.releasing()
	}
	s.number++
	request := s.rand.network(fmt.Sprintf("n%d", s.number))
	s.rand.admitSurely(request)
	s.leased = append(s.leased, request)
	return func() {
		s.ready(idOf(request))
		s.rand.connected(request)
	}
}

func (s *soaking) release() { s.releasing()() }

func (s *soaking) releasing() (wait func()) {
	i := s.rand.rand.IntN(len(s.leased))
	id := idOf(s.leased[i])
	s.leased = append(s.leased[:i], s.leased[i+1:]...)
	s.rand.releaseSurely(id)
	return func() {
		s.gone(id)
		if l, err := s.api.Lease(s.t.Context(), id); err == nil && l.State != vnet.Ended || err != nil && !errors.Is(err, api.ErrNotFound) {
			s.t.Errorf("%s is %s, %v", id, l.State, err)
		}
	}
}

// mishaps are what may happen to h1.
func (s *soaking) mishaps() []mishap {
	var list []mishap
	for _, kind := range []string{"netns", "userns", "hosts", "frr", "vxswitch", "bpf"} {
		path := filepath.Join(s.run, kind, "h1")
		list = append(list, mishap{
			name:     kind + " covered",
			begin:    func() error { return unix.Mount("none", path, "tmpfs", 0, "") },
			lift:     func() error { return unix.Unmount(path, unix.MNT_DETACH) },
			harmless: true,
		})
		away := path + ".away"
		if kind != "bpf" { // a mount cannot be moved away by its directory
			list = append(list, mishap{
				name:     kind + " moved",
				begin:    func() error { return os.Rename(path, away) },
				lift:     func() error { return os.Rename(away, path) },
				harmless: true,
			})
		}
	}
	bpf := filepath.Join(s.run, "bpf", "h1")
	list = append(list,
		mishap{name: "bpf unmounted", begin: func() error { return unix.Unmount(bpf, unix.MNT_DETACH) }},
		mishap{name: "agent killed", begin: func() error { s.rand.restart(agentOf("h1"), s.rand.moment()); return nil }, harmless: true},
		mishap{name: "server killed", begin: func() error { s.rand.restart(server, s.rand.moment()); return nil }, harmless: true},
		mishap{name: "vxswitch stopped", begin: func() error {
			return syscall.Kill(s.awaitProcess(filepath.Base(program), "vxswitch"), syscall.SIGSTOP)
		}},
	)
	if haveFRR() {
		list = append(list, mishap{name: "frr stopped", begin: func() error {
			return syscall.Kill(s.awaitProcess("ospfd", "root.plain.r"), syscall.SIGSTOP)
		}})
	}
	return list
}

// awaitProcess finds a process that may be about to be started.
func (s *soaking) awaitProcess(program, group string) (pid int) {
	s.t.Helper()
	eventually(s.t, 2*shortly, func() error {
		if pid = s.running(program, group); pid == 0 {
			return errors.New(program + " does not run")
		}
		return nil
	})
	return pid
}
