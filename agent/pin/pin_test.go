package pin

import (
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"testing"
	"time"

	"sublet/vnet"
)

// bed is a machine that is played: its processes use what they want of the core that
// they are on, and cores spend time in interrupts.
type bed struct {
	loop            *Loop
	now             time.Time
	number          int
	wants           map[string]float64 // of a core
	limits          map[string]int64
	ready           int
	interrupts      map[int]float64
	follow          float64 // interrupts that go along with a process, of what it uses
	others          map[int]float64
	used            map[string]time.Duration
	soft, elsewhere map[int]time.Duration
	at              map[int][]int
	pins            int
}

type group struct {
	bed *bed
	key string
}

func (g group) pid() int { return int(g.key[len(g.key)-1]) }

func (g group) Processes() ([]int, error)    { return []int{g.pid()}, nil }
func (g group) Used() (time.Duration, error) { return g.bed.used[g.key], nil }
func (g group) CPU() int64                   { return g.bed.limits[g.key] }

func (b *bed) Cores() (list []int, err error) {
	for n := range b.number {
		list = append(list, n)
	}
	return list, nil
}
func (b *bed) Interrupts() (map[int]time.Duration, error) { return maps.Clone(b.soft), nil }
func (b *bed) Others(map[int]bool) (map[int]map[int]time.Duration, error) {
	all := make(map[int]map[int]time.Duration)
	for n, t := range b.elsewhere {
		all[n] = map[int]time.Duration{1000 + n: t}
	}
	return all, nil
}
func (b *bed) Pin(pid int, cores []int) error {
	if !slices.Equal(b.at[pid], cores) {
		b.pins++
	}
	b.at[pid] = cores
	return nil
}
func (b *bed) Pinned(pid int) (int, bool) {
	if len(b.at[pid]) == 1 {
		return b.at[pid][0], true
	}
	return 0, false
}
func (b *bed) Ready([]int) int { return b.ready }

func newBed(cores int, wants map[string]float64) *bed {
	b := &bed{
		number: cores, wants: wants, now: time.Unix(1000, 0), limits: map[string]int64{}, interrupts: map[int]float64{}, others: map[int]float64{},
		used: map[string]time.Duration{}, soft: map[int]time.Duration{}, elsewhere: map[int]time.Duration{}, at: map[int][]int{},
	}
	b.begin()
	return b
}

// begin is an agent that knows nothing.
func (b *bed) begin() {
	b.loop = &Loop{Machine: b, Log: slog.New(slog.DiscardHandler), Processes: func() (list []Process, err error) {
		for _, key := range slices.Sorted(maps.Keys(b.wants)) {
			list = append(list, Process{Key: key, Lease: vnet.LeaseID{Tenant: "t", Network: "n"}, Group: group{b, key}})
		}
		return list, nil
	}}
}

// run lets time pass.
func (b *bed) run(t *testing.T, steps int) {
	t.Helper()
	for range steps {
		if err := b.loop.step(b.now); err != nil {
			t.Fatal(err)
		}
		b.pass(interval)
	}
}

// pass has processes that share a core get at most what is left of it.
func (b *bed) pass(d time.Duration) {
	b.now = b.now.Add(d)
	load := make(map[int]float64)
	for n := range b.number {
		load[n] = b.interrupts[n] + b.others[n]
	}
	wanted := make(map[int]float64)
	for key, want := range b.wants {
		if at := b.at[group{b, key}.pid()]; len(at) == 1 {
			wanted[at[0]] += want
		}
	}
	for key, want := range b.wants {
		at := b.at[group{b, key}.pid()]
		if len(at) == 1 {
			want = min(want, want/wanted[at[0]]*(1-load[at[0]]))
			b.soft[at[0]] += time.Duration(float64(d) * want * b.follow)
		}
		b.used[key] += time.Duration(float64(d) * want)
	}
	for n := range b.number {
		b.soft[n] += time.Duration(float64(d) * b.interrupts[n])
		b.elsewhere[n] += time.Duration(float64(d) * b.others[n])
	}
}

// core is the one on which a process is.
func (b *bed) core(t *testing.T, key string) int {
	t.Helper()
	at := b.at[group{b, key}.pid()]
	place, ok := b.loop.Of(key)
	if len(at) != 1 || !ok || place.Core != at[0] {
		t.Fatalf("%s is on %v and told to be on %+v, %v", key, at, place, ok)
	}
	return at[0]
}

// Processes are spread by what they use, not by how many they are: as the best of all
// placements does, where the greedy one does not.
func TestProcessesAreSpreadByUse(t *testing.T) {
	b := newBed(2, map[string]float64{"a": 0.3, "b": 0.3, "c": 0.2, "d": 0.2, "e": 0.2})
	b.run(t, 8)
	load := make(map[int]float64)
	for key, want := range b.wants {
		load[b.core(t, key)] += want
	}
	if load[0] < 0.59 || load[0] > 0.61 {
		t.Errorf("loads are %v; greedy placement has 0.7 on a core, the best 0.6", load)
	}
	if place, _ := b.loop.Of("a"); place.Used < 280 || place.Used > 320 {
		t.Errorf("a uses %s of a core, not 0.3", place.Used)
	}
}

// Two that begin to use much on one core are put apart, and what is well where it is
// stays there.
func TestLoadsThatChangeMoveProcesses(t *testing.T) {
	b := newBed(2, map[string]float64{"a": 0.3, "b": 0.2, "c": 0.1})
	b.run(t, 8)
	if b.core(t, "b") != b.core(t, "c") {
		t.Fatal("the two that use less are not on one core")
	}
	before := b.pins
	b.run(t, 50)
	if b.pins != before {
		t.Errorf("%d moves while nothing changed", b.pins-before)
	}
	b.wants["b"], b.wants["c"], b.wants["a"] = 0.9, 0.8, 0.05
	b.run(t, 50)
	if b.core(t, "b") == b.core(t, "c") {
		t.Error("two that want a core each share one")
	}
}

