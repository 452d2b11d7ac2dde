package main

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"sublet/datapath/kernel"
)

// Bounds of judging, those of agent/control/sim.
const (
	steadyAfter = 2.0  // seconds after a change
	right       = 0.05 // of the rate
)

// logged is what was seen of a scenario.
type logged struct {
	began   time.Time   // when frames first came
	came    [][]counted // by chains, and by the node that sends
	moments []moment
}

// moment is what functions had of processors, in shares of a core, and had used, in seconds.
type moment struct {
	at          time.Time
	share, used []float64
}

// watch reads what functions have until the scenario is over, and has neighbours want
// both cores meanwhile, if it says so.
func (b *bed) watch(ctx context.Context, s scenario, network string) (l logged, err error) {
	groups, err := b.groupsOf(s, network)
	if err != nil {
		return l, err
	}
	var neighbours []*exec.Cmd
	end := func() {
		for _, c := range neighbours {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		neighbours = nil
	}
	defer end()
	began := time.Now()
	for tick := time.NewTicker(interval / 2); time.Since(began).Seconds() < s.seconds()+1; <-tick.C {
		if err := ctx.Err(); err != nil {
			return l, err
		}
		switch now := time.Since(began).Seconds(); {
		case now >= s.beside[1]:
			end()
		case now >= s.beside[0] && len(neighbours) == 0:
			for range runtime.NumCPU() {
				c := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
				if err := c.Start(); err != nil {
					return l, err
				}
				neighbours = append(neighbours, c)
			}
		}
		m := moment{at: time.Now()}
		for _, g := range groups {
			quota, period := g.Quota()
			used, err := g.Used()
			if err != nil {
				return l, err
			}
			m.share, m.used = append(m.share, float64(quota)/float64(period)), append(m.used, used.Seconds())
		}
		l.moments = append(l.moments, m)
	}
	return l, nil
}

// groupsOf are the control groups of the functions.
func (b *bed) groupsOf(s scenario, network string) (groups []kernel.Group, err error) {
	mount, _ := b.groups.Controller("cpu")
	for i := range s.functions {
		pattern := filepath.Join(mount, "sublet-*", "h1", fmt.Sprintf("root.%s.f%d", network, i))
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("%d control groups are called %s", len(found), pattern)
		}
		path, err := filepath.Rel(mount, found[0])
		if err != nil {
			return nil, err
		}
		groups = append(groups, b.groups.Group(path))
	}
	return groups, nil
}

// began is when frames first came by a chain.
func (l *logged) begin() {
	for i, c := range l.came[0] {
		if i > 0 && c.packets-l.came[0][i-1].packets > 3 {
			l.began = l.came[0][i-1].at
			return
		}
	}
}

// judge is the mean error, the longest reaction, most reallocations after a change, the
// most above the promise after it was answered, what was given over what the promise took,
// and what was used.
func (l logged) judge(s scenario) []any {
	if l.begin(); l.began.IsZero() {
		return []any{"nothing arrived"}
	}
	var off, means, given, needed, used, length float64
	for t := 0.0; t+1 <= s.seconds(); t++ {
		if !s.steady(t, t+1) {
			continue
		}
		var load, want float64
		if !s.tcp && l.offered(t, t+1) < s.promised(t) {
			continue // the sender had no processor
		}
		for i, c := range s.chains {
			if !c.offers(t, t+1) {
				continue
			}
			promise := 1e6 * c.mbit * c.let(t)
			is := l.rate(i, t, t+1)
			off, means = off+math.Abs(is-promise)/is, means+1
			load, want = load+is, want+promise
		}
		if load == 0 {
			continue
		}
		a, b := l.moment(t), l.moment(t+1)
		for k := range a.share {
			took := b.used[k] - a.used[k]
			given, needed, used = given+a.share[k], needed+took*want/load, used+took
		}
		length++
	}
	reaction, most, above := l.answers(s)
	return []any{means, 100 * off / means, reaction, most, above, given / needed, 100 * used / length}
}

// steady says whether nothing changes in a span or shortly before it.
func (s scenario) steady(from, to float64) bool {
	after := func(instants []float64, rest float64) bool {
		return !slices.ContainsFunc(instants, func(c float64) bool { return to > c && from < c+rest })
	}
	return from >= steadyAfter && after(s.changes, steadyAfter) && after(s.pauses, steadyAfter/2)
}

// promised is the rate of all chains to which enough is offered in a second.
func (s scenario) promised(t float64) (sum float64) {
	for _, c := range s.chains {
		if c.offers(t, t+1) {
			sum += 1e6 * c.mbit
		}
	}
	return sum
}

// let is the part of a chain's frames that arrives at a time.
func (c chain) let(t float64) float64 { return c.lets.at(t) }

// rate is what came by a chain in a span of seconds.
func (l logged) rate(chain int, from, to float64) float64 {
	return rateAt(l.came[chain], func(c counted) float64 { return c.bytes }, l.at(from), l.at(to))
}

// offered is what senders sent in a span.
func (l logged) offered(from, to float64) float64 {
	return rateAt(l.came[len(l.came)-1], func(c counted) float64 { return c.sent }, l.at(from), l.at(to))
}

func (l logged) at(t float64) time.Time { return l.began.Add(time.Duration(t * float64(time.Second))) }

// moment is the one nearest to a time.
func (l logged) moment(t float64) (best moment) {
	at := l.at(t)
	for _, m := range l.moments {
		if best.at.IsZero() || m.at.Sub(at).Abs() < best.at.Sub(at).Abs() {
			best = m
		}
	}
	return best
}

// answers are the longest reaction to a change, or "never", the most reallocations until
// then, and the most above the promise afterwards, in percent.
func (l logged) answers(s scenario) (longest, most, above any) {
	if len(s.changes) == 0 {
		return "", "", ""
	}
	var slowest, excess float64
	reallocations, never := 0, false
	for k, change := range s.changes {
		end := s.seconds()
		if k+1 < len(s.changes) {
			end = s.changes[k+1]
		}
		answered := change
		for i, c := range s.chains {
			at, ok := l.answer(i, c, change, end)
			never = never || !ok
			answered = max(answered, at)
		}
		slowest = max(slowest, answered-change)
		reallocations = max(reallocations, l.reallocated(change, answered))
		for i, c := range s.chains {
			for t := answered; t+0.3 <= end && c.offers(t, t+0.3); t += 0.1 {
				excess = max(excess, l.rate(i, t, t+0.3)/(1e6*c.mbit*c.let(t))-1)
			}
		}
	}
	if never {
		return "never", reallocations, 100 * excess
	}
	return slowest, reallocations, 100 * excess
}

// answer is when the rate of a chain (mean of 0.3 s) begins to be right for a second.
func (l logged) answer(chain int, c chain, change, end float64) (float64, bool) {
	since, good := change, 0
	for t := change; t+0.3 <= end && c.offers(t, t+0.3); t += 0.1 {
		promise := 1e6 * c.mbit * c.let(t)
		if math.Abs(l.rate(chain, t, t+0.3)-promise) > right*promise {
			since, good = t+0.3, 0
		} else if good++; good == 8 {
			return since, true
		}
	}
	return end, !c.offers(change, change+0.1)
}

// reallocated is how often quotas changed in a span.
func (l logged) reallocated(from, to float64) (n int) {
	for i, m := range l.moments[1:] {
		if t := m.at.Sub(l.began).Seconds(); t >= from && t <= to && !slices.Equal(m.share, l.moments[i].share) {
			n++
		}
	}
	return n
}
