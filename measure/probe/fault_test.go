package probe

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// short is a check of a few seconds. The warm-up is the usual one: what slow
// start loses takes TCP more than half a second to repair.
func short(targets []Target) Options {
	return Options{Targets: targets, Duration: 600 * time.Millisecond}
}

func TestBrokenPromisesAreCaught(t *testing.T) {
	testBrokenPromises(t, "link too slow", "no limit", "queue too short, packets lost")
}

func TestSoakBrokenPromisesAreCaught(t *testing.T) {
	testBrokenPromises(t, "minimum kept below the allocated rate", "limit too high")
}

func testBrokenPromises(t *testing.T, names ...string) {
	figures(t)
	const m = vnet.Mbit
	for _, c := range []struct {
		name       string
		wire       wire
		min, alloc vnet.Rate
		why        string
	}{
		{"link too slow", wire{rate: 50 * m}, 100 * m, 100 * m, "Mbit/s, under the guaranteed 100 Mbit/s"},
		{"minimum kept below the allocated rate", wire{rate: 50 * m}, 49 * m, 100 * m, ""},
		{"limit too high", wire{rate: 100 * m}, 0, 50 * m, "over the allocated 50 Mbit/s"},
		{"no limit", wire{}, 10 * m, 10 * m, "over the allocated 10 Mbit/s"},
		{"queue too short, packets lost", wire{rate: 100 * m, queue: 3 << 10}, 100 * m, 100 * m, "UDP lost"},
	} {
		if !slices.Contains(names, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, "n1", "n2")
			l.connect(left, right, c.wire, c.wire)
			targets := []Target{target("a", left, right, c.min, c.alloc, c.alloc), target("a", right, left, c.min, c.alloc, c.alloc)}
			v := l.measured(short(targets))
			if v.OK != (c.why == "") {
				t.Errorf("verdict %v", v.OK)
			}
			for _, link := range v.Links {
				if !strings.Contains(link.Why, c.why) {
					t.Errorf("%s->%s: %q, want %q", link.From, link.To, link.Why, c.why)
				}
			}
		})
	}
}

// A chain of three nodes with parallel links, different rates by link and
// direction, one link best effort and one dead: all measured at once, each by
// its own interface, and only the dead one is not ok.
func TestManyLinks(t *testing.T) {
	const m = vnet.Mbit
	l := newLab(t, "n1", "n2", "n3", "n4")
	addr := func(node string) netip.Addr { return netip.MustParseAddr("10.9.0." + node[1:]) }
	at := func(node, dev string) end { return end{node, dev, addr(node)} }
	a, b := at("n1", "eth0"), at("n2", "eth0")
	c, d := at("n1", "eth1"), at("n2", "eth1") // parallel to a-b
	e, f := at("n2", "eth2"), at("n3", "eth0")
	g, h := at("n3", "eth1"), at("n4", "eth0")
	l.connect(a, b, wire{rate: 20 * m}, wire{rate: 60 * m})
	l.connect(c, d, wire{rate: 40 * m}, wire{rate: 80 * m})
	l.connect(e, f, wire{rate: 30 * m}, wire{rate: 30 * m})
	targets := []Target{
		target("ab", a, b, 20*m, 20*m, 20*m), target("ab", b, a, 60*m, 60*m, 60*m),
		target("cd", c, d, 40*m, 40*m, 40*m), target("cd", d, c, 80*m, 80*m, 80*m),
		target("ef", e, f, 0, 0, 0), target("ef", f, e, 0, 0, 0),
	}
	l.connect(g, h, wire{rate: 10 * m}, wire{rate: 10 * m})
	l.cut(g)
	targets = append(targets, static("gh", g, h, 10*m)...)
	opt := short(targets)
	opt.Duration = 2 * time.Second
	v := l.measured(opt)
	if v.OK {
		t.Error("a dead link passed")
	}
	for i, link := range v.Links[:6] {
		want := []vnet.Rate{20 * m, 60 * m, 40 * m, 80 * m, 30 * m, 30 * m}[i]
		if !link.OK || !within(link.TCP, want, 0.02) || !within(link.UDP, want, 0.02) {
			t.Errorf("%s %s->%s: TCP %s UDP %s, want %s: %s", link.Name, link.From, link.To, link.TCP, link.UDP, want, link.Why)
		}
	}
	for _, link := range v.Links[6:] {
		if link.OK || !strings.Contains(link.Why, link.To+" does not answer "+link.From) {
			t.Errorf("dead link %s->%s: %v %q", link.From, link.To, link.OK, link.Why)
		}
	}
}