// Cores that spend their time in interrupts, or on threads that can run nowhere else,
// are kept clear while there is room beside them; of two cores the busy one is used
// when the other would be fuller.
func TestBusyCoresAreKeptClear(t *testing.T) {
	for name, load := range map[string]func(*bed, float64){
		"interrupts": func(b *bed, x float64) { b.interrupts[0] = x },
		"others":     func(b *bed, x float64) { b.others[0] = x },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(2, map[string]float64{"a": 0.2, "b": 0.2})
			load(b, 0.7)
			b.run(t, 20)
			if b.core(t, "a") == 0 || b.core(t, "b") == 0 {
				t.Errorf("a is on %d, b on %d, and core 0 is busy", b.core(t, "a"), b.core(t, "b"))
			}
			b.wants["a"], b.wants["b"] = 0.9, 0.3
			load(b, 0.3)
			b.run(t, 80)
			if b.core(t, "a") != 1 || b.core(t, "b") != 0 {
				t.Errorf("a is on %d, b on %d: a wants all of core 1", b.core(t, "a"), b.core(t, "b"))
			}
		})
	}
}

// Interrupts that go along with who sends packets chase nobody from core to core.
func TestOwnInterruptsMoveNothing(t *testing.T) {
	b := newBed(2, map[string]float64{"a": 0.6, "b": 0.2})
	b.follow = 0.7
	b.run(t, 10)
	before := b.pins
	b.run(t, 300)
	if b.pins != before {
		t.Errorf("%d moves in ten minutes of even load", b.pins-before)
	}
}

// Where loads follow whoever is moved, in whatever way, moves become rarer.
func TestMovesBecomeRarer(t *testing.T) {
	b := newBed(2, map[string]float64{"a": 0.3, "b": 0.3})
	b.run(t, 6)
	before := b.pins
	for range 1800 { // an hour in which interrupts always come where a is
		b.interrupts = map[int]float64{b.core(t, "a"): 0.8}
		b.run(t, 1)
	}
	if moves := b.pins - before; moves > 140 {
		t.Errorf("%d moves in an hour", moves)
	}
}

// One that was promised more than a core, or without a limit uses several, is left to
// the kernel's scheduler.
func TestWideProcessesRunAnywhere(t *testing.T) {
	b := newBed(2, map[string]float64{"a": 1.6, "b": 0.1, "c": 1, "d": 0.1})
	b.limits["b"], b.limits["d"] = 2000, 500
	b.ready = 3
	b.run(t, 10)
	for key, want := range map[string]int{"a": 2, "b": 2, "c": 2, "d": 1} {
		if at := b.at[group{b, key}.pid()]; len(at) != want {
			t.Errorf("%s may run on %v", key, at)
		}
	}
	if _, ok := b.loop.Of("a"); ok {
		t.Error("a is told to be on a core")
	}
	b.limits["b"] = 1000
	b.run(t, 10)
	b.core(t, "b")
}

// An agent that begins anew moves nothing that is well where it is.
func TestAgentsTakeUpWhatTheyFind(t *testing.T) {
	b := newBed(2, map[string]float64{"a": 0.5, "b": 0.4})
	b.run(t, 6)
	before, pins := b.core(t, "a"), b.pins
	b.begin()
	b.run(t, 20)
	if b.core(t, "a") != before || b.pins != pins {
		t.Errorf("a is on %d, and was on %d; %d moves", b.core(t, "a"), before, b.pins-pins)
	}
}

// Of one core there is nothing to choose.
func TestOneCore(t *testing.T) {
	b := newBed(1, map[string]float64{"a": 0.5, "b": 0.4})
	b.run(t, 6)
	if _, ok := b.loop.Of("a"); ok {
		t.Error("a is kept on a core, and there is one")
	}
}

// The real machine answers: a thread of this process is put on a core, and back.
func TestHere(t *testing.T) {
	var m Machine = Here{}
	cores, err := m.Cores()
	if err != nil || len(cores) == 0 {
		t.Fatal(cores, err)
	}
	times, err := m.Interrupts()
	if _, ok := times[cores[0]]; err != nil || !ok {
		t.Errorf("interrupts of core %d: %v, %v", cores[0], times, err)
	}
	pid := child(t)
	last := cores[len(cores)-1:]
	if err := m.Pin(pid, last); err != nil {
		t.Fatal(err)
	}
	if core, ok := m.Pinned(pid); !ok || core != last[0] {
		t.Errorf("it is pinned to %d, %v", core, ok)
	}
	others, err := m.Others(nil)
	if _, ok := others[last[0]][pid]; err != nil || !ok {
		t.Errorf("core %d has %v, %v: not thread %d", last[0], others[last[0]], err, pid)
	}
	if others, _ := m.Others(map[int]bool{pid: true}); others[last[0]][pid] != 0 {
		t.Error("one of ours is counted with the others")
	}
	if err := m.Pin(pid, cores); err != nil {
		t.Fatal(err)
	}
	if core, ok := m.Pinned(pid); ok != (len(cores) == 1) {
		t.Errorf("it is still pinned to %d", core)
	}
	if n := m.Ready([]int{pid}); n > 1 {
		t.Errorf("%d threads of a process that sleeps want to run", n)
	}
}

// child is a process that waits until the test ends.
func child(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}
