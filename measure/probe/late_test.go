package probe

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sublet/measure"
	"sublet/vnet"
)

// throttle lets the lab's probes run for a part of the time only, by whichever
// version of control groups has the cpu controller.
func (l *lab) throttle(part float64) {
	l.t.Helper()
	const period = 100_000 // us
	quota := int(part * period)
	name := fmt.Sprintf("sublet-probe-test-%d", os.Getpid())
	file, limit := "cpu.max", fmt.Sprintf("%d %d", quota, period)
	if l.group = "/sys/fs/cgroup/cpu/" + name; !exists("/sys/fs/cgroup/cpu/cgroup.procs") {
		l.group = "/sys/fs/cgroup/" + name
		l.set("/sys/fs/cgroup/cgroup.subtree_control", "+cpu")
	} else {
		file, limit = "cpu.cfs_quota_us", fmt.Sprint(quota)
	}
	if err := os.Mkdir(l.group, 0o755); err != nil {
		l.t.Skip("needs control groups: ", err)
	}
	l.t.Cleanup(func() { _ = os.Remove(l.group) })
	l.set(l.group+"/"+file, limit)
}

// set writes a file that is there.
func (l *lab) set(file, text string) {
	l.t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		l.t.Skip("needs the cpu controller: ", err)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Probes that are kept from the processors measure nothing, and say so; what
// they measure all the same, and no wait explains, is broken.
func TestStarvedProbesDoNotMeasure(t *testing.T) {
	figures(t)
	const m = vnet.Mbit
	for _, c := range []struct {
		name   string
		wire   wire
		alloc  vnet.Rate
		starve float64
		want   vnet.Outcome
	}{
		{"starved", wire{rate: 400 * m}, 400 * m, 0.02, vnet.NotMeasured},
		{"free, and too slow", wire{rate: 50 * m}, 100 * m, 0, vnet.Broken},
		{"starved, and no limit", wire{}, m, 0.3, vnet.Broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, "n1", "n2")
			if c.starve > 0 {
				l.throttle(c.starve)
			}
			l.connect(left, right, c.wire, c.wire)
			v := l.measured(short(static("a", left, right, c.alloc)))
			for _, k := range v.Links {
				if k.Outcome != c.want || k.OK {
					t.Errorf("%s->%s is %s, want %s: %s", k.From, k.To, k.Outcome, c.want, k.Why)
				}
			}
			if v.Outcome != c.want || v.OK {
				t.Errorf("the network is %s", v.Outcome)
			}
		})
	}
}

// A link is not measured if waiting explains all that it lacks, and broken if it
// does not explain something.
func TestOutcome(t *testing.T) {
	const m = vnet.Mbit
	doubt := map[measure.Phase]string{measure.TCP: "a probe waited", measure.Idle: "threads waited"}
	for _, c := range []struct {
		name   string
		link   vnet.LinkVerdict
		fault  string
		doubts map[measure.Phase]string
		want   vnet.Outcome
	}{
		{"kept", vnet.LinkVerdict{TCP: 100 * m, UDP: 100 * m}, "", doubt, vnet.Kept},
		{"TCP short, and doubted", vnet.LinkVerdict{TCP: 90 * m, UDP: 100 * m}, "", doubt, vnet.NotMeasured},
		{"TCP short", vnet.LinkVerdict{TCP: 90 * m, UDP: 100 * m}, "", nil, vnet.Broken},
		{"both short, one doubted", vnet.LinkVerdict{TCP: 90 * m, UDP: 90 * m}, "", doubt, vnet.Broken},
		{"late, and doubted", vnet.LinkVerdict{TCP: 100 * m, UDP: 100 * m, Latency: 9, LatencyBound: 8}, "", doubt, vnet.NotMeasured},
		{"loss", vnet.LinkVerdict{TCP: 100 * m, UDP: 100 * m, UDPLoss: 0.1}, "", doubt, vnet.Broken},
		{"nothing passes", vnet.LinkVerdict{}, "", doubt, vnet.Broken},
		{"the probe was killed", vnet.LinkVerdict{TCP: 90 * m, UDP: 100 * m}, "no answer", doubt, vnet.Broken},
	} {
		o := newTrials(static("a", left, right, 100*m))[0]
		o.link.TCP, o.link.UDP, o.link.UDPLoss = c.link.TCP, c.link.UDP, c.link.UDPLoss
		o.link.Latency, o.link.LatencyBound = c.link.Latency, c.link.LatencyBound
		o.fault, o.doubts = c.fault, c.doubts
		v := o.verdict(measure.Scope{TCP: true, UDP: true, Loss: true})
		if v.Outcome != c.want || v.OK != (c.want == vnet.Kept) {
			t.Errorf("%s: %s (%v), want %s: %s", c.name, v.Outcome, v.OK, c.want, v.Why)
		}
	}
}

// A latency is doubted if the threads that handle pings waited for as long as
// it is too long, and a loss if no more is lost than passes in the meantime.
func TestDelayedAndLossy(t *testing.T) {
	const window, ms, us = time.Second, time.Millisecond, time.Microsecond
	for _, c := range []struct {
		rtt          float64 // us
		queued, late time.Duration
		doubt        bool
	}{{180, ms, ms, false}, {400, 0, ms, false}, {400, 50 * us, ms, false}, {400, 100 * us, 0, true}, {400, 0, 600 * ms, true}, {600_000, 50 * ms, 100 * ms, false}} {
		o := newTrials(static("a", left, right, vnet.Mbit))[0]
		o.link.LatencyBound, o.link.Latency, o.last, o.queued, o.late = 100, c.rtt/2, c.rtt, c.queued, c.late
		if why := delayed(o, window); (why != "") != c.doubt {
			t.Errorf("%+v: %q", c, why)
		}
	}
	for _, c := range []struct {
		loss     float64
		overflow uint64
		late     time.Duration
		doubt    bool
	}{{0, 0, window, false}, {0.02, 0, 10 * ms, false}, {0.02, 0, 25 * ms, true}, {0.002, 0, ms, false}, {0.5, 1, 0, true}} {
		o := newTrials(static("a", left, right, vnet.Mbit))[0]
		o.last, o.late, o.arrived.Overflow = c.loss, c.late, c.overflow
		if why := lossy(o, window); (why != "") != c.doubt {
			t.Errorf("%+v: %q", c, why)
		}
	}
}

// measured checks a lab's links. A machine that is too busy to tell whether they
// are as they should be ends the test, but if the lab itself keeps probes waiting.
func (l *lab) measured(opt Options) vnet.Verdict {
	l.t.Helper()
	v, err := Check(l.t.Context(), lease, l.start, opt)
	must(l.t, err)
	logVerdict(l.t, v)
	if why := waiting(v); why != "" && l.group == "" {
		l.t.Skip("not measured: " + why)
	}
	return v
}

// waiting is what a link of a verdict says that is not measured.
func waiting(v vnet.Verdict) string {
	for _, k := range v.Links {
		if k.Outcome == vnet.NotMeasured {
			return strings.TrimSpace(k.Name + ": " + k.Why)
		}
	}
	return ""
}