// A node's user may kill the probe: its links are not ok and say why, at
// once; other links are measured.
func TestProbeKilled(t *testing.T) {
	l := newLab(t, "n1", "n2", "n3")
	middle, third := end{"n2", "eth1", right.addr}, end{"n3", "eth0", netip.MustParseAddr("10.9.0.3")}
	l.connect(left, right, wire{}, wire{})
	l.connect(middle, third, wire{}, wire{})
	targets := append([]Target{target("a", left, right, 0, 0, 0)}, target("b", middle, third, 0, 0, 0))
	opt := short(targets)
	opt.SkipUDP = true
	opt.Progress = func(phase string) {
		if strings.HasPrefix(phase, "TCP") {
			l.mu.Lock()
			defer l.mu.Unlock()
			_ = l.probes["n1"].Process.Kill()
		}
	}
	v, err := Check(t.Context(), lease, l.start, opt)
	must(t, err)
	logVerdict(t, v)
	if v.OK || v.Links[0].OK || !strings.Contains(v.Links[0].Why, "probe in node n1") {
		t.Errorf("killed: %v %q", v.Links[0].OK, v.Links[0].Why)
	}
	if !v.Links[1].OK {
		t.Errorf("other link: %q", v.Links[1].Why)
	}
}

func TestCancel(t *testing.T) {
	l := newLab(t, "n1", "n2")
	l.connect(left, right, wire{}, wire{})
	ctx, cancel := context.WithCancel(t.Context())
	opt := Options{Targets: static("a", left, right, 100*vnet.Mbit), Duration: time.Minute}
	opt.Progress = func(phase string) {
		if strings.HasPrefix(phase, "TCP") {
			time.AfterFunc(200*time.Millisecond, cancel)
		}
	}
	begin := time.Now()
	_, err := Check(ctx, lease, l.start, opt)
	if !errors.Is(err, context.Canceled) || time.Since(begin) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
	for node, cmd := range l.probes {
		if cmd.ProcessState == nil {
			t.Errorf("probe in %s still runs", node)
		}
	}
}

// In the product a node's namespace belongs to a user namespace, and the probe
// is root there and nobody outside.
func TestUserNamespace(t *testing.T) {
	l := newLab(t)
	pipes := map[string]io.ReadWriteCloser{}
	for _, node := range []string{"n1", "n2"} {
		pipes[node] = l.startOwned(node)
	}
	const rate = 100 * vnet.Mbit
	l.connect(left, right, wire{rate: rate}, wire{rate: rate})
	opt := short(static("a", left, right, rate))
	opt.Duration = time.Second
	start := func(_ context.Context, node string) (io.ReadWriteCloser, error) { return pipes[node], nil }
	v, err := Check(t.Context(), lease, start, opt)
	must(t, err)
	logVerdict(t, v)
	if why := waiting(v); why != "" {
		t.Skip("not measured: " + why)
	}
	if !v.OK {
		t.Error("not ok")
	}
}

func TestCheckWithoutLinks(t *testing.T) {
	if _, err := Check(t.Context(), lease, nil, Options{}); err == nil {
		t.Error("a check of nothing passed")
	}
}

func TestStartFails(t *testing.T) {
	start := func(context.Context, string) (io.ReadWriteCloser, error) { return nil, errors.New("no agent") }
	v, err := Check(t.Context(), lease, start, Options{Targets: static("a", left, right, vnet.Mbit)})
	if err != nil || v.OK || !strings.Contains(v.Links[0].Why, "start probe in node") {
		t.Errorf("%+v, %v", v, err)
	}
}
